// Processes that differ are told at the start, all of them.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock {
namespace {

using Facts = std::vector<Fact>;

// What each of several processes says: an exchange that gives all the same texts.
std::vector<std::string> said_in(const std::vector<Facts>& processes) {
  std::vector<std::string> texts;
  for (const Facts& facts : processes)
    require_agreement(
        [&](const std::string& own) {
          texts.push_back(own);
          return std::vector{own};
        },
        facts);
  std::vector<std::string> said;
  for (const Facts& facts : processes) {
    try {
      require_agreement([&](const std::string&) { return texts; }, facts);
      said.emplace_back();
    } catch (const Error& error) {
      said.emplace_back(error.what());
    }
  }
  return said;
}

TEST(Agreement, WhatDiffersIsNamedInEveryProcess) {
  const Facts a{{"seed", "1"}, {"batch", "60"}};
  const Facts b{{"batch", "60"}, {"seed", "1"}};
  EXPECT_THAT(said_in({a, b, a}), testing::Each(""));
  EXPECT_THAT(said_in({a}), testing::Each(""));
  const Facts c{{"seed", "2"}, {"batch", "90"}};
  EXPECT_THAT(
      said_in({a, c, b, c}),
      testing::Each("the processes of this run differ: batch is '60' in processes 0, 2, '90' in "
                    "processes 1, 3; seed is '1' in processes 0, 2, '2' in processes 1, 3; start "
                    "all of them with the same data and options"));
  const Facts less{{"seed", "1"}};
  EXPECT_THAT(
      said_in({a, less}),
      testing::Each(testing::HasSubstr("batch is '60' in process 0, not known in process 1")));
  EXPECT_THAT(
      said_in({less, a}),
      testing::Each(testing::HasSubstr("batch is not known in process 0, '60' in process 1")));
}

TEST(Agreement, NeedsTheOwnTextBack) {
  const Facts facts{{"seed", "1"}};
  for (const std::vector<std::string>& texts : {std::vector<std::string>{}, {R"({"seed":"2"})"}})
    EXPECT_THAT(
        [&] { require_agreement([&](const std::string&) { return texts; }, facts); },
        testing::ThrowsMessage<Error>(testing::HasSubstr(
            "the exchange gave " + std::to_string(texts.size()) +
            " texts, and the one of this process is not among them: it gives every process")));
}

TEST(Agreement, OfLongValuesTheirDifferenceIsShown) {
  const std::string begin(500, 'x');
  const auto said =
      said_in({{{"the plan", begin + "shuffle" + begin}}, {{"the plan", begin + "batch"}}});
  EXPECT_THAT(said, testing::Each(testing::AllOf(testing::HasSubstr("xshufflexxx"),
                                                 testing::HasSubstr("xbatch'"))));
  EXPECT_LT(said[0].size(), 300U);
  EXPECT_THAT(said_in({{{"file", "a\nb"}}, {{"file", "a\x1b"}}}),
              testing::Each(testing::HasSubstr("'a\\x0ab' in process 0, 'a\\x1b' in process 1")));
}

TEST(Agreement, AnotherProgramsTextIsRefused) {
  EXPECT_THAT(
      [] {
        require_agreement(
            [](const std::string& own) {
              return std::vector{own, std::string("hello")};
            },
            {});
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("process 1 sent 'hello'")));
}

}  // namespace
}  // namespace penstock
