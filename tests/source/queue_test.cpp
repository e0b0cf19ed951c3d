#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/stream.hpp>

#include "src/order/operations.hpp"
#include "tests/source/files.hpp"
#include "tests/source/streams.hpp"

namespace penstock {
namespace {

using source::value;
using source::values;
using test::await;
using test::message_of;
using test::Seen;
using test::Trajectory;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::shared_ptr<source::Queue> numbers_queue(QueueOptions options = {}) {
  return source::queue({{"number", DType::i64, {}}}, std::move(options));
}

std::int64_t number_of(Stream& stream, std::uint64_t index) {
  Record record;
  auto result = stream.read(index, record);
  EXPECT_TRUE(result) << result.fault().reason;
  return result ? *record[0].data<std::int64_t>() : -1;
}

TEST(Queue, HandsOutWhatWasPushedInAnyOrderOnce) {
  const auto queue = source::queue({{"image", DType::u8, {kDynamic}},
                                    {"box", DType::f64, {2}},
                                    {"tokens", DType::i32, {kDynamic, 2, kDynamic}}});
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::uint8_t> image(static_cast<std::size_t>(i), std::uint8_t(40 + i));
    const std::vector<std::int32_t> tokens{i, i, i, i, i, i, i, i, i, i, i, i};
    queue->push({values(image), values(std::array{0.5 * i, 2.0}),
                 values(tokens, i == 0 ? Shape{3, 2, 2} : Shape{1, 2, 6})});
  }
  EXPECT_EQ(queue->wait(3, {}), 3);
  Record record;
  for (const std::uint64_t number : {2, 0, 1}) {
    ASSERT_TRUE(queue->read(number, record));
    EXPECT_EQ(record[0].shape(), (Shape{static_cast<std::int64_t>(number)}));
    EXPECT_EQ(test::text_of(record[0]), std::string(number, char(40 + number)));
    EXPECT_EQ(record[1].shape(), (Shape{2}));
    EXPECT_EQ(record[1].data<double>()[0], 0.5 * static_cast<double>(number));
    EXPECT_EQ(record[2].shape(), (number == 0 ? Shape{3, 2, 2} : Shape{1, 2, 6}));
    EXPECT_EQ(record[2].data<std::int32_t>()[11], number);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record[2].raw()) % 16, 0) << "whatever came before";
  }
  auto again = queue->read(1, record);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.fault().reason, HasSubstr("record 1 of queue 'queue' was handed out before"));
  auto early = queue->read(3, record);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.fault().reason, HasSubstr("record 3 of queue 'queue' has not arrived: 3 have"));
}

TEST(Queue, SaysWhatItHolds) {
  const auto queue = numbers_queue({.name = "moves"});
  EXPECT_THAT(queue->fields(), ElementsAre(FieldSpec{"number", DType::i64, {}}));
  EXPECT_EQ(queue->location(7), "queue 'moves' record 7");
  EXPECT_EQ(queue->fingerprint(), numbers_queue({.name = "moves"})->fingerprint());
  EXPECT_NE(queue->fingerprint(), numbers_queue()->fingerprint());
}

