// order/positions: arithmetic on positions that does not overflow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock::detail {

/// One more than the last position of an endless order that can be asked for.
inline constexpr std::uint64_t kEndless = UINT64_MAX;

/// How many of the positions first, first + stride, … lie below `size`, at most `wanted`.
[[nodiscard]] inline std::size_t positions_left(std::uint64_t size, std::uint64_t first,
                                                std::uint64_t stride, std::size_t wanted) noexcept {
  if (first >= size || wanted == 0) return 0;
  const std::uint64_t last = size - 1 - first;
  const std::uint64_t left = stride == 1 ? last : last / stride;
  return left < wanted ? static_cast<std::size_t>(left) + 1 : wanted;
}

}  // namespace penstock::detail
