#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

class RepeatCursor final : public OrderCursor {
 public:
  /// `times` is none for an endless repeat, whose `size` is kEndless.
  RepeatCursor(std::unique_ptr<OrderCursor> input, std::uint64_t input_size,
               std::optional<std::uint64_t> times, std::uint64_t size)
      : input_(std::move(input)), input_size_(input_size), times_(times), size_(size) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = order::positions_left(size_, first, stride, out.size());
    if (count == 0) return 0;
    if (!times_ && iteration != 0)
      throw std::out_of_range(fmt::format(
          "repeat: an endless repeat has only iteration 0, but iteration {} was read: give the "
          "repeat a number of times",
          iteration));

    std::uint64_t pass = iteration * times_.value_or(0) + first / input_size_;
    std::uint64_t at = first % input_size_;
    for (std::size_t done = 0;;) {
      const std::size_t run = order::positions_left(input_size_, at, stride, count - done);
      if (pass > UINT32_MAX)
        throw std::out_of_range(fmt::format(
            "repeat: epochs are counted in 32 bits, and position {} of iteration {} lies in run {} "
            "through an input of {}: repeat a larger input, or start a new plan",
            first + done * stride, iteration, pass, input_size_));
      input_->read(static_cast<std::uint32_t>(pass), at, stride, out.subspan(done, run));
      done += run;
      if (done == count) return count;
      at += run * stride;
      pass += at / input_size_;
      at %= input_size_;
    }
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + input_->memory_bytes();
  }

 private:
  std::unique_ptr<OrderCursor> input_;
  std::uint64_t input_size_;
  std::optional<std::uint64_t> times_;
  std::uint64_t size_;
};

class Repeat final : public Order {
 public:
  Repeat(OrderPtr input, std::optional<std::uint64_t> times, std::optional<std::uint64_t> size,
         std::optional<std::uint32_t> epochs)
      : input_(std::move(input)), times_(times), size_(size), epochs_(epochs) {}

  std::optional<std::uint64_t> size() const noexcept override { return size_; }
  std::optional<std::uint32_t> epochs() const noexcept override { return epochs_; }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<RepeatCursor>(input_->open(), *input_->size(), times_,
                                          size_.value_or(order::kEndless));
  }
  std::string describe() const override {
    return input_->describe() + (times_ ? fmt::format(".repeat({})", *times_) : ".repeat()");
  }

 private:
  OrderPtr input_;
  std::optional<std::uint64_t> times_;
  std::optional<std::uint64_t> size_;
  std::optional<std::uint32_t> epochs_;
};

}  // namespace

OrderPtr repeat(OrderPtr input, std::optional<std::int64_t> times) {
  const auto fail = [&](std::string_view why) {
    throw std::invalid_argument(fmt::format("{}.repeat({}): {}", input->describe(),
                                            times ? std::to_string(*times) : "", why));
  };
  if (times && *times < 0)
    fail(fmt::format("expected 0 or more times, found {}; leave the number out to repeat endlessly",
                     *times));
  if (input->is_stream())
    fail("the samples of a stream come once, so there is no second run: leave the repeat out");
  if (!input->size())
    fail("the input is endless already, so nothing would follow it: repeat it once only");
  if (!input->epochs())
    fail(
        "the input has an endless repeat in it, so a second run through it would have no epoch "
        "numbers: give the inner repeat a number of times");

  const std::uint64_t input_size = *input->size();
  const std::uint64_t input_epochs = *input->epochs();
  if (!times) {
    // Endless over nothing is nothing, and may be repeated like any other nothing.
    if (input_size == 0) return std::make_shared<Repeat>(std::move(input), times, 0, 0);
    return std::make_shared<Repeat>(std::move(input), times, std::nullopt, std::nullopt);
  }
  const auto count = static_cast<std::uint64_t>(*times);
  if (count > UINT32_MAX || count * input_epochs > UINT32_MAX)
    fail(fmt::format("expected fewer than 2^32 epochs, found {} times {}: repeat fewer times",
                     count, input_epochs));
  if (count != 0 && input_size > (order::kEndless - 1) / count)
    fail(
        fmt::format("expected fewer than 2^64 positions, found {} times {}: repeat fewer times, or "
                    "endlessly",
                    count, input_size));
  return std::make_shared<Repeat>(std::move(input), count, count * input_size,
                                  static_cast<std::uint32_t>(count * input_epochs));
}

}  // namespace penstock::order