// The proof of the whole: many producers, a full queue, a shuffled order, several readers.
TEST(Queue, EightProducersAndAShuffledConsumerLoseAndDoubleNothing) {
  constexpr std::int32_t kProducers = 8;
  constexpr std::int64_t kEach = 10'000;
  constexpr std::uint64_t kWindow = 100;
  constexpr std::uint64_t kBatch = 256;
  const auto queue = source::queue(test::trajectory_fields(),
                                   {.capacity = kWindow + 4 * kBatch, .max_bytes = 65'536});
  std::vector<std::jthread> producers;
  std::atomic<std::int32_t> left = kProducers;
  for (std::int32_t producer = 0; producer < kProducers; ++producer)
    producers.emplace_back([&, producer] {
      for (std::int64_t i = 0; i < kEach; ++i) queue->push(Trajectory(producer, i).views());
      if (--left == 0) queue->close();
    });

  queue->require_capacity(kWindow + 4 * kBatch);
  const auto cursor =
      order::shuffle_window(
          order::arrivals([&](std::uint64_t wanted) { return queue->wait(wanted, {}); }),
          RandomKey(7, 1), kWindow)
          ->open();
  std::mutex mutex;
  Seen seen;
  std::vector<SampleId> drawn(kBatch);
  std::uint64_t position = 0;
  for (std::size_t count = kBatch; count == kBatch; position += count) {
    count = cursor->read(0, position, 1, drawn);
    std::vector<std::jthread> readers;
    for (std::size_t reader = 0; reader < 2; ++reader)
      readers.emplace_back([&, reader, count] {
        Record record;
        for (std::size_t k = reader; k < count; k += 2) {
          auto result = queue->read(drawn[k].number, record);
          const std::lock_guard lock(mutex);
          ASSERT_TRUE(result) << result.fault().reason;
          ASSERT_NO_FATAL_FAILURE(seen.add(record));
        }
      });
  }
  EXPECT_EQ(position, kProducers * kEach);
  ASSERT_EQ(seen.numbers().size(), kProducers);
  int moved = 0;
  for (auto [producer, numbers] : seen.numbers()) {
    ASSERT_EQ(numbers.size(), kEach);
    moved += std::ranges::is_sorted(numbers) ? 0 : 1;
    std::ranges::sort(numbers);
    for (std::int64_t i = 0; i < kEach; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(moved, kProducers) << "the order is shuffled";
  const QueueStats stats = queue->stats();
  EXPECT_EQ(stats.pushed, kProducers * kEach);
  EXPECT_EQ(stats.read, stats.pushed);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.waiting_bytes, 0);
  EXPECT_EQ(stats.blocked_producers, 0);
}

TEST(Queue, OneProducersRecordsArriveInItsOrder) {
  const auto queue = source::queue(test::trajectory_fields(), {.capacity = 3});
  std::vector<std::jthread> producers;
  std::atomic<int> left = 4;
  for (std::int32_t producer = 0; producer < 4; ++producer)
    producers.emplace_back([&, producer] {
      for (std::int64_t i = 0; i < 500; ++i) queue->push(Trajectory(producer, i).views());
      if (--left == 0) queue->close();
    });
  const Seen seen = test::read_to_the_end(*queue);
  seen.expect_in_order();
  for (const auto& [producer, numbers] : seen.numbers())
    EXPECT_EQ(numbers.size(), 500) << "producer " << producer;
}

TEST(Queue, AFullQueueBlocksItsProducersUntilARecordIsRead) {
  const auto queue = numbers_queue({.capacity = 2});
  for (const std::int64_t i : {0, 1}) queue->push({value(i)});
  EXPECT_FALSE(queue->try_push(std::array{value(std::int64_t{9})}));
  EXPECT_FALSE(
      queue->try_push_for(std::array{value(std::int64_t{9})}, std::chrono::milliseconds(2)));
  std::atomic<bool> pushed = false;
  const std::jthread producer([&] {
    queue->push({value(std::int64_t{2})});
    pushed = true;
  });
  await([&] { return queue->stats().blocked_producers == 1; });
  EXPECT_FALSE(pushed);
  EXPECT_EQ(queue->stats().waiting, 2);
  EXPECT_EQ(number_of(*queue, 1), 1) << "any of them makes room";
  await([&] { return pushed.load(); });
  EXPECT_GT(queue->stats().blocked_s, 0);
  EXPECT_EQ(number_of(*queue, 2), 2);
  EXPECT_TRUE(queue->try_push(std::array{value(std::int64_t{3})}));
  queue->discard(0);
  EXPECT_THAT([&] { queue->discard(0); },
              ThrowsMessage<std::logic_error>(HasSubstr("handed out before")));
  EXPECT_TRUE(queue->try_push(std::array{value(std::int64_t{4})}));
  const QueueStats stats = queue->stats();
  EXPECT_EQ(stats.pushed, 5);
  EXPECT_EQ(stats.read, 3);
  EXPECT_EQ(stats.waiting, 2);
  EXPECT_EQ(stats.waiting_bytes, 16);
}

TEST(Queue, ABlockedPushEndsWithItsStopTokenAndPushesNothing) {
  const auto queue = numbers_queue({.capacity = 1});
  queue->push({value(std::int64_t{0})});
  std::stop_source stop;
  bool pushed = true;
  std::jthread producer([&] {
    const std::int64_t number = 1;
    pushed = queue->push(std::array{value(number)}, stop.get_token());
  });
  await([&] { return queue->stats().blocked_producers == 1; });
  stop.request_stop();
  producer.join();
  EXPECT_FALSE(pushed);
  EXPECT_EQ(queue->stats().blocked_producers, 0);
  EXPECT_EQ(number_of(*queue, 0), 0);
  EXPECT_FALSE(queue->push(std::array{value(std::int64_t{1})}, stop.get_token()));
  EXPECT_EQ(queue->stats().pushed, 1);
}

std::shared_ptr<source::Queue> bytes_queue(std::uint64_t capacity, std::size_t max_bytes) {
  return source::queue({{"x", DType::u8, {kDynamic}}},
                       {.capacity = capacity, .max_bytes = max_bytes});
}

// 8 bytes more than its elements, for the extent.
void push_bytes(source::Queue& queue, std::size_t bytes) {
  const std::vector<std::uint8_t> x(bytes - 8);
  queue.push({values(x)});
}

TEST(Queue, BytesFillItTooAndALargeRecordIsNotPassedBySmallOnes) {
  const auto queue = bytes_queue(1000, 100);
  push_bytes(*queue, 60);
  std::atomic<int> done = 0;
  const std::jthread large([&] {
    push_bytes(*queue, 90);
    done += 1;
  });
  await([&] { return queue->stats().blocked_producers == 1; });
  const std::jthread small([&] {
    push_bytes(*queue, 10);  // which would fit, but came later
    done += 10;
  });
  await([&] { return queue->stats().blocked_producers == 2; });
  const std::vector<std::uint8_t> x(2);
  EXPECT_FALSE(queue->try_push(std::array{values(x)})) << "others wait";
  EXPECT_EQ(done, 0);
  queue->discard(0);
  await([&] { return done == 11; });
  EXPECT_EQ(queue->stats().waiting_bytes, 100);
}

TEST(Queue, ALargeRecordThatGivesUpLetsTheSmallOnesIn) {
  const auto queue = bytes_queue(1000, 100);
  push_bytes(*queue, 60);
  std::stop_source stop;
  std::jthread large([&] {
    const std::vector<std::uint8_t> x(80);
    EXPECT_FALSE(queue->push(std::array{values(x)}, stop.get_token()));
  });
  await([&] { return queue->stats().blocked_producers == 1; });
  std::jthread small([&] { push_bytes(*queue, 10); });
  await([&] { return queue->stats().blocked_producers == 2; });
  stop.request_stop();
  small.join();
  EXPECT_EQ(queue->stats().waiting_bytes, 70);
}

// Otherwise a shuffle buffer of large records would wait forever for the last one to fit.
TEST(Queue, WhatTheLoaderWaitsForComesInBeyondMaxBytesAndNoMore) {
  const auto queue = bytes_queue(10, 100);
  std::vector<std::jthread> producers;
  for (int i = 0; i < 8; ++i) producers.emplace_back([&] { push_bytes(*queue, 60); });
  await([&] { return queue->stats().blocked_producers == 7; });
  EXPECT_EQ(queue->wait(5, {}), 5);
  EXPECT_EQ(queue->stats().waiting_bytes, 300);
  EXPECT_EQ(queue->stats().blocked_producers, 3);
  EXPECT_EQ(queue->wait(3, {}), 5) << "says how many have arrived";
  for (std::uint64_t number = 0; number < 8; ++number) {
    EXPECT_GT(queue->wait(number + 1, {}), number);
    queue->discard(number);
  }
  EXPECT_EQ(queue->stats().pushed, 8);
}

TEST(Queue, TheCauseOfAFullQueuesCloseReachesBlockedProducersAndTheConsumer) {
  const auto queue = numbers_queue({.capacity = 2, .name = "moves"});
  for (const std::int64_t i : {0, 1}) queue->push({value(i)});
  std::atomic<int> woken = 0;
  std::vector<std::jthread> producers;
  for (int i = 0; i < 3; ++i)
    producers.emplace_back([&] {
      try {
        queue->push({value(std::int64_t{9})});
      } catch (const QueueClosed& closed) {
        EXPECT_THAT(closed.what(), AllOf(HasSubstr("queue 'moves' takes no more records"),
                                         HasSubstr("the simulator crashed")));
        EXPECT_THROW(std::rethrow_exception(closed.cause()), std::domain_error);
        ++woken;
      }
    });
  await([&] { return queue->stats().blocked_producers == 3; });
  EXPECT_FALSE(queue->closed());
  queue->close(std::make_exception_ptr(std::domain_error("the simulator crashed")));
  queue->close(std::make_exception_ptr(std::runtime_error("a later one")));
  producers.clear();
  EXPECT_EQ(woken, 3);
  EXPECT_TRUE(queue->closed());
  EXPECT_THROW(queue->push({value(std::int64_t{9})}), QueueClosed);
  EXPECT_THROW((void)queue->try_push(std::array{value(std::int64_t{9})}), QueueClosed);

  EXPECT_EQ(queue->wait(10, {}), 2) << "what was pushed before is delivered";
  EXPECT_EQ(number_of(*queue, 0), 0);
  EXPECT_EQ(number_of(*queue, 1), 1);
  EXPECT_THAT([&] { std::rethrow_exception(queue->cause()); },
              ThrowsMessage<std::domain_error>("the simulator crashed"));
}

TEST(Queue, ClosingAnEmptyQueueWakesTheConsumer) {
  for (const bool with_cause : {false, true}) {
    const auto queue = numbers_queue();
    std::atomic<bool> waits = false;
    std::jthread consumer([&] {
      waits = true;
      EXPECT_EQ(queue->wait(1, {}), 0);
    });
    await([&] { return waits.load(); });
    queue->close(with_cause ? std::make_exception_ptr(std::runtime_error("why")) : nullptr);
    consumer.join();
    EXPECT_EQ(queue->cause() != nullptr, with_cause);
  }
}

TEST(Queue, AStoppedWaitReturnsWhatHasArrivedAndCanBeCalledAgain) {
  const auto queue = numbers_queue();
  queue->push({value(std::int64_t{0})});
  std::jthread consumer([&](const std::stop_token& stop) { EXPECT_EQ(queue->wait(2, stop), 1); });
  consumer.request_stop();
  consumer.join();
  EXPECT_FALSE(queue->closed());
  queue->push({value(std::int64_t{1})});
  EXPECT_EQ(queue->wait(2, {}), 2);
}

TEST(Queue, TooLittleRoomForAPlanIsAnErrorWithTheRemedy) {
  const auto queue = source::queue({{"x", DType::f32, {16}}}, {.capacity = 100, .max_bytes = 4096});
  queue->require_capacity(64);
  EXPECT_THAT([&] { queue->require_capacity(101); },
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("room for 101 records"),
                                                         HasSubstr("a capacity of 100"),
                                                         HasSubstr("raise its capacity"))));
  EXPECT_THAT([&] { queue->require_capacity(65); },
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("65 records of 64 bytes"),
                                                         HasSubstr("max_bytes = 4096"),
                                                         HasSubstr("raise its max_bytes"))));
  bytes_queue(100, 10)->require_capacity(100);  // unknown sizes
}

