#include "src/source/shards/file_window.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/storage/retry.hpp"

namespace penstock::source {

FileWindow::FileWindow(const storage::StoredFile& file, const std::string& path)
    : file_(file), file_bytes_(file.stamp().bytes), path_(path) {
  // Reading ahead would fetch what the scan jumps over.
  if (file.descriptor() >= 0) ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);
}

void FileWindow::fill(std::uint64_t offset, std::size_t bytes) {
  core::require_wanted();
  size_ = 0;
  begin_ = offset;
  if (offset >= file_bytes_) return;
  const auto wanted = static_cast<std::size_t>(
      std::min<std::uint64_t>(std::max(bytes, file_.window_bytes()), file_bytes_ - offset));
  if (wanted > capacity_) {
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(wanted);
    capacity_ = wanted;
  }
  auto result = storage::with_retries([&] { return file_.read(offset, {buffer_.get(), wanted}); });
  if (!result) {
    throw Error(fmt::format("cannot index the shard {} from byte {} on: {}", path_,
                            result.fault().offset, result.fault().reason));
  }
  size_ = wanted;
}

}  // namespace penstock::source
