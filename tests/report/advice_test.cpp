#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/report/report.hpp>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 1,000 samples in 10 s on 2 threads, of which the caller waited 9 s for `stage`.
Report limited_by(Stage stage) {
  Report report{.cores = 8};
  Stats& stats = report.stats;
  stats.samples = 1000;
  stats.steps = 10;
  stats.seconds = 10;
  stats.consume_s = 1;
  stats.stall_fraction = 0.9;
  stats.slots = 3;
  stats.threads = 2;
  stats.io_threads = 4;
  stats.stages[static_cast<std::size_t>(stage)].wait_s = 9;
  return report;
}
double& busy(Report& report, Stage stage) {
  return report.stats.stages[static_cast<std::size_t>(stage)].busy_s;
}

TEST(Advice, DecodingSaysHowManyThreadsTheConsumerNeeds) {
  Report report = limited_by(Stage::decode);
  busy(report, Stage::decode) = 20;  // 50 a second and thread
  EXPECT_EQ(
      report.advice(),
      "decoding limits the speed: 2 threads can do about 100 samples/s; the consumer could take "
      "1,000, for about 20 threads (8 cores here)");
  report.jpeg = JpegReport{};
  EXPECT_THAT(report.advice(), HasSubstr("; an index (--index build) would do about 140 from the "
                                         "second epoch on, penstock-prepare's files 150"));
  report.jpeg.reset();
  report.stats.consume_s = 5;
  EXPECT_THAT(report.advice(), HasSubstr("could take 200, for about 4 threads"));
}

TEST(Advice, DecodingAloneSaysWhatAllCoresWouldDo) {
  Report report = limited_by(Stage::decode);
  busy(report, Stage::decode) = 18;
  busy(report, Stage::device_transform) = 2;
  report.stats.consume_s = 0;
  EXPECT_THAT(
      report.advice(),
      HasSubstr("2 threads can do about 100 samples/s; with 8 threads, one a core, about 400"));
  report.cores = 2;
  EXPECT_THAT(report.advice(), HasSubstr("twice as many cores would do about 200"));
}

TEST(Advice, AShortRunIsNoGroundForAnEstimateAndNoneForThreadsWithoutCores) {
  Report report = limited_by(Stage::decode);
  EXPECT_EQ(report.advice(),
            "decoding limits the speed: raise threads, of 8 cores; the run was too short for an "
            "estimate");
  report.cores = 2;
  EXPECT_EQ(report.advice(), "decoding limits the speed; the run was too short for an estimate");
  EXPECT_EQ(Report().advice(), "nothing was delivered");
}

TEST(Advice, ReadingSaysHowManyReadersKeepUp) {
  Report report = limited_by(Stage::read);
  busy(report, Stage::read) = 40;   // 40 ms a read
  busy(report, Stage::decode) = 2;  // 1,000 a second on two threads
  EXPECT_THAT(report.advice(),
              HasSubstr("a read takes about 40 ms, and 4 threads read; if the storage can do it, "
                        "io_threads = 40 would keep up with decoding, about 1,000 samples/s;"));
  report.stats.io_threads = 0;
  EXPECT_THAT(report.advice(), HasSubstr("set io_threads"));
}

/// As of data of 100 records of 10 MiB, half a GiB of which a disk may hold.
void add_tiers(Report& report) {
  constexpr std::uint64_t kMiB = 1 << 20;
  report.stats.tiers = {{.name = "disk",
                         .folder = "/scratch/cache",
                         .reads = 40,
                         .bytes = 400 * kMiB,
                         .entries = 50,
                         .held_bytes = 500 * kMiB,
                         .budget_bytes = 500 * kMiB},
                        {.name = "bucket",
                         .reads = 60,
                         .bytes = 600 * kMiB,
                         .entries = 100,
                         .held_bytes = 1000 * kMiB}};
}

TEST(Advice, OfACacheSaysHowMuchOfTheDataFits) {
  Report report = limited_by(Stage::read);
  add_tiers(report);
  EXPECT_THAT(report.advice(),
              HasSubstr("; about 0.5 of the data fit into the cache; with 1000.2 MiB "
                        "(PENSTOCK_OBJECT_CACHE_MB=1001) all of them would"));
  EXPECT_THAT(report.to_text(),
              HasSubstr("disk /scratch/cache: 40 reads, 400.0 MiB (40.0%); holds 500.0 MiB in 50 "
                        "entries, of 500.0 MiB"));
  EXPECT_THAT(report.to_text(),
              HasSubstr("bucket: 60 reads, 600.0 MiB (60.0%); about 1000.0 MiB of data"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"folder\": \"/scratch/cache\""));
  report.stats.tiers[0].budget_bytes *= 3;
  EXPECT_THAT(report.advice(), HasSubstr("all of the data, about 1000.2 MiB, fit into the cache"));
  report.stats.tiers.erase(report.stats.tiers.begin());
  EXPECT_THAT(report.advice(),
              HasSubstr("a cache of about 1000.2 MiB on a local disk (PENSTOCK_OBJECT_CACHE)"));
  report.stats.tiers.clear();
  EXPECT_THAT(report.to_text(), Not(HasSubstr("read from")));
}

