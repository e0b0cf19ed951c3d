// storage/stored_file: a file or an object that is read by ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <penstock/core/error.hpp>

namespace penstock::storage {

/// What tells whether a file is still the one that it was.
struct FileStamp {
  std::uint64_t bytes = 0;
  /// A file's time of change in nanoseconds; a hash of an object's ETag.
  std::int64_t version = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// An open file, or an object under its name.
///
/// Threads  const, any number at once.
class StoredFile {
 public:
  StoredFile() = default;
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;
  virtual ~StoredFile() = default;

  [[nodiscard]] virtual FileStamp stamp() const noexcept = 0;
  /// Reads all of `into`, which lies within the file. A Fault names the file and the offset.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset,
                                          std::span<std::byte> into) const = 0;
  /// What a scan that looks at headers here and there should read at once.
  [[nodiscard]] virtual std::size_t window_bytes() const noexcept = 0;
  /// Of a local file; -1 for an object.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
};

using StoredFilePtr = std::shared_ptr<const StoredFile>;

}  // namespace penstock::storage
