// device/aligned: how what lies in one piece of memory is placed.
#pragma once

#include <cstddef>

namespace penstock::device {

/// The next multiple of 256 bytes: what vector loads, kernels and copies want.
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace penstock::device
