// Runs that one stage limits, and what their reports say.
#include <cstdio>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/report/report.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/loader/slow_stage.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::consume_slowly;
using testing_support::fake;
using testing_support::SlowStage;

class Limit : public testing::TestWithParam<std::pair<Stage, const char*>> {};

TEST_P(Limit, IsNamedWithWhatWouldHelp) {
  const auto [stage, begins] = GetParam();
  SlowStage slow(stage);
  Loader loader = Dataset(fake(1'000))
                      .repeat()
                      .batch(4)
                      .prefetch_to_devices(host_devices(1), {.depth = 2})
                      .loader({.threads = 1, .observer = &slow});
  slow.watch(loader);
  for (int step = 0; step < 30; ++step) EXPECT_TRUE(loader.next());
  const Report report = Report::of(loader);
  slow.release();
  std::printf("| %s | %s |\n", std::string(name_of(stage)).c_str(), report.advice().c_str());
  EXPECT_THAT(report.advice(), StartsWith(begins));
  EXPECT_THAT(report.to_text(), HasSubstr(std::string(name_of(stage)) + ": " + report.advice()));
}

INSTANTIATE_TEST_SUITE_P(
    Report, Limit,
    testing::Values(std::pair{Stage::order, "the order limits the speed: drawing it took "},
                    std::pair{Stage::slot, "no slot was free: "},
                    std::pair{Stage::read, "reading limits the speed: a read takes about "},
                    std::pair{Stage::decode, "decoding limits the speed: 1 thread can do about "},
                    std::pair{Stage::copy, "copying to the devices limits the speed: it is "},
                    std::pair{Stage::device_transform,
                              "transforming batches limits the speed: it is "}),
    [](const auto& test) { return std::string(name_of(test.param.first)); });

TEST(Limits, AConsumerIsToldWhatTheInputCouldDo) {
  Loader loader = Dataset(fake(1'000)).repeat().batch(4).loader({.threads = 2});
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(loader.next());
    consume_slowly(loader);
  }
  const Report report = Report::of(loader);
  std::printf("| consumer | %s |\n", report.advice().c_str());
  EXPECT_THAT(report.advice(), StartsWith("the input keeps up: the consumer limits the speed"));
}

}  // namespace
}  // namespace penstock
