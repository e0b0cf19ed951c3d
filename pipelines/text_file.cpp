#include "text_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace programs {

namespace ps = penstock;

namespace {
constexpr std::size_t kMost = std::size_t{1} << 30;  // /dev/zero has no end
}

std::string read_text(const std::string& what, const std::string& path) {
  const auto refuse = [&] {
    throw ps::Error(
        fmt::format("the {} '{}' cannot be read: {}", what, path, std::strerror(errno)));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse();
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())), file.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMost)
      throw ps::Error(
          fmt::format("the {} '{}' is longer than a gigabyte: name another file", what, path));
  }
  if (file.bad()) refuse();
  return text;
}

}  // namespace programs