TEST(Queue, OneLoaderReadsItAndWhenItIsGoneProducersAreTold) {
  const auto queue = numbers_queue({.capacity = 1});
  queue->attach();
  EXPECT_THAT([&] { queue->attach(); },
              ThrowsMessage<std::logic_error>(HasSubstr("can be read by one loader only")));
  queue->push({value(std::int64_t{0})});
  std::jthread producer([&] {
    EXPECT_THAT([&] { queue->push({value(std::int64_t{1})}); },
                ThrowsMessage<QueueClosed>(HasSubstr("the loader that read it is gone")));
  });
  await([&] { return queue->stats().blocked_producers == 1; });
  queue->detach();
  producer.join();
  EXPECT_EQ(queue->stats().waiting_bytes, 0) << "what will not be read is freed";
  EXPECT_THROW(queue->attach(), std::logic_error) << "a stream is read once";
}

TEST(Queue, WhatDoesNotFitItsFieldsIsRefusedByNameExpectedAndFound) {
  const auto queue = source::queue({{"obs", DType::f32, {kDynamic, 4}}, {"done", DType::u8, {}}},
                                   {.max_bytes = 4096, .name = "moves"});
  const std::vector<float> obs(8);
  const std::uint8_t done = 0;
  const auto refuse = [&](std::vector<ConstTensorView> record, auto... parts) {
    EXPECT_THAT([&] { queue->push(record); },
                ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("queue 'moves'"), parts...)));
  };
  refuse({values(obs, {2, 4})}, HasSubstr("expected records of 2 fields, found one of 1"));
  refuse({values(obs), value(done)}, HasSubstr("field 'obs': expected f32 [?,4], found f32 [8]"));
  refuse({values(obs, {4, 2}), value(done)}, HasSubstr("found f32 [4,2]"));
  refuse({values(obs, {2, 4}), value(1.0)},
         HasSubstr("field 'done': expected u8 [], found f64 []"));
  refuse({ConstTensorView(nullptr, DType::f32, {2, 4}), value(done)},
         HasSubstr("field 'obs': expected 32 bytes, found a null pointer"));
  refuse({ConstTensorView(nullptr, DType::f32, {std::int64_t{1} << 62, 4}), value(done)},
         HasSubstr("no memory holds that much"));
  refuse({ConstTensorView(nullptr, DType::f32, {kDynamic, 4}), value(done)},
         HasSubstr("found f32 [?,4]"));
  const std::vector<float> much(4096);
  refuse({values(much, {kDynamic, 4}), value(done)}, HasSubstr("at most max_bytes = 4096 bytes"));
  queue->push({ConstTensorView(nullptr, DType::f32, {0, 4}), value(done)});
  EXPECT_EQ(queue->stats().pushed, 1);
}

