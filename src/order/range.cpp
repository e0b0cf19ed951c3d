#include <fmt/format.h>

#include "src/order/operations.hpp"
#include "src/order/positions.hpp"

namespace penstock::order {
namespace {

class RangeCursor final : public OrderCursor {
 public:
  RangeCursor(std::uint64_t size, std::uint32_t source) : size_(size), source_(source) {}

  std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                   std::span<SampleId> out) override {
    const std::size_t count = order::positions_left(size_, first, stride, out.size());
    for (std::size_t k = 0; k < count; ++k) out[k] = {first + k * stride, iteration, source_};
    return count;
  }

  void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
               std::span<SampleId> out) override {
    for (std::size_t k = 0; k < positions.size(); ++k) out[k] = {positions[k], iteration, source_};
  }

  std::size_t memory_bytes() const noexcept override { return sizeof(*this); }

 private:
  std::uint64_t size_;
  std::uint32_t source_;
};

class Range final : public Order {
 public:
  Range(std::uint64_t size, std::uint32_t source) : size_(size), source_(source) {}

  std::optional<std::uint64_t> size() const noexcept override { return size_; }
  std::optional<std::uint32_t> epochs() const noexcept override { return 1; }
  std::unique_ptr<OrderCursor> open() const override {
    return std::make_unique<RangeCursor>(size_, source_);
  }
  std::string describe() const override {
    return source_ == 0 ? fmt::format("range({})", size_)
                        : fmt::format("range({}, source={})", size_, source_);
  }

 private:
  std::uint64_t size_;
  std::uint32_t source_;
};

}  // namespace

OrderPtr range(std::uint64_t size, std::uint32_t source) {
  return std::make_shared<Range>(size, source);
}

}  // namespace penstock::order
