#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/joined.hpp"
#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

class ConcatenateCursor final : public OrderCursor {
 public:
  /// `ends`[i] is the first position behind input i.
  ConcatenateCursor(std::vector<std::unique_ptr<OrderCursor>> inputs,
                    std::vector<std::uint64_t> ends)
      : inputs_(std::move(inputs)), ends_(std::move(ends)) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::uint64_t size = ends_.empty() ? 0 : ends_.back();
    const std::size_t count = order::positions_left(size, first, stride, out.size());
    for (std::size_t done = 0; done < count;) {
      const std::uint64_t at = first + done * stride;
      const std::size_t input = input_of(at);
      const std::uint64_t start = start_of(input);
      const std::size_t run = order::positions_left(ends_[input], at, stride, count - done);
      inputs_[input]->read(iteration, at - start, stride, out.subspan(done, run));
      done += run;
    }
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    buckets_.sort(positions, inputs_.size(), [&](std::uint64_t position) {
      const std::size_t input = input_of(position);
      return std::pair(input, position - start_of(input));
    });
    buckets_.read(inputs_, iteration, out);
  }

  std::size_t memory_bytes() const noexcept override {
    std::size_t total = sizeof(*this) + buckets_.memory_bytes();
    for (const auto& input : inputs_) total += input->memory_bytes();
    return total;
  }

 private:
  [[nodiscard]] std::size_t input_of(std::uint64_t position) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
  }
  [[nodiscard]] std::uint64_t start_of(std::size_t input) const {
    return input == 0 ? 0 : ends_[input - 1];
  }

  std::vector<std::unique_ptr<OrderCursor>> inputs_;
  std::vector<std::uint64_t> ends_;
  order::Buckets buckets_;
};

class Concatenate final : public Order {
 public:
  Concatenate(std::vector<OrderPtr> inputs, std::vector<std::uint64_t> ends)
      : inputs_(std::move(inputs)), ends_(std::move(ends)) {}

  std::optional<std::uint64_t> size() const noexcept override {
    if (ends_.empty()) return 0;
    return ends_.back() == order::kEndless ? std::nullopt : std::optional(ends_.back());
  }
  std::optional<std::uint32_t> epochs() const noexcept override {
    return order::most_epochs(inputs_);
  }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<ConcatenateCursor>(order::open_all(inputs_), ends_);
  }
  std::string describe() const override {
    return "concatenate(" + order::describe_all(inputs_) + ")";
  }

 private:
  std::vector<OrderPtr> inputs_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace

OrderPtr concatenate(std::vector<OrderPtr> inputs) {
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    order::refuse_stream(*inputs[k], "concatenate");
    const auto size = inputs[k]->size();
    if (!size && k + 1 < inputs.size())
      throw std::invalid_argument(
          fmt::format("concatenate: input {} ({}) is endless, so nothing would follow it: put it "
                      "last, or take what you need of it",
                      k, inputs[k]->describe()));
    if (size && *size >= order::kEndless - end)
      throw std::invalid_argument("concatenate: expected fewer than 2^64 positions in all");
    end = size ? end + *size : order::kEndless;
    ends.push_back(end);
  }
  return std::make_shared<Concatenate>(std::move(inputs), std::move(ends));
}

}  // namespace penstock::order
