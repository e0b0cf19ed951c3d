#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/joined.hpp"
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

class RepeatEachCursor final : public OrderCursor {
 public:
  RepeatEachCursor(std::unique_ptr<OrderCursor> input, std::uint64_t times, std::uint64_t size)
      : input_(std::move(input)), times_(times), size_(size) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    constexpr std::size_t kMost = 256;
    const std::size_t count = order::positions_left(size_, first, stride, out.size());
    for (std::size_t done = 0; done < count;) {
      const std::size_t chunk = std::min(kMost, count - done);
      read_chunk(iteration, first + done * stride, stride, out.subspan(done, chunk));
      done += chunk;
    }
    order::number_draws(out.first(count), first, stride);
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    const std::vector<std::uint64_t> own(positions.begin(), positions.end());
    for (std::uint64_t& position : positions) position /= times_;
    input_->read_at(iteration, positions, out);
    for (std::size_t k = 0; k < own.size(); ++k) out[k].draw = own[k] + 1;
  }

  std::size_t memory_bytes() const noexcept override {
    return sizeof(*this) + scratch_.capacity() * sizeof(scratch_[0]) + input_->memory_bytes();
  }

 private:
  // Positions that lie near each other: the input is read forwards, each of its samples once.
  void read_chunk(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                  std::span<SampleId> out) {
    const std::uint64_t begin = first / times_;
    const std::uint64_t step = std::max<std::uint64_t>(stride / times_, 1);
    if (stride % times_ != 0 && step > 1) {  // steps of two lengths in the input
      std::vector<std::uint64_t> positions(out.size());
      for (std::size_t k = 0; k < out.size(); ++k) positions[k] = (first + k * stride) / times_;
      input_->read_at(iteration, positions, out);
      return;
    }
    const auto place = [&](std::size_t k) {
      return static_cast<std::size_t>(((first + k * stride) / times_ - begin) / step);
    };
    scratch_.resize(place(out.size() - 1) + 1);
    input_->read(iteration, begin, step, scratch_);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = scratch_[place(k)];
  }

  std::unique_ptr<OrderCursor> input_;
  std::uint64_t times_;
  std::uint64_t size_;
  std::vector<SampleId> scratch_;
};

class RepeatEach final : public Order {
 public:
  RepeatEach(OrderPtr input, std::uint64_t times) : input_(std::move(input)), times_(times) {}

  std::optional<std::uint64_t> size() const noexcept override {
    const auto size = input_->size();
    return size ? std::optional(*size * times_) : std::nullopt;
  }
  std::optional<std::uint32_t> epochs() const noexcept override { return input_->epochs(); }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<RepeatEachCursor>(input_->open(), times_,
                                              size().value_or(order::kEndless));
  }
  std::string describe() const override {
    return input_->describe() + fmt::format(".repeat_each({})", times_);
  }

 private:
  OrderPtr input_;
  std::uint64_t times_;
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

OrderPtr repeat_each(OrderPtr input, std::int64_t times) {
  order::refuse_stream(*input, "repeat_each");
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("{}.repeat_each({}): {}", input->describe(), times, why));
  };
  if (times < 1) fail(fmt::format("expected 1 or more times, found {}", times));
  const auto count = static_cast<std::uint64_t>(times);
  if (input->size().value_or(0) > (order::kEndless - 1) / count)
    fail(fmt::format("expected fewer than 2^64 positions, found {} times {}: repeat fewer times",
                     count, *input->size()));
  return std::make_shared<RepeatEach>(std::move(input), count);
}

}  // namespace penstock::order
