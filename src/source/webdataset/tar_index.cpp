#include "src/source/webdataset/tar_index.hpp"

#include <array>

#include "src/source/shards/shard_index.hpp"
#include "src/source/webdataset/tar_samples.hpp"

namespace penstock::source {

std::vector<std::byte> tar_index(const ShardSketch& written, std::uint64_t bytes,
                                 const std::string& shard) {
  const std::array<std::string, 1> labels{"cls"};
  const auto file = written.file(bytes);
  const ScannedShard scanned = scan_tar_samples(*file, shard, labels);
  return ShardIndex::encode(ShardKind::tar, file->stamp(), scanned.records, scanned.contents);
}

}  // namespace penstock::source
