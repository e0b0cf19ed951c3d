#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

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
