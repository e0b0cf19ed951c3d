// An index file made byte by byte from the format's definition, without the library's own writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/source/shards/shard_index.hpp"

namespace penstock::test {

/// A section of `count` numbers that are all `base`: it takes no room.
struct IndexSection {
  std::uint32_t id = 0;
  std::uint32_t part = 0;
  std::uint64_t count = 0;
  std::uint64_t base = 0;
};

inline constexpr std::size_t kIndexHeaderBytes = 80;
inline constexpr std::size_t kIndexVersionAt = 8;

/// Writes the checksums anew.
inline void seal_index(std::span<std::byte> file) {
  constexpr std::size_t kBodyHashAt = 56;
  constexpr std::size_t kHeaderHashAt = 72;
  const auto put = [&](std::size_t at, std::span<const std::byte> of) {
    const std::uint64_t hash = XXH3_64bits(of.data(), of.size());
    std::memcpy(file.data() + at, &hash, sizeof hash);
  };
  put(kBodyHashAt, file.subspan(kIndexHeaderBytes));
  put(kHeaderHashAt, file.first(kHeaderHashAt));
}

inline std::vector<std::byte> index_file(source::ShardKind kind, const source::ShardStamp& stamp,
                                         std::uint64_t records,
                                         std::span<const IndexSection> sections) {
  std::vector<std::byte> file =
      source::ShardIndex::encode(kind, stamp, records, source::ShardContents{});
  file.resize(kIndexHeaderBytes);
  const auto add = [&](auto number) {
    const auto bytes = std::as_bytes(std::span(&number, 1));
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  for (const IndexSection& section : sections) {
    add(section.id);
    add(section.part);
    add(section.count);
    add(section.base);
    add(std::uint64_t{0});  // where it lies
    add(std::uint64_t{0});  // its width
  }
  const std::uint64_t body = file.size() - kIndexHeaderBytes;
  const auto count = static_cast<std::uint32_t>(sections.size());
  std::memcpy(file.data() + 48, &body, sizeof body);
  std::memcpy(file.data() + 64, &count, sizeof count);
  seal_index(file);
  return file;
}

}  // namespace penstock::test
