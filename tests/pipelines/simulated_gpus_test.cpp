// The programs on simulated GPUs: eight of them, and replicas that fail. tests/device, loader and sync have the rules.
#include <cmath>
#include <fstream>
#include <map>

#include <gmock/gmock.h>

#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class SimulatedGpus : public Throughput {
 protected:
  void SetUp() override {
    Throughput::SetUp();
    ::setenv("PENSTOCK_SIMULATED_GPUS", "8", 1);
    trainer_ = (fs::path(program).parent_path() / "penstock-train-classifier").string();
  }

  /// Four epochs of six steps on two GPUs; a checkpoint behind every step.
  Outcome train(const std::vector<std::string>& more, const Variables& variables = {}) {
    std::vector<std::string> flags{"--synthetic",
                                   "96",
                                   "--classes",
                                   "4",
                                   "--batch",
                                   "16",
                                   "--epochs",
                                   "4",
                                   "--devices",
                                   "cuda:0,1",
                                   "--transport",
                                   "none",
                                   "--checkpoint",
                                   checkpoint_.string(),
                                   "--checkpoint-every",
                                   "1",
                                   "--losses",
                                   losses_.string(),
                                   "--quiet"};
    flags.insert(flags.end(), more.begin(), more.end());
    Variables all{{"PENSTOCK_CACHE", (fs::temp_directory_path() / "penstock-test").string()},
                  {"PENSTOCK_SIMULATED_GPUS", "2"}};
    all.insert(all.end(), variables.begin(), variables.end());
    std::swap(program, trainer_);
    const Outcome outcome = finish(start(flags, 0, all));
    std::swap(program, trainer_);
    return outcome;
  }

  std::string trainer_;
  fs::path losses_ = folder_ / "losses";
  fs::path checkpoint_ = folder_ / "checkpoint";
};

TEST_F(SimulatedGpus, EightHaveTheDigestsOfTheHost) {
  for (const std::vector<std::string>& plan : {std::vector<std::string>{"--epochs", "3"},
                                               {"--epochs", "3", "--remainder", "pad"},
                                               {"--epochs", "2", "--shuffle", "32"}}) {
    const auto digest_on = [&](const std::string& devices) {
      std::vector<std::string> flags = plan;
      flags.insert(flags.end(), {"--devices", devices, "--uneven"});
      return report(flags).at("digest").get<std::string>();
    };
    const std::string host = digest_on("host:8");
    EXPECT_NE(host, std::string(host.size(), '0'));
    EXPECT_EQ(digest_on("cuda:0,1,2,3,4,5,6,7"), host);
    EXPECT_EQ(digest_on("cuda:7,0,0"), digest_on("host:3"));
  }
}

// What an aborted exchange leaves in the gradients must neither be counted nor saved.
TEST_F(SimulatedGpus, AReplicaThatFailsLeavesTheCheckpointOfAGoodStep) {
  const Outcome whole = train({});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Losses expected = read_losses(losses_);
  ASSERT_EQ(expected.size(), 24U);
  // Of rank 1; the first ones compare the lists of gradients and options.
  for (const int call : {9, 12, 13, 33}) {
    SCOPED_TRACE(call);
    fs::remove(losses_);
    fs::remove(checkpoint_);
    const Outcome failed =
        train({}, {{"PENSTOCK_SIMULATED_NCCL_FAULTS", "error 1 " + std::to_string(call) + " 6"}});
    EXPECT_EQ(failed.status, 1);
    EXPECT_THAT(failed.err, HasSubstr("remote process exited or there was a network error"));
    if (!fs::exists(checkpoint_)) continue;  // it was in the first step
    const Outcome resumed = train({"--resume"});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    const Losses found = read_losses(losses_);
    EXPECT_FALSE(found.empty());
    EXPECT_LT(found.size(), expected.size());
    for (const auto& [step, loss] : found) EXPECT_EQ(loss, expected.at(step)) << "step " << step;
  }
}

}  // namespace
}  // namespace penstock
