// core/output_file: a file that appears under its name when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <penstock/core/export.hpp>

#include "src/core/byte_sink.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// Writes to a file beside `path`, through a buffer; finish() gives it its name. Without that it is
/// removed. A symbolic link is followed first. What is there and is no regular file (a device, a
/// pipe, /dev/stdout) is never replaced: it is written to at once.
class OutputFile final : public ByteSink {
 public:
  /// Errors  Error  the file cannot be made
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile() override;

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  void write(std::span<const std::byte> bytes) override;
  /// Flushes file and folder to the storage, and replaces what was at `path`.
  void finish() override;

 private:
  void make_beside(unsigned mode);
  void flush();
  void put(std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* verb, int error);

  std::filesystem::path path_;    // as it was given
  std::filesystem::path target_;  // behind its links
  std::filesystem::path aside_;   // empty: written to where it is, or finished
  int file_ = -1;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_ = 0;
};

}  // namespace core
}  // namespace penstock
