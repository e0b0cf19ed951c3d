// Highway picks the widest instructions of the machine; the order must not notice.
#include <cstdint>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

TEST(Order, IsTheSameWithEveryInstructionSet) {
  const RandomKey key(7, 0);
  const order::OrderPtr whole = order::shuffle(order::range(5'001), key);
  const order::OrderPtr huge = order::shuffle(order::range(UINT64_MAX), key);  // halves of 32 bits
  const order::OrderPtr window = order::shuffle_window(order::range(5'001), key, 90);
  const auto expected_whole = reference::permutation(5'001, key, 0);
  const auto expected_huge = read(huge, 100);
  const auto expected_window =
      reference::shuffle_window(reference::range(5'001), key, 90, true)(0, 5'001);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(numbers(read(whole, 5'001)), expected_whole) << hwy::TargetName(target);
    EXPECT_EQ(read(huge, 100), expected_huge) << hwy::TargetName(target);
    EXPECT_EQ(read(window, 5'001), expected_window) << hwy::TargetName(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace penstock
