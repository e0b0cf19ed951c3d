#include "src/source/shards/shard_sketch.hpp"

#include <algorithm>

namespace penstock::source {

class ShardSketch::File final : public storage::StoredFile {
 public:
  File(const std::vector<Kept>& kept, std::uint64_t bytes) : kept_(kept), bytes_(bytes) {}

  storage::FileStamp stamp() const noexcept override { return {.bytes = bytes_}; }
  std::size_t window_bytes() const noexcept override { return 512; }
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

void ShardSketch::write(std::span<const std::byte> bytes) {
  constexpr std::size_t kSmall = 16 << 10;  // the longest names, and any label
  const std::uint64_t begin = this->bytes();
  to_->write(bytes);
  if (!bytes.empty() && bytes.size() <= kSmall) keep(begin, bytes);
}

void ShardSketch::keep(std::uint64_t begin, std::span<const std::byte> bytes) {
  kept_.push_back({begin, {bytes.begin(), bytes.end()}});
}

std::unique_ptr<const storage::StoredFile> ShardSketch::file(std::uint64_t bytes) const {
  return std::make_unique<File>(kept_, bytes);
}

}  // namespace penstock::source