TEST(Advice, OfAStorageThatRefusesSaysHowOften) {
  Report report = limited_by(Stage::read);
  add_tiers(report);
  StorageTier& bucket = report.stats.tiers[1];
  bucket.requests = 1000;
  bucket.failures = 19;
  bucket.hedges = 5;
  EXPECT_THAT(report.to_text(), AllOf(HasSubstr("; 1000 requests, 19 failed, 5 hedged"),
                                      Not(HasSubstr("of the requests failed"))));
  bucket.failures = 34;
  EXPECT_THAT(report.to_text(), HasSubstr("3% of the requests failed"));
  EXPECT_THAT(report.to_json(), AllOf(HasSubstr("\"requests\": 1000"), HasSubstr("\"hedges\": 5")));
}

TEST(Advice, SlotsAreThoseThatAreHeld) {
  Report report = limited_by(Stage::slot);
  report.stats.held_slots = 2;
  EXPECT_THAT(
      report.advice(),
      HasSubstr(
          "2 of 3 are in batches that are still held; release batches earlier, or raise depth"));
}

TEST(Advice, WorkOnBatchesSaysItsShare) {
  Report report = limited_by(Stage::device_transform);
  busy(report, Stage::device_transform) = 15;
  busy(report, Stage::decode) = 5;
  EXPECT_THAT(report.advice(), HasSubstr("transforming batches limits the speed: it is 75% of the "
                                         "threads' work, 67 samples/s a thread; with 8 threads "
                                         "about 400 samples/s in all; "));
  report = limited_by(Stage::copy);
  busy(report, Stage::copy) = 10;
  EXPECT_THAT(report.advice(), HasSubstr("copying to the devices limits the speed: it is 100%"));
}

TEST(Advice, RemoteWorkersOrTheNetworkAreToldApart) {
  Report report = limited_by(Stage::remote);
  report.stats.remote = {
      .rows = 900, .tasks = 90, .bytes = 100'000'000, .wait_s = 20, .made_s = 16};
  EXPECT_THAT(report.advice(),
              HasSubstr("the remote workers limit the speed: of the time from asking for rows to "
                        "having them, 80% is making them; take more workers"));
  report.stats.remote.made_s = 4;
  EXPECT_THAT(report.advice(),
              HasSubstr("the network, or a queue on the way, limits the speed: 80%"));
  EXPECT_THAT(report.advice(), HasSubstr("10.0 MB came a second"));
  EXPECT_THAT(report.to_text(), HasSubstr("900 rows in 90 tasks"));
}

TEST(Advice, TheOrderSaysWhatItTook) {
  Report report = limited_by(Stage::order);
  busy(report, Stage::order) = 8.5;
  EXPECT_THAT(report.advice(), HasSubstr("drawing it took 8.50 s"));
}

TEST(Advice, AConsumerThatLimitsIsToldWhatTheInputCouldDo) {
  Report report = limited_by(Stage::decode);
  report.stats.stall_fraction = 0;
  busy(report, Stage::decode) = 0.5;
  EXPECT_EQ(report.advice(),
            "the input keeps up: the consumer limits the speed, and the input could deliver about "
            "4,000 samples/s");
}

// A run that has measured nothing has no estimates.
TEST(Advice, ThereAreNoEstimatesOfNothing) {
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    Report report = limited_by(static_cast<Stage>(stage));
    report.stats.samples = 0;
    report.stats.consume_s = 0;
    EXPECT_THAT(report.advice(), HasSubstr(stage == 1 ? "slot" : "limits the speed"));
    for (const char* nothing : {"nan", "inf", "about 0"})
      EXPECT_THAT(report.advice(), Not(HasSubstr(nothing)));
  }
}

TEST(Advice, NamesAFunctionOfAnotherLanguageWhereItIsMostOfTheWork) {
  Report report = limited_by(Stage::decode);
  busy(report, Stage::decode) = 20;
  report.stats.functions = {{.name = "the Python function 'small'", .calls = 1000, .busy_s = 1},
                            {.name = "the Python function 'blur'",
                             .lock = "the GIL",
                             .remedy = "do it elsewhere",
                             .calls = 1000,
                             .wait_s = 8,
                             .busy_s = 8}};
  EXPECT_EQ(report.advice(),
            "the Python function 'blur' limits the speed: it takes 8,000 us a call, and 50% of its "
            "threads' time is spent waiting for the GIL; do it elsewhere");
  EXPECT_THAT(report.to_text(),
              HasSubstr("the Python function 'small': 1000 calls, 1.000 s in it"));
  EXPECT_THAT(report.to_json(), HasSubstr("the Python function 'blur'"));
  busy(report, Stage::decode) = 200;  // and 184 s of something else
  EXPECT_THAT(report.advice(), HasSubstr("decoding limits the speed"));
}

TEST(History, KeepsAtMostItsNumberAndEndsWhereTheRunDoes) {
  History history;
  Stats stats;
  for (int step = 1; step <= 100'000; ++step) {
    stats.seconds = 0.05 * step;
    stats.samples = static_cast<std::uint64_t>(step);
    history.add(stats);
    ASSERT_LE(history.moments().size(), History::kMost);
  }
  history.end(stats);
  EXPECT_GE(history.moments().size(), History::kMost / 3);
  EXPECT_EQ(history.moments().back().samples, 100'000U);
  const double between = history.moments()[1].seconds - history.moments()[0].seconds;
  for (std::size_t k = 1; k + 1 < history.moments().size(); ++k)
    EXPECT_NEAR(history.moments()[k].seconds - history.moments()[k - 1].seconds, between,
                between / 2);
  for (std::size_t k = 1; k < history.moments().size(); ++k)
    ASSERT_GT(history.moments()[k].seconds, history.moments()[k - 1].seconds - 1e-9);
}

}  // namespace
}  // namespace penstock
