// source/shards/shard_sketch: what a scan looks at of a shard that is being written where it cannot be read back cheaply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/storage/stored_file.hpp"

namespace penstock::source {

/// Passes on what a writer writes, and keeps what is small: headers, lengths, labels.
class ShardSketch final : public core::ByteSink {
 public:
  explicit ShardSketch(std::unique_ptr<core::ByteSink> to) : to_(std::move(to)) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return to_->bytes(); }
  void write(std::span<const std::byte> bytes) override;
  void finish() override { to_->finish(); }
  /// Keeps bytes that were written and are not small; behind all that was kept before.
  void keep(std::uint64_t begin, std::span<const std::byte> bytes);

  /// A file of `bytes` with what was kept, and zeros in place of the rest; valid as long as the sketch is. Its time of change
  /// is unknown: readers of a bucket take an index by the shard's size.
  [[nodiscard]] std::unique_ptr<const storage::StoredFile> file(std::uint64_t bytes) const;

 private:
  struct Kept {
    std::uint64_t begin = 0;
    std::vector<std::byte> bytes;
  };
  class File;

  std::unique_ptr<core::ByteSink> to_;
  std::vector<Kept> kept_;  // in their order
};

}  // namespace penstock::source
