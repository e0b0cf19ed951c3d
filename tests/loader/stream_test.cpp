// Loaders over data that no file holds: a queue that threads feed, a generator.
#include <algorithm>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;

const std::vector<FieldSpec> kFields{{"x", DType::i64, {}}};

std::vector<std::int64_t> drain_x(Loader& loader) {
  std::vector<std::int64_t> all;
  while (const auto step = loader.next())
    for (const DeviceBatch& part : *step) {
      const auto* x = part["x"].data<std::int64_t>();
      all.insert(all.end(), x, x + part.size());
    }
  return all;
}

void push(source::Queue& queue, std::int64_t x) { queue.push({source::value(x)}); }

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<std::int64_t> count_to(std::int64_t end) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(end));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(Stream, LosesNothingOfWhatManyThreadsPush) {
  constexpr std::int64_t kEach = 500;
  const auto queue = source::queue(kFields, {.capacity = 200});
  Loader loader = Dataset(queue)
                      .seed(7)
                      .shuffle({.buffer = 50})
                      .batch(16)
                      .prefetch_to_devices(host_devices(2))
                      .loader({.threads = 3});
  std::vector<std::jthread> actors;
  std::atomic<int> left = 4;
  for (std::int64_t actor = 0; actor < 4; ++actor)
    actors.emplace_back([&, actor] {
      for (std::int64_t k = 0; k < kEach; ++k) push(*queue, actor * kEach + k);
      if (--left == 0) queue->close();
    });
  const auto all = drain_x(loader);
  EXPECT_EQ(sorted(all), count_to(4 * kEach));
  EXPECT_EQ(loader.stats().samples, 4U * kEach);
  EXPECT_FALSE(loader.next().has_value());
}

TEST(Stream, TheCauseComesAfterTheLastRecord) {
  const auto queue = source::queue(kFields);
  Loader loader = Dataset(queue).batch(4).loader();
  for (std::int64_t k = 0; k < 6; ++k) push(*queue, k);
  queue->close(std::make_exception_ptr(std::runtime_error("the simulator crashed")));
  EXPECT_EQ(loader.next()->global_samples(), 4U);
  EXPECT_EQ(loader.next()->global_samples(), 2U);
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT([&] { (void)loader.next(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("the simulator crashed")));
}

// However soon the stream ended: else it would depend on who is faster.
TEST(Stream, TakeOfWhatArrivedHasNoCause) {
  const auto fails_with = [](std::int64_t pushed, std::uint64_t taken) {
    const auto queue = source::queue(kFields);
    for (std::int64_t k = 0; k < pushed; ++k) push(*queue, k);
    queue->close(std::make_exception_ptr(std::runtime_error("the simulator crashed")));
    Loader loader = Dataset(queue).shuffle({.seed = 1, .buffer = 3}).take(taken).batch(4).loader();
    std::int64_t rows = 0;
    try {
      while (const auto step = loader.next())
        rows += static_cast<std::int64_t>(step->global_samples());
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "the simulator crashed");
      EXPECT_EQ(rows, pushed);
      return true;
    }
    EXPECT_EQ(rows, static_cast<std::int64_t>(taken));
    return false;
  };
  EXPECT_FALSE(fails_with(9, 7));
  EXPECT_FALSE(fails_with(7, 7));
  EXPECT_TRUE(fails_with(6, 7));
}

TEST(Stream, TakeOfBatchesThatArrivedHasNoCause) {
  for (const bool is_early : {true, false}) {
    const auto queue = source::queue(kFields);
    for (std::int64_t k = 0; k < 20; ++k) push(*queue, k);
    const auto cause = std::make_exception_ptr(std::runtime_error("the simulator crashed"));
    if (is_early) queue->close(cause);
    Loader loader = Dataset(queue).batch(4).take(2).loader();
    EXPECT_EQ(loader.next()->global_samples(), 4U);
    EXPECT_EQ(loader.next()->global_samples(), 4U);
    EXPECT_FALSE(loader.next().has_value());
    if (!is_early) queue->close(cause);
  }
}

