// order/positions: arithmetic on positions that does not overflow.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/order/order.hpp"

namespace penstock::order {

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

/// Says of the samples at first, first + stride, … that they were drawn there.
inline void number_draws(std::span<SampleId> samples, std::uint64_t first,
                         std::uint64_t stride) noexcept {
  for (std::size_t k = 0; k < samples.size(); ++k) samples[k].draw = first + k * stride + 1;
}

/// For the cursors that work position by position: reads first, first + stride, … of `size`
/// positions through read_at, a chunk at a time.
inline std::size_t read_in_chunks(OrderCursor& cursor, std::uint64_t size, std::uint32_t iteration,
                                  std::uint64_t first, std::uint64_t stride,
                                  std::span<SampleId> out) {
  const std::size_t count = positions_left(size, first, stride, out.size());
  std::array<std::uint64_t, 256> positions;
  for (std::size_t done = 0; done < count;) {
    const std::size_t chunk = std::min(positions.size(), count - done);
    for (std::size_t k = 0; k < chunk; ++k) positions[k] = first + (done + k) * stride;
    cursor.read_at(iteration, std::span(positions).first(chunk), out.subspan(done, chunk));
    done += chunk;
  }
  return count;
}

}  // namespace penstock::order
