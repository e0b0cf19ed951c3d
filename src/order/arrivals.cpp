#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/positions.hpp"
#include "src/order/stream_window.hpp"

namespace penstock::order {

void require_forward(std::uint32_t iteration, std::uint64_t first, std::uint64_t next) {
  if (iteration != 0)
    throw std::out_of_range(
        fmt::format("a stream has one iteration, but iteration {} was read: its samples come once, "
                    "so there is no second epoch",
                    iteration));
  if (first < next)
    throw std::logic_error(fmt::format(
        "position {} of a stream was asked for, but it stands at {}: its samples come once, so it "
        "cannot be read again or resumed; continue from {}, or start again with a new stream",
        first, next, next));
}

namespace {

using Arrived = std::function<std::uint64_t(std::uint64_t wanted)>;

class ArrivalsCursor final : public OrderCursor {
 public:
  ArrivalsCursor(std::shared_ptr<const Arrived> arrived, std::uint32_t source)
      : arrived_(std::move(arrived)), source_(source) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    require_forward(iteration, first, next_);
    const std::size_t asked = positions_left(kEndless, first, stride, out.size());
    if (asked == 0) return 0;
    const std::uint64_t wanted = first + (asked - 1) * stride + 1;
    const std::size_t count = positions_left((*arrived_)(wanted), first, stride, asked);
    for (std::size_t k = 0; k < count; ++k) out[k] = {first + k * stride, 0, source_};
    if (count != 0) next_ = first + (count - 1) * stride + 1;
    return count;
  }

  std::size_t memory_bytes() const noexcept override { return sizeof(*this); }

 private:
  std::shared_ptr<const Arrived> arrived_;
  std::uint32_t source_;
  std::uint64_t next_ = 0;
};

class Arrivals final : public Order {
 public:
  Arrivals(Arrived arrived, std::uint32_t source)
      : arrived_(std::make_shared<const Arrived>(std::move(arrived))), source_(source) {}

  std::optional<std::uint64_t> size() const noexcept override { return std::nullopt; }
  std::optional<std::uint32_t> epochs() const noexcept override { return 1; }
  bool is_stream() const noexcept override { return true; }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<ArrivalsCursor>(arrived_, source_);
  }
  std::string describe() const override {
    return source_ == 0 ? "arrivals()" : fmt::format("arrivals(source={})", source_);
  }

 private:
  std::shared_ptr<const Arrived> arrived_;
  std::uint32_t source_;
};

}  // namespace

OrderPtr arrivals(Arrived arrived, std::uint32_t source) {
  if (!arrived)
    throw std::invalid_argument(
        "arrivals: expected a function that waits for samples, found none: pass one that returns "
        "how many have arrived");
  return std::make_shared<Arrivals>(std::move(arrived), source);
}

}  // namespace penstock::order
