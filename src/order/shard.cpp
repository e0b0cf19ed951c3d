#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/selection.hpp"

namespace penstock::order {

OrderPtr shard(OrderPtr input, std::int64_t shards, std::int64_t index) {
  if (shards <= 0)
    throw std::invalid_argument(
        fmt::format("shard({}, {}): expected at least one shard, found {}: pass the number of "
                    "shards first, then this one's index",
                    shards, index, shards));
  if (index < 0 || index >= shards)
    throw std::invalid_argument(
        fmt::format("shard({}, {}): expected an index from 0 to {}, found {}: shards are numbered "
                    "from 0",
                    shards, index, shards - 1, index));
  const auto step = static_cast<std::uint64_t>(shards);
  const auto offset = static_cast<std::uint64_t>(index);
  std::optional<std::uint64_t> size = input->size();
  if (size) size = *size / step + (offset < *size % step ? 1 : 0);
  return order::select(std::move(input), offset, step, size,
                       fmt::format("shard({}, {})", shards, index));
}

}  // namespace penstock::order
