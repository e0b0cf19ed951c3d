// source/hash_ends: hashes of parts of files and arrays, which tell those of equal size apart at little cost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <penstock/core/random.hpp>

namespace penstock::source {

inline constexpr std::size_t kHashedEnd = 4096;

/// A hash of the first and of the last 4 KiB, which are given.
[[nodiscard]] inline std::string hash_ends(std::span<const std::byte> first,
                                           std::span<const std::byte> last) {
  const auto text = [](std::span<const std::byte> part) {
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  };
  return hash_text(text(first)) + hash_text(text(last));
}

[[nodiscard]] inline std::string hash_ends(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(kHashedEnd, bytes.size());
  return hash_ends(bytes.first(size), bytes.last(size));
}

/// A hash of up to 1 MiB as a whole; of more, of 256 pieces of 4 KiB that lie at equal distances, the first and the last of
/// them at the ends.
[[nodiscard]] inline std::string hash_spread(std::span<const std::byte> bytes) {
  constexpr std::size_t kPieces = 256;
  const auto hash = [](std::span<const std::byte> part) {
    return hash_text({reinterpret_cast<const char*>(part.data()), part.size()});
  };
  if (bytes.size() <= kPieces * kHashedEnd) return hash(bytes);
  std::string pieces;
  const std::size_t last = bytes.size() - kHashedEnd;
  for (std::size_t i = 0; i < kPieces; ++i) {
    // last * i would overflow for very large arrays
    const std::size_t begin = last / (kPieces - 1) * i + last % (kPieces - 1) * i / (kPieces - 1);
    pieces += hash(bytes.subspan(begin, kHashedEnd));
  }
  return hash_text(pieces);
}

}  // namespace penstock::source
