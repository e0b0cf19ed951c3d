#include "src/source/parquet/table_index.hpp"

#include <array>

#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

std::vector<std::byte> parquet_image_index(const ShardSketch& written, std::uint64_t bytes,
                                           const std::string& file) {
  const std::array<std::string, 1> labels{name_of_integers("label")};
  const auto sketch = written.file(bytes);
  const ScannedShard scanned = scan_parquet(*sketch, file, labels);
  return ShardIndex::encode(ShardKind::parquet, sketch->stamp(), scanned.records, scanned.contents);
}

}  // namespace penstock::source
