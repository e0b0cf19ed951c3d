// A tar shard from anywhere: scanned, grouped into samples, indexed. All that the index then says
// lies within the shard, and is the same when the index comes back from its file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/source/webdataset/tar_header.hpp"
#include "src/source/webdataset/tar_samples.hpp"
#include "tests/fuzz/memory_file.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

// Few mutations keep a header's checksum: without this, what stands behind it is hardly reached.
void mend_checksums(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + kTarBlock <= bytes.size(); at += kTarBlock) {
    const TarBlock block(bytes.data() + at, kTarBlock);
    if (!has_ustar_magic(block)) continue;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 148, 8, std::byte{' '});
    unsigned sum = 0;
    for (const std::byte b : block) sum += static_cast<unsigned>(b);
    for (int digit = 5; digit >= 0; --digit, sum /= 8) {
      bytes[at + 148 + static_cast<std::size_t>(digit)] = static_cast<std::byte>('0' + sum % 8);
    }
    bytes[at + 154] = std::byte{0};
  }
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::copy_n(reinterpret_cast<const std::byte*>(data), size, bytes.begin());
  if (size > 0 && data[size - 1] % 2 == 0) mend_checksums(bytes);
  const fuzz::MemoryFile file(std::move(bytes));
  ScannedShard scanned;
  try {
    const std::string labels = "cls";
    scanned = scan_tar_samples(file, "shard.tar", {&labels, 1});
  } catch (const Error&) {
    return 0;  // compressed, it thinks
  }
  const auto encoded =
      ShardIndex::encode(ShardKind::tar, file.stamp(), scanned.records, scanned.contents);
  auto copy = std::make_unique<std::byte[]>(encoded.size() + ShardIndex::kPadding);
  std::copy(encoded.begin(), encoded.end(), copy.get());
  const auto index = ShardIndex::decode(std::move(copy), encoded.size());
  require(index.has_value() && index->records() == scanned.records);
  std::uint64_t members = 0;
  for (std::uint64_t record = 0; record < index->records(); ++record) {
    const auto [first, last] = index->members(record);
    require(first == members && last >= first);
    members = last;
    for (std::uint64_t i = first; i < last; ++i) {
      const Member member = index->member(i);
      require(member.begin == scanned.contents.members[i].begin);
      require(member.begin >= kTarBlock && member.begin <= size &&
              member.bytes <= size - member.begin);
      (void)index->extension(member.extension);
    }
    (void)index->key(record);
    if (const auto damage = index->damage(record)) {
      require(damage->begin <= damage->end && damage->end <= size);
      (void)describe_tar_damage(*damage);
    }
    require(index->labels("cls") == nullptr ||
            index->labels("cls")->state(record) <= LabelState::unreadable);
  }
  require(members == scanned.contents.members.size());
  return 0;
}
