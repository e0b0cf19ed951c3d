#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/permutation.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

class ShuffleCursor final : public OrderCursor {
 public:
  ShuffleCursor(std::unique_ptr<OrderCursor> input, std::uint64_t size, const RandomKey& key,
                bool reshuffle)
      : input_(std::move(input)), size_(size), key_(key), reshuffle_(reshuffle) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    return order::read_in_chunks(*this, size_, iteration, first, stride, out);
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    const std::uint32_t drawn = reshuffle_ ? iteration : 0;
    if (drawn_ != drawn) {
      permutation_ = order::Permutation(size_, key_, drawn);
      drawn_ = drawn;
    }
    permutation_.apply(positions);
    input_->read_at(iteration, positions, out);
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  std::uint64_t size_;
  RandomKey key_;
  bool reshuffle_;
  std::optional<std::uint32_t> drawn_;  ///< the iteration that permutation_ is for
  order::Permutation permutation_;
};

class Shuffle final : public Order {
 public:
  Shuffle(OrderPtr input, const RandomKey& key, bool reshuffle)
      : input_(std::move(input)), key_(key), reshuffle_(reshuffle) {}

  std::optional<std::uint64_t> size() const noexcept override { return input_->size(); }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<ShuffleCursor>(input_->open(), *input_->size(), key_, reshuffle_);
  }
  std::string describe() const override {
    return input_->describe() + (reshuffle_ ? ".shuffle()" : ".shuffle(reshuffle=false)");
  }

 private:
  OrderPtr input_;
  RandomKey key_;
  bool reshuffle_;
};

}  // namespace

OrderPtr shuffle(OrderPtr input, RandomKey key, bool reshuffle) {
  if (input->is_stream())
    throw std::invalid_argument(fmt::format(
        "{}.shuffle(): a full shuffle needs the complete data set, and the samples of a stream "
        "arrive one after another: give shuffle a buffer",
        input->describe()));
  if (!input->size())
    throw std::invalid_argument(fmt::format(
        "{}.shuffle(): a whole shuffle needs an input that ends, and this one is endless: put "
        "shuffle before repeat, or give shuffle a buffer",
        input->describe()));
  return std::make_shared<Shuffle>(std::move(input), key, reshuffle);
}

}  // namespace penstock::order
