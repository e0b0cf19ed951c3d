#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/selection.hpp"

namespace penstock::order {

OrderPtr take(OrderPtr input, std::uint64_t count) {
  const std::uint64_t size = std::min(count, input->size().value_or(count));
  return order::select(std::move(input), 0, 1, size, fmt::format("take({})", count));
}

}  // namespace penstock::order
