#include "src/source/file_window.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/source/file.hpp"

namespace penstock::detail {

namespace {
// Holds the header of a small member, the member and the next header, and costs no more to read
// than a page.
constexpr std::size_t kWindow = 8192;
}  // namespace

FileWindow::FileWindow(int file, std::uint64_t file_bytes, const std::string& path)
    : file_(file), file_bytes_(file_bytes), path_(path) {
  // Reading ahead would fetch what the scan jumps over.
  ::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
}

void FileWindow::fill(std::uint64_t offset, std::size_t bytes) {
  size_ = 0;
  begin_ = offset;
  if (offset >= file_bytes_) return;
  const auto wanted = static_cast<std::size_t>(
      std::min<std::uint64_t>(std::max(bytes, kWindow), file_bytes_ - offset));
  if (wanted > capacity_) {
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
    capacity_ = wanted;
  }
  while (size_ < wanted) {
    const ssize_t got =
        ::pread(file_, buffer_.get() + size_, wanted - size_, static_cast<off_t>(offset + size_));
    if (got > 0) {
      size_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw Error(
          fmt::format("the shard {} shrank while it was indexed; open it once it is "
                      "complete",
                      path_));
    } else if (errno != EINTR) {
      throw Error(fmt::format("cannot read the shard {} at byte {}: {}", path_, offset + size_,
                              errno_text(errno)));
    }
  }
}

}  // namespace penstock::detail
