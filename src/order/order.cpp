#include "src/order/order.hpp"

namespace penstock::order {

void OrderCursor::read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
                          std::span<SampleId> out) {
  for (std::size_t k = 0; k < positions.size(); ++k)
    read(iteration, positions[k], 1, out.subspan(k, 1));
}

}  // namespace penstock::order
