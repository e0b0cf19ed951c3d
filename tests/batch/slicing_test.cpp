#include "src/batch/slicing.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::uint64_t> rows(const std::vector<batch::Slice>& slices) {
  std::vector<std::uint64_t> result;
  for (const batch::Slice& slice : slices) result.push_back(slice.rows);
  return result;
}

std::vector<std::uint64_t> samples(const std::vector<batch::Slice>& slices) {
  std::vector<std::uint64_t> result;
  for (const batch::Slice& slice : slices) result.push_back(slice.samples);
  return result;
}

TEST(Slicing, GivesEveryReplicaAContiguousSliceOfAFullBatch) {
  const auto slices = batch::Slicing(16, 4, Remainder::keep, false).slices(3, 16);
  EXPECT_THAT(rows(slices), ElementsAre(4, 4, 4, 4));
  for (std::uint64_t replica = 0; replica < 4; ++replica)
    EXPECT_EQ(slices[replica].first, replica * 4);
}

TEST(Slicing, TurnsTheExtraRowsOfUnevenBatchesAround) {
  // SEMANTICS D4's own example: g = 7, two workers of two.
  const batch::Slicing slicing(7, 4, Remainder::keep, true);
  EXPECT_THAT(rows(slicing.slices(0, 7)), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(rows(slicing.slices(1, 7)), ElementsAre(2, 2, 1, 2));
  EXPECT_THAT(rows(slicing.slices(2, 7)), ElementsAre(2, 1, 2, 2));
  EXPECT_THAT(rows(slicing.slices(3, 7)), ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(slicing.max_rows(), 2U);
}

TEST(Slicing, SpreadsAShortLastBatchOverAllReplicas) {
  EXPECT_THAT(rows(batch::Slicing(16, 4, Remainder::keep, false).slices(6, 7)),
              ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(rows(batch::Slicing(16, 4, Remainder::keep, false).slices(6, 1)),
              ElementsAre(1, 0, 0, 0));
}

TEST(Slicing, FillsAPaddedBatchFromTheFront) {
  const auto slices = batch::Slicing(16, 4, Remainder::pad, false).slices(6, 7);
  EXPECT_THAT(rows(slices), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(samples(slices), ElementsAre(4, 3, 0, 0));
}

TEST(Slicing, DealsRoundRobinBatchesLikeSlicesAndFillsAShortStepFromTheFront) {
  const batch::Slicing slicing(16, 4, Remainder::keep, false, Split::round_robin);
  EXPECT_THAT(rows(slicing.slices(5, 16)), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(rows(slicing.slices(6, 7)), ElementsAre(4, 3, 0, 0));
  EXPECT_THAT(
      ([] { batch::Slicing(7, 4, Remainder::keep, true, Split::round_robin); }),
      ThrowsMessage<std::invalid_argument>(HasSubstr("only the split 'scatter' can be uneven")));
}

TEST(Slicing, CoversEveryRowOnceForEverySizeAndStep) {
  for (std::uint64_t g = 1; g <= 12; ++g)
    for (std::uint64_t replicas = 1; replicas <= 5; ++replicas)
      for (const Remainder remainder : {Remainder::keep, Remainder::pad})
        for (std::uint64_t step = 0; step < 7; ++step)
          for (std::uint64_t count = 1; count <= g; ++count) {
            const batch::Slicing slicing(g, replicas, remainder, true);
            std::uint64_t next = 0;
            std::uint64_t delivered = 0;
            for (const batch::Slice& slice : slicing.slices(step, count)) {
              ASSERT_EQ(slice.first, next);
              ASSERT_LE(slice.rows, slicing.max_rows());
              ASSERT_LE(slice.samples, slice.rows);
              next += slice.rows;
              delivered += slice.samples;
            }
            ASSERT_EQ(next, remainder == Remainder::pad ? g : count);
            ASSERT_EQ(delivered, count);
          }
}

TEST(Slicing, StaysRightAtStepsWhoseProductWouldWrap) {
  const batch::Slicing slicing(7, 4, Remainder::keep, true);
  const std::uint64_t step = ~std::uint64_t{0} / 4 * 4 + 1;  // congruent to 1 modulo 4
  EXPECT_EQ(rows(slicing.slices(step, 7)), rows(slicing.slices(1, 7)));
}

TEST(Slicing, RefusesAnIndivisibleBatchAndNamesTheRemedies) {
  EXPECT_THAT(
      [] { batch::Slicing(30, 4, Remainder::keep, false); },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("30"), HasSubstr("4 replicas"),
                                                 HasSubstr("such as 32"), HasSubstr("uneven"))));
  EXPECT_THROW(batch::Slicing(0, 1, Remainder::keep, false), std::invalid_argument);
  EXPECT_THROW(batch::Slicing(1, 0, Remainder::keep, false), std::invalid_argument);
}

}  // namespace
}  // namespace penstock
