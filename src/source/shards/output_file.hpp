// source/shards/output_file: a new file that appears under its name when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "src/storage/local/file.hpp"

namespace penstock::source {

/// Writes to a file beside `path`, through a buffer; finish() gives it its name. Without that it is
/// removed.
class OutputFile {
 public:
  /// Errors  Error  the file cannot be made
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Bytes written so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Errors  Error             the storage is full, or fails
  ///         std::logic_error  after finish()
  void write(std::span<const std::byte> bytes);
  /// Flushes to the storage, and replaces what was at `path`.
  ///
  /// Errors  as write
  void finish();

 private:
  void flush();
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* verb, int error);

  std::filesystem::path path_;
  std::filesystem::path aside_;
  storage::FileDescriptor file_;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock::source
