#include "src/source/webdataset/tar_index.hpp"

#include <algorithm>
#include <array>

#include "src/source/shards/shard_index.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/webdataset/tar_header.hpp"
#include "src/source/webdataset/tar_samples.hpp"
#include "src/storage/stored_file.hpp"

namespace penstock::source {

// What was kept, as a file with zeros in place of the rest.
class TarSketch::File final : public storage::StoredFile {
 public:
  File(const std::vector<Kept>& kept, std::uint64_t bytes) : kept_(kept), bytes_(bytes) {}

  storage::FileStamp stamp() const noexcept override { return {.bytes = bytes_}; }
  std::size_t window_bytes() const noexcept override { return kTarBlock; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::ranges::fill(into, std::byte{0});
    const std::uint64_t end = offset + into.size();
    auto kept = std::ranges::upper_bound(kept_, offset, {}, &Kept::begin);
    if (kept != kept_.begin()) --kept;
    for (; kept != kept_.end() && kept->begin < end; ++kept) {
      const std::uint64_t from = std::max(offset, kept->begin);
      const std::uint64_t to = std::min<std::uint64_t>(end, kept->begin + kept->bytes.size());
      if (from < to)
        std::copy_n(kept->bytes.begin() + static_cast<std::ptrdiff_t>(from - kept->begin),
                    to - from, into.begin() + static_cast<std::ptrdiff_t>(from - offset));
    }
    return {};
  }

 private:
  const std::vector<Kept>& kept_;
  std::uint64_t bytes_;
};

std::string tar_index_path(const std::string& shard) { return shard + std::string(kIndexEnding); }

void TarSketch::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kSmall = 16 << 10;  // the longest names, and any label
  const std::uint64_t begin = this->bytes();
  to_->write(bytes);
  if (!bytes.empty() && bytes.size() <= kSmall)
    kept_.push_back({begin, {bytes.begin(), bytes.end()}});
}

std::vector<std::byte> TarSketch::index(const std::string& shard, std::uint64_t bytes) const {
  const std::array<std::string, 1> labels{"cls"};
  const File file(kept_, bytes);
  const ScannedShard scanned = scan_tar_samples(file, shard, labels);
  return ShardIndex::encode(ShardKind::tar, file.stamp(), scanned.records, scanned.contents);
}

}  // namespace penstock::source
