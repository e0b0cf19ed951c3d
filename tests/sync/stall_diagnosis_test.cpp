// Who holds up the others, from what all calls wait for.
#include "src/sync/rendezvous/stall_diagnosis.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

namespace penstock {
namespace {

using sync::Answer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

PendingCall waits_for(std::uint32_t peer, std::uint64_t number = 7, std::uint32_t phase = 0,
                      std::uint64_t communicator = 0) {
  return {.communicator = communicator,
          .number = number,
          .phase = phase,
          .peer = peer,
          .call = communicator == 0 ? "all_reduce(sum, f32 [10])" : "barrier()"};
}
Answer one(const PendingCall& call) { return std::vector{call}; }
const Answer kIdle = std::vector<PendingCall>{};

TEST(StallDiagnosis, WhoDoesNotAnswerIsStopped) {
  const std::vector<Answer> answers{one(waits_for(2)), one(waits_for(2)), std::nullopt,
                                    one(waits_for(2))};
  for (const std::uint32_t rank : {0U, 1U, 3U})
    EXPECT_EQ(sync::conclude(rank, waits_for(2), answers),
              "process 2 does not answer: it is stopped, or its machine cannot be reached");
}

TEST(StallDiagnosis, OneThatWaitsForTheCulpritIsNone) {
  // 0 waits for 1's data, which waits for 3's, which waits for 2.
  const std::vector<Answer> answers{one(waits_for(1, 7, 1)), one(waits_for(3, 7, 1)), std::nullopt,
                                    one(waits_for(2, 7, 0))};
  EXPECT_THAT(sync::conclude(0, waits_for(1, 7, 1), answers),
              HasSubstr("process 2 does not answer"));
}

TEST(StallDiagnosis, WhoMakesNoCallIsBusy) {
  const std::vector<Answer> answers{one(waits_for(1)), kIdle};
  EXPECT_THAT(sync::conclude(0, waits_for(1), answers),
              AllOf(HasSubstr("process 1 makes no call"), HasSubstr("raise the timeout")));
  // Busy with its own part.
  EXPECT_THAT(
      sync::conclude(0, waits_for(1), std::vector<Answer>{one(waits_for(1)), one(waits_for(1))}),
      HasSubstr("process 1 is still busy in all_reduce(sum, f32 [10])"));
}

TEST(StallDiagnosis, APacketThatIsLostOneWayNamesTheLink) {
  // Process 1 does not hear 2, which has gone on to the data and waits for 1 as all do.
  const std::vector<Answer> answers{one(waits_for(1, 7, 1)), one(waits_for(2, 7, 0)),
                                    one(waits_for(1, 7, 1)), one(waits_for(1, 7, 1))};
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U})
    EXPECT_THAT(sync::conclude(rank, answers[rank]->front(), answers),
                HasSubstr("what processes 1 and 2 send each other does not arrive"))
        << rank;
  // Its sender may be one call further, and wait for somebody else there.
  EXPECT_THAT(sync::conclude(
                  0, waits_for(1, 7, 1),
                  std::vector<Answer>{one(waits_for(1, 7, 1)), one(waits_for(2, 8)), std::nullopt}),
              HasSubstr("what processes 0 and 1 send each other does not arrive"));
  // Cut both ways, in the same place.
  EXPECT_THAT(sync::conclude(0, waits_for(2),
                             std::vector<Answer>{one(waits_for(2)), kIdle, one(waits_for(0))}),
              HasSubstr("the network between them is cut"));
}

TEST(StallDiagnosis, CallsOfDifferentCommunicatorsThatWaitForEachOtherAreNamed) {
  const std::vector<Answer> answers{one(waits_for(1, 3, 0, 0)), one(waits_for(0, 2, 0, 5))};
  EXPECT_EQ(
      sync::conclude(0, waits_for(1, 3, 0, 0), answers),
      "processes 0 and 1 wait for each other in calls of different communicators: process 0 in "
      "all_reduce(sum, f32 [10]), process 1 in barrier(); every process must make the calls in "
      "the same order");
  // Other threads' calls are no matter.
  const std::vector<Answer> threads{std::vector{waits_for(1, 3), waits_for(1, 2, 0, 5)},
                                    std::vector{waits_for(2, 2, 0, 5), waits_for(2, 3)},
                                    std::nullopt};
  EXPECT_THAT(sync::conclude(0, waits_for(1, 3), threads), HasSubstr("process 2 does not answer"));
}

TEST(StallDiagnosis, CallsComeBackFromTheirTexts) {
  const std::vector<PendingCall> calls{waits_for(4, 3, 1, 9), waits_for(0)};
  const std::vector<PendingCall> again = sync::calls_from(sync::to_texts(calls));
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].communicator, 9U);
  EXPECT_EQ(again[0].number, 3U);
  EXPECT_EQ(again[0].phase, 1U);
  EXPECT_EQ(again[0].peer, 4U);
  EXPECT_EQ(again[1].call, "all_reduce(sum, f32 [10])");
  for (const auto& wrong :
       {std::vector<std::string>{"1"}, std::vector<std::string>{"1", "2", "3", "x", ""},
        std::vector<std::string>{"1", "2", "3", "4294967296", ""}})
    EXPECT_THROW((void)sync::calls_from(wrong), Error);
}

}  // namespace
}  // namespace penstock
