// A cursor whose input throws has lost nothing: the next read is right again.
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kSize = 5'000;

/// range(kSize), whose reads throw while `*fails`.
class Failing final : public order::Order {
 public:
  explicit Failing(const bool* fails) : fails_(fails) {}
  std::optional<std::uint64_t> size() const noexcept override { return kSize; }
  std::optional<std::uint32_t> epochs() const noexcept override { return 1; }
  std::string describe() const override { return "failing"; }
  std::unique_ptr<order::OrderCursor> open() const override {
    return std::make_unique<Cursor>(fails_);
  }

 private:
  class Cursor final : public order::OrderCursor {
   public:
    explicit Cursor(const bool* fails) : fails_(fails) {}
    std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                     std::span<SampleId> out) override {
      if (*fails_) throw std::runtime_error("told to fail");
      return input_->read(iteration, first, stride, out);
    }
    std::size_t memory_bytes() const noexcept override { return sizeof(*this); }

   private:
    const bool* fails_;
    std::unique_ptr<order::OrderCursor> input_ = order::range(kSize)->open();
  };
  const bool* fails_;
};

TEST(FailingInput, LeavesEveryOperationRightAfterwards) {
  bool fails = false;
  const auto input = std::make_shared<Failing>(&fails);
  const RandomKey key(7, 1);
  for (const order::OrderPtr& order :
       {order::shard(input, 2, 1), order::repeat(input, 2), order::shuffle(input, key),
        order::shuffle_window(input, key, 30),
        order::shuffle_window(order::shuffle_window(input, key, 20), RandomKey(8, 1), 40)}) {
    const reference::Samples all = read(order, *order->size());
    const auto cursor = order->open();
    std::uint64_t first = 0;
    for (int k = 0; k < 60; ++k) {  // near and far, ahead and back
      fails = true;
      EXPECT_THROW((void)read(*cursor, 0, first, 1, 100), std::runtime_error);
      fails = false;
      ASSERT_EQ(read(*cursor, 0, first, 1, 100),
                reference::Samples(all.begin() + static_cast<long>(first),
                                   all.begin() + static_cast<long>(first) + 100))
          << order->describe() << ", from position " << first;
      first = (first + (k % 3 == 0 ? 1'790 : 170)) % (all.size() - 100);
    }
  }
}

}  // namespace
}  // namespace penstock
