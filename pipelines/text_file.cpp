#include "text_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace programs {

namespace ps = penstock;

std::string read_text(const std::string& what, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw ps::Error(
        fmt::format("the {} '{}' cannot be read: {}", what, path, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_atomically(const std::string& path, const std::string& text) {
  const std::string part = fmt::format("{}.{}.part", path, getpid());
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = fd >= 0;
  std::size_t at = 0;
  while (written && at < text.size()) {
    const ssize_t count = write(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    written = count > 0;
    at += written ? static_cast<std::size_t>(count) : 0;
  }
  written = written && fsync(fd) == 0;
  if (fd >= 0 && close(fd) != 0) written = false;
  if (!written || std::rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    (void)unlink(part.c_str());
    throw ps::Error(fmt::format("'{}' cannot be written: {}", path, std::strerror(error)));
  }
}

}  // namespace programs
