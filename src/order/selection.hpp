// order/selection: what take, skip and shard have in common: every step-th position from an offset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/order/order.hpp"

namespace penstock::order {

/// The order whose position p is the input's position offset + p * step. A read passes down as
/// (first, stride), so that it stays one call however many selections lie on top of each other.
///
/// `size` counts its positions, none for an endless one; `verb` is what describe() appends.
[[nodiscard]] OrderPtr select(OrderPtr input, std::uint64_t offset, std::uint64_t step,
                              std::optional<std::uint64_t> size, std::string verb);

}  // namespace penstock::order
