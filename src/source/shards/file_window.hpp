// source/shards/file_window: a file, looked at here and there, mostly forward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/storage/stored_file.hpp"

namespace penstock::source {

/// Reads a file through one buffer, a few kilobytes at a time, of an object a few megabytes: for
/// scans that look at headers and jump over what they announce.
///
/// Owns  its buffer, not the file.
class FileWindow {
 public:
  /// `path` is for messages and outlives the window, as `file` does.
  FileWindow(const storage::StoredFile& file, const std::string& path);

  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  /// `bytes` from `offset` on, fewer at the end of the file; valid until the next call.
  ///
  /// Errors  Error  the file cannot be read, also not when it is tried again, or is shorter
  ///                than it was
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes) {
    const bool begins_here = offset >= begin_ && offset - begin_ <= size_;
    const bool ends_here = begins_here && (bytes <= size_ - (offset - begin_) ||
                                           begin_ + size_ == file_bytes_);  // all there is
    if (!ends_here) fill(offset, bytes);
    const std::size_t skipped = offset < begin_ ? size_ : static_cast<std::size_t>(offset - begin_);
    const std::size_t there = size_ - skipped;
    return {buffer_.get() + skipped, bytes < there ? bytes : there};
  }

 private:
  void fill(std::uint64_t offset, std::size_t bytes);

  const storage::StoredFile& file_;
  std::uint64_t file_bytes_;
  const std::string& path_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
  std::uint64_t begin_ = 0;  // of the buffer, in the file
  std::size_t size_ = 0;
};

}  // namespace penstock::source
