#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

using PositionsPtr = std::shared_ptr<const std::vector<std::uint64_t>>;

bool any_repeats(const std::vector<std::uint64_t>& list) {
  if (std::ranges::adjacent_find(list, std::greater_equal<>()) == list.end()) return false;
  const std::uint64_t last = std::ranges::max(list);
  if (last / 64 < list.size()) {  // a bit each needs no more memory than the list
    std::vector<bool> seen(last + 1);
    return std::ranges::any_of(list, [&](std::uint64_t position) {
      const bool again = seen[position];
      seen[position] = true;
      return again;
    });
  }
  std::vector<std::uint64_t> sorted = list;
  std::ranges::sort(sorted);
  return std::ranges::adjacent_find(sorted) != sorted.end();
}

class PickCursor final : public OrderCursor {
 public:
  PickCursor(std::unique_ptr<OrderCursor> input, PositionsPtr positions, bool repeats)
      : input_(std::move(input)), positions_(std::move(positions)), repeats_(repeats) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const auto& list = *positions_;
    const std::size_t count = order::positions_left(list.size(), first, stride, out.size());
    scratch_.resize(count);
    for (std::size_t k = 0; k < count; ++k) scratch_[k] = list[first + k * stride];
    input_->read_at(iteration, scratch_, out.first(count));
    if (repeats_) order::number_draws(out.first(count), first, stride);
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    if (repeats_) scratch_.assign(positions.begin(), positions.end());
    for (std::uint64_t& position : positions) position = (*positions_)[position];
    input_->read_at(iteration, positions, out);
    if (!repeats_) return;
    for (std::size_t k = 0; k < scratch_.size(); ++k) out[k].draw = scratch_[k] + 1;
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + scratch_.capacity() * sizeof(scratch_[0]) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  PositionsPtr positions_;
  bool repeats_;  // a position comes more than once in the list
  std::vector<std::uint64_t> scratch_;
};

class Pick final : public Order {
 public:
  Pick(OrderPtr input, PositionsPtr positions)
      : input_(std::move(input)),
        positions_(std::move(positions)),
        repeats_(any_repeats(*positions_)) {}

  std::optional<std::uint64_t> size() const noexcept override { return positions_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<PickCursor>(input_->open(), positions_, repeats_);
  }
  std::string describe() const override {
    return input_->describe() + fmt::format(".pick({} positions)", positions_->size());
  }

 private:
  OrderPtr input_;
  PositionsPtr positions_;
  bool repeats_;
};

}  // namespace

OrderPtr pick(OrderPtr input, std::vector<std::uint64_t> positions) {
  return pick(std::move(input),
              std::make_shared<const std::vector<std::uint64_t>>(std::move(positions)));
}

OrderPtr pick(OrderPtr input, PositionsPtr positions) {
  order::refuse_stream(*input, "pick");
  const std::uint64_t size = input->size().value_or(order::kEndless);
  for (std::size_t k = 0; k < positions->size(); ++k)
    if ((*positions)[k] >= size)
      throw std::invalid_argument(fmt::format(
          "select: position {} of the list is {}, and the input has {} samples: positions "
          "are counted from 0",
          k, (*positions)[k], size));
  return std::make_shared<Pick>(std::move(input), std::move(positions));
}

}  // namespace penstock::order
