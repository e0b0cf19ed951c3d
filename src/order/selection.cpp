#include "src/order/selection.hpp"

#include <utility>

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

}  // namespace

OrderPtr select(OrderPtr input, std::uint64_t offset, std::uint64_t step,
                std::optional<std::uint64_t> size, std::string verb) {
  return std::make_shared<Selection>(std::move(input), offset, step, size, std::move(verb));
}

}  // namespace penstock::order