TEST(Queue, FieldsAndOptionsThatCannotWorkAreRefused) {
  EXPECT_THROW((void)source::queue({}), std::invalid_argument);
  EXPECT_THROW((void)source::queue({{"a", DType::u8, {}}, {"a", DType::u8, {}}}),
               std::invalid_argument);
  EXPECT_THROW((void)source::queue({{"", DType::u8, {}}}), std::invalid_argument);
  EXPECT_THROW((void)source::queue({{"a", DType::u8, {0}}}), std::invalid_argument);
  EXPECT_THROW((void)numbers_queue({.capacity = 0}), std::invalid_argument);
  EXPECT_THAT([] { (void)numbers_queue({.max_bytes = 7}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("a record has 8 bytes")));
}

TEST(Values, WorkOutTheExtentThatIsLeftOpen) {
  const std::vector<float> twelve(12);
  EXPECT_EQ(values(twelve).shape(), (Shape{12}));
  EXPECT_EQ(values(twelve, {kDynamic, 4}).shape(), (Shape{3, 4}));
  EXPECT_EQ(values(twelve, {2, kDynamic, 3}).shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(values(twelve, {12, 1}).dtype(), DType::f32);
  EXPECT_EQ(values(std::vector<float>{}, {kDynamic, 4}).shape(), (Shape{0, 4}));
  EXPECT_EQ(value(std::uint16_t{7}).shape(), Shape());
  for (const Shape& shape :
       {Shape{5}, Shape{kDynamic, 5}, Shape{kDynamic, kDynamic}, Shape{}, Shape{kDynamic, 0}})
    EXPECT_THAT([&] { (void)values(twelve, shape); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("12 values do not make up")));
}

}  // namespace
}  // namespace penstock
