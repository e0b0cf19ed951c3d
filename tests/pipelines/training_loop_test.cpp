// Runs penstock-training-loop as its readers do.
#include <regex>

#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace)

class TrainingLoop : public Throughput {
 protected:
  void SetUp() override {
    Throughput::SetUp();
    throughput_ = program;
    program = (fs::path(program).parent_path() / "penstock-training-loop").string();
  }
  void TearDown() override {
    program = throughput_;
    Throughput::TearDown();
  }

  std::string throughput_;
};

TEST_F(TrainingLoop, LearnsTheClassesOnSeveralDevices) {
  const Outcome outcome =
      run({"--synthetic", "200", "--devices", "host:2", "--cache", (folder_ / "cache").string()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::smatch share;
  ASSERT_TRUE(std::regex_search(outcome.out, share, std::regex(R"((\d+)%; by chance 25%)")))
      << outcome.out;
  EXPECT_GE(std::stoi(share[1]), 60) << outcome.out;
}

TEST_F(TrainingLoop, SaysWhatIsWrongWithItsData) {
  const Outcome outcome = run({"--data", "/nowhere"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("/nowhere"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace penstock
