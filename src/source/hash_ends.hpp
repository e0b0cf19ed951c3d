// source/hash_ends: what tells most files of equal size apart at no cost.
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

}  // namespace penstock::source
