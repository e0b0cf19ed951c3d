#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;

TEST(Dataset, LeavesThePlanItWasCalledOnAsItWas) {
  const Dataset source(fake(100));
  const Dataset half = source.take(50);
  EXPECT_EQ(source.size(), 100U);
  EXPECT_EQ(half.size(), 50U);
  EXPECT_EQ(half.batch(8).size(), 7U);
  EXPECT_EQ(half.batch(8, {.remainder = Remainder::drop}).size(), 6U);
  EXPECT_EQ(half.batch(8).repeat(3).size(), 21U);
  EXPECT_EQ(half.repeat().size(), std::nullopt);
  EXPECT_EQ(half.repeat().batch(8).size(), std::nullopt);
  EXPECT_EQ(half.repeat().batch(8).take(5).size(), 5U);
  EXPECT_EQ(half.repeat().batch(8).skip(5).size(), std::nullopt);
  EXPECT_EQ(half.batch(8).repeat().size(), std::nullopt);
}

// Code that asks for one of the others would take it for the last.
TEST(Dataset, RefusesEnumsThatHaveNoSuchValue) {
  const auto refused = [](const auto& call, const std::string& message) {
    EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(message)));
  };
  const Dataset data(fake(10));
  const Dataset batches = data.batch(2);
  refused([&] { (void)data.batch(2, {.remainder = static_cast<Remainder>(9)}); },
          "batch: remainder: expected one of keep, drop, pad, found the number 9");
  refused(
      [&] { (void)batches.prefetch_to_devices(host_devices(2), {.split = static_cast<Split>(7)}); },
      "prefetch_to_devices: split: expected one of scatter, round_robin, shard_early, found the "
      "number 7");
  refused([&] { (void)batches.loader({.on_fault = static_cast<OnFault>(3)}); },
          "loader: on_fault: expected one of raise, replace, mask, found the number 3");
  refused([&] { (void)batches.loader({.mode = static_cast<InputMode>(3)}); }, "loader: mode: ");
  refused(
      [&] {
        (void)mix({data, data}, {.until = static_cast<MixUntil>(5)});
      },
      "mix: until: expected one of first_exhausted, all_exhausted, found the number 5");
  refused(
      [&] { (void)decode_image({.crop = resize_to(8), .decoder = static_cast<JpegDecoder>(9)}); },
      "decode_image: decoder: expected one of ");
  refused(
      [&] { (void)decode_image({.crop = resize_to(8), .filter = static_cast<ResizeFilter>(99)}); },
      "decode_image: filter: expected one of ");
}

TEST(Dataset, DescribesItselfAsWritten) {
  EXPECT_EQ(Dataset(fake(9))
                .shuffle({.seed = 7})
                .repeat()
                .batch(4, {.remainder = Remainder::drop})
                .prefetch_to_devices(host_devices(2))
                .describe(),
            "fake(size=9).shuffle(seed=7).repeat().batch(4, remainder='drop')"
            ".prefetch_to_devices(['host:0', 'host:1'])");
}

TEST(Dataset, RefusesAPlanThatCannotWorkWhereItIsWritten) {
  const Dataset source(fake(100));
  const auto throws = [](auto&& build, const char* words) {
    EXPECT_THAT(build, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  throws([&] { (void)source.batch(4).batch(2); }, "the plan has batch(4) already");
  throws([&] { (void)source.batch(0); }, "at least 1 row");
  throws([&] { (void)source.repeat().shuffle(); }, "shuffle");
  throws([&] { (void)source.shuffle({.buffer = 0}); }, "buffer");
  throws([&] { (void)source.repeat().batch(4).shuffle(); }, "endless");
  throws([&] { (void)source.batch(4).repeat().shuffle(); }, "endless");
  throws([&] { (void)source.repeat(-1); }, "-1");
  throws([&] { (void)source.repeat().repeat(); }, "endless");
  throws([&] { (void)source.repeat().batch(4).repeat(2); }, "endless already");
  throws([&] { (void)source.repeat().take(12).batch(4).repeat(2); },
         "have an endless repeat in them");
  throws(
      [&] {
        (void)mix({source.repeat(), source.repeat().take(5)}, {.weights = {1, 1}})
            .batch(4)
            .repeat();
      },
      "have an endless repeat in them");
  throws([&] { (void)source.shard(4, 4); }, "4");
  throws([&] { (void)source.map(nullptr); }, "null");
  throws([&] { (void)source.batch(4).map(decode_image({.crop = center_crop(8)})); },
         "before batch");
  throws([&] { (void)source.map(decode_image({.crop = center_crop(8)})); }, "image");
  throws([&] { (void)source.prefetch_to_devices(host_devices(1)); }, ".batch(g)");
  throws([&] { (void)source.batch(4).prefetch_to_devices({}); }, "needs a device");
  throws([&] { (void)source.batch(4).prefetch_to_devices(host_devices(1), {.depth = 0}); },
         "depth");
  throws([&] { (void)source.batch(4).prefetch_to_devices(host_devices(1)).take(1); },
         "last operation");
  throws([&] { (void)source.loader(); }, ".batch(g)");
  throws([&] { (void)source.batch(5).prefetch_to_devices(host_devices(2)).loader(); }, "uneven");
  throws([&] { (void)source.batch(4).loader({.threads = -1}); }, "threads");
  throws(
      [&] {
        (void)source.seed(1).batch(4).loader(
            {.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = 2}});
      },
      "input_pipeline_id");
}

TEST(Dataset, KnowsItsSamplesAlsoAfterBatch) {
  const Dataset samples = Dataset(fake(22)).shuffle();
  EXPECT_EQ(samples.samples(), 22U);
  EXPECT_EQ(samples.batch(5).samples(), 22U);
  EXPECT_EQ(samples.batch(5, {.remainder = Remainder::pad}).samples(), 22U);
  EXPECT_EQ(samples.batch(5, {.remainder = Remainder::drop}).samples(), 20U);
  EXPECT_EQ(samples.repeat(2).batch(5).samples(), 44U);
  EXPECT_EQ(samples.batch(5).repeat(2).samples(), 44U);
  EXPECT_EQ(samples.batch(5).take(3).samples(), 15U);
  EXPECT_EQ(samples.batch(5).skip(4).samples(), 5U) << "at the most";
  EXPECT_EQ(samples.batch(20).take(1).repeat(2).samples(), 40U);
  EXPECT_EQ(samples.batch(20).skip(1).repeat(3).samples(), 60U) << "at the most: it is 6";
  EXPECT_EQ(samples.repeat().batch(5).take(3).samples(), 15U);
  EXPECT_EQ(samples.repeat().batch(5).samples(), std::nullopt);
  EXPECT_EQ(samples.batch(5).repeat().samples(), std::nullopt);
  EXPECT_EQ(samples.take(0).batch(5).samples(), 0U);

  EXPECT_EQ(samples.remainder(), std::nullopt);
  EXPECT_EQ(samples.batch(5, {.remainder = Remainder::pad}).remainder(), Remainder::pad);
}

TEST(Dataset, HasNoBatchesWhenAnEmptySourceIsRepeatedForEver) {
  EXPECT_EQ(Dataset(fake(0)).repeat().batch(4).size(), 0U);
  EXPECT_EQ(Dataset(fake(0)).batch(4).repeat().size(), 0U);
}

}  // namespace
}  // namespace penstock
