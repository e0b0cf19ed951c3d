// source/webdataset/tar_index: the index of a tar file that is being written where it cannot be read back cheaply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/core/byte_sink.hpp"

namespace penstock::source {

/// What webdataset() keeps beside a shard.
[[nodiscard]] std::string tar_index_path(const std::string& shard);

/// Passes on what TarWriter writes, and keeps the headers and the small members of it: all that a scan looks at.
class TarSketch final : public core::ByteSink {
 public:
  explicit TarSketch(std::unique_ptr<core::ByteSink> to) : to_(std::move(to)) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept override { return to_->bytes(); }
  void write(std::span<const std::byte> bytes) override;
  void finish() override { to_->finish(); }

  /// The index of what was written, and of zeros up to `bytes`, as the default fields of webdataset() need it. The shard's time
  /// of change is unknown: readers of a bucket take an index by the shard's size. `shard` is for messages.
  [[nodiscard]] std::vector<std::byte> index(const std::string& shard, std::uint64_t bytes) const;

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
