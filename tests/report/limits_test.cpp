// Runs that one stage limits, and what their reports say.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/report/report.hpp>

#include "tests/busy.hpp"
#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::fake;
using testing_support::SlowStage;
using testing_support::too_busy;

class Limit : public testing::TestWithParam<std::pair<Stage, const char*>> {};

TEST_P(Limit, IsNamedWithWhatWouldHelp) {
  const auto [stage, begins] = GetParam();
  SlowStage slow(stage);
  Loader loader = Dataset(fake(1'000))
                      .repeat()
                      .batch(4)
                      .prefetch_to_devices(host_devices(1), {.depth = 2})
                      .loader({.threads = 1, .observer = &slow});
  for (int step = 0; step < 30; ++step) ASSERT_TRUE(loader.next());
  const Report report = Report::of(loader);
  std::printf("| %s | %s |\n", std::string(name_of(stage)).c_str(), report.advice().c_str());
  if (report.stats.bottleneck() != name_of(stage)) {
    if (const std::string reason = too_busy(); !reason.empty()) GTEST_SKIP() << reason;
  }
  EXPECT_THAT(report.advice(), StartsWith(begins));
  EXPECT_THAT(report.to_text(), HasSubstr(std::string(name_of(stage)) + ": " + report.advice()));
}

INSTANTIATE_TEST_SUITE_P(
    Report, Limit,
    testing::Values(std::pair{Stage::order, "the order limits the speed: drawing it took 0."},
                    std::pair{Stage::slot, "no slot was free: "},
                    std::pair{Stage::read, "reading limits the speed: a read takes about 1"},
                    std::pair{Stage::decode, "decoding limits the speed: 1 thread can do about "},
                    std::pair{Stage::copy, "copying to the devices limits the speed: it is "},
                    std::pair{Stage::device_transform,
                              "transforming batches limits the speed: it is "}),
    [](const auto& test) { return std::string(name_of(test.param.first)); });

TEST(Limits, AConsumerIsToldWhatTheInputCouldDo) {
  Loader loader = Dataset(fake(1'000)).repeat().batch(4).loader({.threads = 2});
  for (int step = 0; step < 20; ++step) {
    ASSERT_TRUE(loader.next());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const Report report = Report::of(loader);
  std::printf("| consumer | %s |\n", report.advice().c_str());
  if (report.stats.bottleneck() != "consumer") {
    if (const std::string reason = too_busy(); !reason.empty()) GTEST_SKIP() << reason;
  }
  EXPECT_THAT(report.advice(), StartsWith("the input keeps up: the consumer limits the speed"));
}

}  // namespace
}  // namespace penstock
