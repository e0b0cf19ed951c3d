#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

using Positions = std::shared_ptr<const std::vector<std::uint64_t>>;

class PickCursor final : public OrderCursor {
 public:
  PickCursor(std::unique_ptr<OrderCursor> input, Positions positions)
      : input_(std::move(input)), positions_(std::move(positions)) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = order::positions_left(positions_->size(), first, stride, out.size());
    scratch_.resize(count);
    for (std::size_t k = 0; k < count; ++k) scratch_[k] = (*positions_)[first + k * stride];
    input_->read_at(iteration, scratch_, out.first(count));
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    for (std::uint64_t& position : positions) position = (*positions_)[position];
    input_->read_at(iteration, positions, out);
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + scratch_.capacity() * sizeof(scratch_[0]) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  Positions positions_;
  std::vector<std::uint64_t> scratch_;
};

class Pick final : public Order {
 public:
  Pick(OrderPtr input, Positions positions)
      : input_(std::move(input)), positions_(std::move(positions)) {}

  std::optional<std::uint64_t> size() const noexcept override { return positions_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<PickCursor>(input_->open(), positions_);
  }
  std::string describe() const override {
    return input_->describe() + fmt::format(".pick({} positions)", positions_->size());
  }

 private:
  OrderPtr input_;
  Positions positions_;
};

}  // namespace

OrderPtr pick(OrderPtr input, std::vector<std::uint64_t> positions) {
  order::refuse_stream(*input, "pick");
  const std::uint64_t size = input->size().value_or(order::kEndless);
  for (std::size_t k = 0; k < positions.size(); ++k)
    if (positions[k] >= size)
      throw std::invalid_argument(
          fmt::format("{}.pick(): position {} of the list is {}, and the input has {}: positions "
                      "are counted from 0",
                      input->describe(), k, positions[k], size));
  return std::make_shared<Pick>(
      std::move(input), std::make_shared<const std::vector<std::uint64_t>>(std::move(positions)));
}

}  // namespace penstock::order
