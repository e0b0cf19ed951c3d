#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/selection.hpp"

namespace penstock::order {

OrderPtr skip(OrderPtr input, std::uint64_t count) {
  std::optional<std::uint64_t> size = input->size();
  if (size) *size -= std::min(count, *size);
  return order::select(std::move(input), count, 1, size, fmt::format("skip({})", count));
}

}  // namespace penstock::order
