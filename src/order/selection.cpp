// Orders that keep every step-th position from an offset: take, skip, shard.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

class SelectionCursor final : public OrderCursor {
 public:
  SelectionCursor(std::unique_ptr<OrderCursor> input, std::uint64_t offset, std::uint64_t step,
                  std::uint64_t limit)
      : input_(std::move(input)), offset_(offset), step_(step), limit_(limit) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = positions_left(limit_, first, stride, out.size());
    if (count == 0) return 0;
    // With a single position left, stride * step might not fit; it is not needed then.
    return input_->read(iteration, offset_ + first * step_, count > 1 ? stride * step_ : 1,
                        out.first(count));
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    for (std::uint64_t& position : positions) position = offset_ + position * step_;
    input_->read_at(iteration, positions, out);
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  std::uint64_t offset_;
  std::uint64_t step_;
  std::uint64_t limit_;
};

class Selection final : public Order {
 public:
  Selection(OrderPtr input, std::uint64_t offset, std::uint64_t step,
            std::optional<std::uint64_t> size, std::string verb)
      : input_(std::move(input)),
        offset_(offset),
        step_(step),
        size_(size),
        verb_(std::move(verb)) {}

  std::optional<std::uint64_t> size() const noexcept override { return size_; }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  bool is_stream() const noexcept override { return input_->is_stream(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<SelectionCursor>(input_->open(), offset_, step_,
                                             size_.value_or((kEndless - offset_) / step_));
  }
  std::string describe() const override { return input_->describe() + "." + verb_; }

 private:
  OrderPtr input_;
  std::uint64_t offset_;
  std::uint64_t step_;
  std::optional<std::uint64_t> size_;
  std::string verb_;
};

/// The order whose position p is the input's position offset + p * step. A read passes down as
/// (first, stride), so that it stays one call however many selections lie on top of each other.
///
/// `size` counts its positions, none for an endless one; `verb` is what describe() appends.
OrderPtr select(OrderPtr input, std::uint64_t offset, std::uint64_t step,
                std::optional<std::uint64_t> size, std::string verb) {
  return std::make_shared<Selection>(std::move(input), offset, step, size, std::move(verb));
}

}  // namespace

OrderPtr take(OrderPtr input, std::uint64_t count) {
  const std::uint64_t size = std::min(count, input->size().value_or(count));
  return select(std::move(input), 0, 1, size, fmt::format("take({})", count));
}

OrderPtr skip(OrderPtr input, std::uint64_t count) {
  std::optional<std::uint64_t> size = input->size();
  if (size) *size -= std::min(count, *size);
  return select(std::move(input), count, 1, size, fmt::format("skip({})", count));
}

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
  return select(std::move(input), offset, step, size, fmt::format("shard({}, {})", shards, index));
}

}  // namespace penstock::order
