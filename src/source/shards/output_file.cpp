#include "src/source/shards/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

namespace {
constexpr std::size_t kBuffer = std::size_t{1} << 20;
}

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  std::random_device draw;
  aside_ = path_;
  aside_ += fmt::format(".tmp.{:08x}{:08x}", draw(), draw());
  file_.adopt(::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_.is_open()) fail("create", errno);
  buffer_.reserve(kBuffer);
}

OutputFile::~OutputFile() {
  std::error_code ignored;
  if (file_.is_open()) std::filesystem::remove(aside_, ignored);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (!file_.is_open()) {
    throw std::logic_error(fmt::format("{} is finished; nothing can be added", path_.string()));
  }
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer) {
    put(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void OutputFile::finish() {
  write({});
  flush();
  if (::fsync(file_.get()) != 0) fail("write", errno);
  if (std::rename(aside_.c_str(), path_.c_str()) != 0) fail("create", errno);
  const int error = file_.close();  // where network file systems report a full disk
  if (error != 0) fail("write", error);
}

void OutputFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void OutputFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      fail("write", errno);
    }
  }
}

void OutputFile::fail(const char* verb, int error) {
  throw Error(fmt::format("cannot {} {}: {}; check its folder, its permissions and the free space",
                          verb, path_.string(), storage::errno_text(error)));
}

}  // namespace penstock::source