// It had no numbers, and so no epoch: 0 would have been a guess.
TEST(Stream, AnEpochThatDoesNotComeThrowsTheCause) {
  const auto queue = source::queue(kFields);
  Loader loader = Dataset(queue).batch(4).loader();
  queue->close(std::make_exception_ptr(std::runtime_error("the simulator crashed")));
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT([&] { (void)loader.next_epoch(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("the simulator crashed")));
  EXPECT_THAT([&] { (void)loader.epochs().begin(); },
              ThrowsMessage<std::runtime_error>(HasSubstr("the simulator crashed")));
}

TEST(Stream, IsDestroyedAtOnceWhileItWaitsForRecordsAndTellsTheProducers) {
  const auto queue = source::queue(kFields, {.capacity = 8});
  {
    Loader loader = Dataset(queue).batch(8).loader();
    loader.start();
    push(*queue, 1);
  }
  EXPECT_THROW(push(*queue, 2), QueueClosed);
}

TEST(Stream, StopEndsTheWaitForRecords) {
  const auto queue = source::queue(kFields);
  Loader loader = Dataset(queue).batch(8).loader();
  std::jthread consumer([&] { EXPECT_FALSE(loader.next().has_value()); });
  while (loader.stats().seconds == 0) std::this_thread::yield();
  loader.stop();
}

TEST(Stream, AGeneratorEndsWhenItsFunctionSaysSo) {
  std::int64_t next = 0;
  const auto count = source::generator(kFields, [&](RecordWriter& record) {
    if (next == 10) return false;
    record.set("x", source::value(next++));
    return true;
  });
  Loader loader = Dataset(count).batch(4).loader();
  EXPECT_EQ(drain_x(loader), count_to(10));
  EXPECT_EQ(loader.size(), std::nullopt);
}

TEST(Stream, TakeEndsIt) {
  std::int64_t next = 0;
  const auto count = source::generator(kFields, [&](RecordWriter& record) {
    record.set("x", source::value(next++));
    return true;
  });
  Loader loader = Dataset(count).take(7).batch(3).loader();
  EXPECT_EQ(drain_x(loader), count_to(7));
}

TEST(Stream, DropsAShortLastBatchWhereAsked) {
  for (const auto& [remainder, rows] : {std::pair(Remainder::keep, 10), {Remainder::drop, 8}}) {
    std::int64_t next = 0;
    const auto count = source::generator(kFields, [&](RecordWriter& record) {
      if (next == 10) return false;
      record.set("x", source::value(next++));
      return true;
    });
    Loader loader = Dataset(count).batch(4, {.remainder = remainder}).loader();
    EXPECT_EQ(drain_x(loader), count_to(rows));
  }
}

// Each of two processes has a stream of its own, and the mode that the error advises.
TEST(Stream, EndsInEachOfSeveralProcessesWithItsOwn) {
  for (const Remainder remainder : {Remainder::keep, Remainder::pad, Remainder::drop}) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      std::int64_t next = 0;
      const auto count = source::generator(kFields, [&](RecordWriter& record) {
        if (next == 11) return false;
        record.set("x", source::value(next++));
        return true;
      });
      Loader loader =
          Dataset(count)
              .seed(1)
              .batch(4, {.remainder = remainder})
              .loader({.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = rank},
                       .mode = InputMode::per_worker,
                       .shards = ShardPolicy::off});
      int steps = 0;
      while (steps < 20 && loader.next()) ++steps;
      EXPECT_EQ(steps, remainder == Remainder::drop ? 5 : 6);
    }
  }
}

TEST(Stream, OfSeveralProcessesIsRefusedWithTheModeThatTakesIt) {
  const Dataset stream = Dataset(source::queue(kFields)).batch(4);  // without a seed
  EXPECT_THAT([&] { (void)stream.loader({.context = InputContext{.num_input_pipelines = 2}}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("choose the mode per_worker")));
}

TEST(Stream, RefusesWhatNeedsAPastOrAFuture) {
  const auto queue = source::queue(kFields);
  const Dataset stream(queue);
  const auto refuses = [](const std::function<void()>& act, const char* words) {
    EXPECT_THAT(act, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses([&] { (void)stream.shuffle(); }, "give shuffle a buffer");
  refuses([&] { (void)stream.repeat(); }, "come once");
  refuses([&] { (void)stream.batch(4).repeat(); }, "come once");
  refuses([&] { (void)stream.skip(3); }, "stream");
  refuses([&] { (void)stream.batch(4).skip(3); }, "stream");
  refuses([&] { (void)stream.batch(4).shuffle({.buffer = 3}); }, "stream");
  refuses([&] { (void)stream.shard(2, 0); }, "stream");
  refuses([&] { (void)stream.select({1}); }, "stream");
  refuses([&] { (void)stream.filter([](const RecordInfo&) { return true; }); }, "stream");
  refuses([&] { (void)mix({stream, Dataset(source::queue(kFields))}); }, "stream");
  refuses([&] { (void)concatenate({stream}); }, "stream");
  refuses([&] { (void)zip({stream, Dataset(fake(3))}); }, "stream");
  refuses([&] { (void)stream.batch(4).loader({.on_fault = OnFault::replace}); }, "come once");
  refuses(
      [&] {
        (void)stream.seed(1).batch(4).loader(
            {.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = 0}});
      },
      "per_worker");
  refuses([&] { (void)stream.shuffle({.buffer = 2000}).batch(4).loader(); }, "2004");
  for (const auto& [split, mode] :
       {std::pair(Split::shard_early, InputMode::one), {Split::scatter, InputMode::per_replica}})
    refuses(
        [&, split = split, mode = mode] {
          (void)stream.seed(1)
              .batch(4)
              .prefetch_to_devices(host_devices(2), {.split = split})
              .loader({.mode = mode});
        },
        "samples of a stream come once");

  Loader loader = stream.batch(4).loader();
  EXPECT_THAT([&] { loader.restore(loader.state()); },
              ThrowsMessage<Error>(HasSubstr("cannot be resumed")));
  EXPECT_THAT([&] { (void)loader.batch_at(0); },
              ThrowsMessage<Error>(HasSubstr("cannot be resumed")));
  EXPECT_THROW((void)stream.batch(4).loader(), std::logic_error);  // one loader reads it
}

TEST(Stream, ABadRecordIsAFaultOfItsOwn) {
  const auto queue = source::queue(kFields);
  const auto picky =
      map_function({.name = "picky", .inputs = {"x"}, .outputs = {{"x", DType::i64, {}}}},
                   [](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     if (*in[0].data<std::int64_t>() == 5) throw std::runtime_error("five");
                     *out[0].data<std::int64_t>() = *in[0].data<std::int64_t>();
                   });
  Loader loader = Dataset(queue).map(picky).batch(4).loader({.on_fault = OnFault::mask});
  for (std::int64_t k = 0; k < 8; ++k) push(*queue, k);
  queue->close();
  EXPECT_THAT(drain_x(loader), ElementsAre(0, 1, 2, 3, 4, 0, 6, 7));
  EXPECT_EQ(loader.stats().faults, 1U);
}

}  // namespace
}  // namespace penstock
