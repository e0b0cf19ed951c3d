// order/stream_window: the shuffle buffer over samples that arrive one after another.
#pragma once

#include <cstdint>

#include <penstock/core/random.hpp>

#include "src/order/order.hpp"

namespace penstock::order {

/// What order::shuffle_window is over a stream.
[[nodiscard]] OrderPtr stream_window(OrderPtr input, const RandomKey& key, std::uint64_t buffer);

/// Errors  std::out_of_range  an iteration other than 0
///         std::logic_error   first < next: a stream that stands at `next` cannot go back
void require_forward(std::uint32_t iteration, std::uint64_t first, std::uint64_t next);

}  // namespace penstock::order
