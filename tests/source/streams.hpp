// What the tests of streams share: records that say where they came from, and a patient reader.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/source/source.hpp>
#include <penstock/source/stream.hpp>

namespace penstock::test {

/// Waits until something that is bound to happen has; ctest's time limit ends a wait for what does
/// not.
template <class Condition>
void await(Condition&& condition) {
  while (!condition()) std::this_thread::yield();
}

/// The message that `act` throws an Exception with; fails the test if it throws none.
template <class Exception, class Act>
std::string message_of(Act&& act) {
  try {
    act();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A trajectory: who made it, its number there, and some steps whose values follow from both.
inline std::vector<FieldSpec> trajectory_fields() {
  return {{"producer", DType::i32, {}},
          {"number", DType::i64, {}},
          {"steps", DType::f32, {kDynamic, 3}}};
}

struct Trajectory {
  std::int32_t producer;
  std::int64_t number;
  std::vector<float> steps{};

  Trajectory(std::int32_t by, std::int64_t which) : producer(by), number(which) {
    steps.resize(static_cast<std::size_t>(3 * ((by + which) % 7)));
    for (std::size_t i = 0; i < steps.size(); ++i)
      steps[i] = static_cast<float>(by) + static_cast<float>(which * 31 + static_cast<long>(i));
  }
  [[nodiscard]] std::vector<ConstTensorView> views() const {
    return {source::value(producer), source::value(number), source::values(steps, {kDynamic, 3})};
  }
};

/// Which trajectories a consumer saw, by producer, in the order in which it saw them.
class Seen {
 public:
  /// Fails the test if the record is not what its producer pushed.
  void add(const Record& record) {
    ASSERT_EQ(record.size(), 3);
    const Trajectory expected(*record[0].data<std::int32_t>(), *record[1].data<std::int64_t>());
    ASSERT_EQ(record[2].shape(), (Shape{static_cast<std::int64_t>(expected.steps.size() / 3), 3}));
    const auto* const steps = record[2].data<float>();
    ASSERT_EQ(std::vector<float>(steps, steps + expected.steps.size()), expected.steps);
    numbers_[expected.producer].push_back(expected.number);
  }
  [[nodiscard]] const std::map<std::int32_t, std::vector<std::int64_t>>& numbers() const {
    return numbers_;
  }
  /// Whether every producer's numbers are 0, 1, … in this order.
  void expect_in_order() const {
    for (const auto& [producer, numbers] : numbers_)
      for (std::size_t i = 0; i < numbers.size(); ++i)
        ASSERT_EQ(numbers[i], static_cast<std::int64_t>(i)) << "of producer " << producer;
  }

 private:
  std::map<std::int32_t, std::vector<std::int64_t>> numbers_;
};

/// Reads a stream to its end, in the order of arrival.
inline Seen read_to_the_end(Stream& stream) {
  Seen seen;
  Record record;
  for (std::uint64_t number = 0; stream.wait(number + 1, {}) > number; ++number) {
    auto result = stream.read(number, record);
    EXPECT_TRUE(result) << result.fault().reason;
    seen.add(record);
    if (testing::Test::HasFatalFailure()) break;
  }
  return seen;
}

}  // namespace penstock::test
