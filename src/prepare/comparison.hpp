// prepare/comparison: what would be written, compared with what is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/storage/stored_file.hpp"

namespace penstock::prepare {

/// Errors  Error  the file cannot be read: what cannot be read is not the same
class Comparison final : public core::ByteSink {
 public:
  /// `path` is for messages.
  Comparison(storage::StoredFilePtr file, std::string path);

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
  void write(std::span<const std::byte> bytes) override;
  void finish() override;
  /// The first byte in which they differ; none where they do not.
  [[nodiscard]] std::optional<std::uint64_t> difference() const noexcept { return difference_; }

 private:
  void compare();

  storage::StoredFilePtr file_;
  std::string path_;
  std::vector<std::byte> buffer_;  // not yet compared
  std::vector<std::byte> there_;
  std::uint64_t compared_ = 0;
  std::uint64_t bytes_ = 0;
  std::optional<std::uint64_t> difference_;
};

}  // namespace penstock::prepare
