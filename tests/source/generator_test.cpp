#include <algorithm>
#include <array>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/stream.hpp>

#include "tests/source/streams.hpp"

namespace penstock {
namespace {

using source::value;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

StreamPtr count_to(std::int64_t end, std::int64_t* calls = nullptr) {
  return source::generator(
      test::trajectory_fields(), [=, next = std::int64_t{0}](RecordWriter& record) mutable {
        if (calls != nullptr) ++*calls;
        if (next == end) return false;
        const test::Trajectory trajectory(3, next++);
        record.set("number", value(trajectory.number));
        record.set("producer", value(trajectory.producer));
        const auto rows = static_cast<std::int64_t>(trajectory.steps.size() / 3);
        const TensorView steps = record.field("steps", {rows, 3});
        std::copy(trajectory.steps.begin(), trajectory.steps.end(), steps.data<float>());
        return true;
      });
}

TEST(Generator, YieldsWhatItsFunctionWritesUntilItSaysThereIsNoMore) {
  const auto stream = count_to(1000);
  const test::Seen seen = test::read_to_the_end(*stream);
  seen.expect_in_order();
  EXPECT_EQ(seen.numbers().at(3).size(), 1000);
  EXPECT_TRUE(stream->closed());
  EXPECT_EQ(stream->cause(), nullptr);
  EXPECT_EQ(stream->wait(2000, {}), 1000);
}

TEST(Generator, MakesNoMoreThanIsWaitedFor) {
  std::int64_t calls = 0;
  const auto stream = count_to(1000, &calls);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(stream->wait(5, {}), 5);
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(stream->wait(3, {}), 5);
  EXPECT_EQ(calls, 5);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(stream->wait(10, stopped.get_token()), 5);
  EXPECT_EQ(calls, 5);
  stream->require_capacity(1'000'000);  // there is always room for what is waited for
}

TEST(Generator, AnExceptionEndsItWithThatCauseAfterTheLastRecord) {
  const auto stream = source::generator(
      {{"x", DType::f32, {}}},
      [i = 0](RecordWriter& record) mutable {
        if (i == 3) throw std::domain_error("no more coins");
        record.set("x", value(static_cast<float>(i++)));
        return true;
      },
      "coins");
  EXPECT_EQ(stream->wait(10, {}), 3);
  EXPECT_TRUE(stream->closed());
  Record record;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->read(i, record));
    EXPECT_EQ(*record[0].data<float>(), static_cast<float>(i));
  }
  EXPECT_THAT([&] { std::rethrow_exception(stream->cause()); },
              ThrowsMessage<std::domain_error>("no more coins"));
  auto again = stream->read(1, record);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.fault().reason, HasSubstr("record 1 of generator 'coins' was handed out"));
  EXPECT_THROW(stream->discard(1), std::logic_error);
}

TEST(Generator, MemoryThatTheFunctionIsGivenIsZero) {
  const auto stream =
      source::generator({{"x", DType::i32, {4}}}, [first = true](RecordWriter& record) mutable {
        const TensorView x = record.field("x");
        for (int i = 0; i < 4; ++i) {
          EXPECT_EQ(x.data<std::int32_t>()[i], 0);
          if (first) x.data<std::int32_t>()[i] = 9;
        }
        first = false;
        return true;
      });
  EXPECT_EQ(stream->wait(2, {}), 2);
}

// What is wrong with the function's record is its exception, and so the cause.
void expect_cause(const GeneratorFunction& function, const std::string& part) {
  const auto stream =
      source::generator({{"x", DType::f32, {2}}, {"y", DType::i64, {kDynamic}}}, function, "rolls");
  EXPECT_EQ(stream->wait(1, {}), 0);
  ASSERT_NE(stream->cause(), nullptr);
  EXPECT_THAT(
      [&] { std::rethrow_exception(stream->cause()); },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("generator 'rolls'"), HasSubstr(part))));
}

TEST(Generator, ARecordThatIsNotWhatItShouldBeEndsItByName) {
  const std::array two{1.0F, 2.0F};
  const auto write = [](auto body) {
    return [body](RecordWriter& record) {
      body(record);
      return true;
    };
  };
  expect_cause(write([=](RecordWriter& r) { r.set("x", source::values(two)); }),
               "expected every field of a record to be written, found 'y' left out");
  expect_cause(write([=](RecordWriter& r) { r.set("z", source::values(two)); }),
               "there is no field 'z', expected one of 'x', 'y'");
  expect_cause(write([](RecordWriter& r) { (void)r.field("z"); }), "there is no field 'z'");
  expect_cause(write([=](RecordWriter& r) { r.set("y", source::values(two)); }),
               "field 'y': expected i64 [?], found f32 [2]");
  expect_cause(write([](RecordWriter& r) { (void)r.field("x", {3}); }),
               "field 'x': expected f32 [2], found f32 [3]");
  expect_cause(write([](RecordWriter& r) { (void)r.field("y"); }), "found i64 [?]");
}

TEST(Generator, IsReadByOneLoaderAndMakesNothingAfterIt) {
  std::int64_t calls = 0;
  const auto stream = count_to(1000, &calls);
  stream->attach();
  EXPECT_THROW(stream->attach(), std::logic_error);
  (void)stream->wait(5, {});
  stream->detach();
  EXPECT_EQ(stream->wait(100, {}), 5);
  EXPECT_EQ(calls, 5);
}

TEST(Generator, WithoutAFunctionIsRefused) {
  EXPECT_THROW((void)source::generator({{"x", DType::f32, {}}}, nullptr), std::invalid_argument);
  EXPECT_THROW((void)source::generator({}, [](RecordWriter&) { return false; }),
               std::invalid_argument);
}

}  // namespace
}  // namespace penstock
