// prepare/shard_writer: a tar file of whole samples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <penstock/source/shards.hpp>

#include "src/core/byte_sink.hpp"
#include "src/prepare/input.hpp"

namespace penstock::prepare {

/// Which `tar`, webdataset and Penstock read alike: each sample has a key of its own there, and none looks like a note
/// (`__x__/`), which readers leave out.
class ShardWriter {
 public:
  explicit ShardWriter(std::unique_ptr<core::ByteSink> to) : tar_(std::move(to)) {}
  /// The image under `extension`, then the others.
  void add(const Sample& sample, std::string_view extension);
  void finish() { tar_.finish(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tar_.bytes(); }
  /// The member that a byte of the file belongs to.
  [[nodiscard]] std::string member_at(std::uint64_t offset) const;

 private:
  [[nodiscard]] std::string own_key(std::string key);

  TarWriter tar_;
  std::unordered_set<std::string> files_;                       // that its samples are unpacked to
  std::vector<std::pair<std::uint64_t, std::string>> members_;  // where each ends
};

}  // namespace penstock::prepare
