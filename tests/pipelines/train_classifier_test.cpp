// Runs penstock-train-classifier as its users do: alone, under mpirun, with torchrun's variables,
// killed and resumed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/free_port.hpp"
#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class TrainClassifier : public Throughput {
 protected:
  void SetUp() override {
    Throughput::SetUp();
    throughput_ = program;
    trainer_ = (fs::path(program).parent_path() / "penstock-train-classifier").string();
    program = "/usr/bin/env";
  }
  void TearDown() override {
    program = throughput_;
    Throughput::TearDown();
  }

  /// A small run: 8 steps an epoch, of which the last is short.
  std::vector<std::string> small(const std::vector<std::string>& more,
                                 const std::string& epochs = "3") const {
    std::vector<std::string> all{trainer_, "--synthetic", "120",      "--classes",
                                 "4",      "--batch",     "16",       "--epochs",
                                 epochs,   "--quiet",     "--losses", losses_.string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Variables variables(const Variables& more = {}) const {
    Variables all{{"PENSTOCK_CACHE", (fs::temp_directory_path() / "penstock-test").string()},
                  {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                  {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                  {"OMPI_MCA_rmaps_base_oversubscribe", "1"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome train(const std::vector<std::string>& command) {
    return finish(start(command, 0, variables()));
  }
  Losses losses_of(const std::vector<std::string>& more) {
    fs::remove(losses_);
    const Outcome outcome = train(small(more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read_losses(losses_);
  }
  static void expect_near(const Losses& found, const Losses& expected, const std::string& what) {
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (const auto& [step, loss] : expected)
      // What is rounded differently in one step grows in the next ones: to 4e-6 at the end.
      EXPECT_NEAR(found.at(step), loss, 1e-4 * std::abs(loss)) << what << ", step " << step;
  }

  /// Of processes of one launch with these flags.
  std::vector<Outcome> processes_with(const std::vector<std::vector<std::string>>& flags) {
    const std::string port = std::to_string(test::free_port());
    std::vector<pid_t> processes;
    for (std::size_t rank = 0; rank < flags.size(); ++rank)
      processes.push_back(start(flags[rank], 0,
                                variables({{"RANK", std::to_string(rank)},
                                           {"LOCAL_RANK", std::to_string(rank)},
                                           {"WORLD_SIZE", std::to_string(flags.size())},
                                           {"LOCAL_WORLD_SIZE", std::to_string(flags.size())},
                                           {"MASTER_ADDR", "127.0.0.1"},
                                           {"MASTER_PORT", port},
                                           {"TORCHELASTIC_RUN_ID", "test"}}),
                                std::to_string(rank)));
    std::vector<Outcome> all;
    for (std::size_t rank = 0; rank < flags.size(); ++rank)
      all.push_back(finish(processes[rank], std::to_string(rank)));
    return all;
  }

  std::string throughput_;
  std::string trainer_;
  fs::path losses_ = folder_ / "losses";
};

TEST_F(TrainClassifier, TheLossCurveIsTheSameForOneTwoAndFourReplicas) {
  const Losses one = losses_of({"--devices", "host:1"});
  ASSERT_EQ(one.size(), 24);
  EXPECT_LT(one.at(23), one.at(0) / 2) << "it learns";
  for (const char* devices : {"host:2", "host:4"})
    expect_near(losses_of({"--devices", devices}), one, devices);
  EXPECT_NE(losses_of({"--devices", "host:1", "--seed", "8"}), one) << "what could not differ";
}

TEST_F(TrainClassifier, MicroStepsChangeNothingButTheRounding) {
  const Losses one = losses_of({"--devices", "host:2"});
  expect_near(losses_of({"--devices", "host:2", "--micro-steps", "3"}), one, "micro-steps");
}

#ifdef PENSTOCK_HAVE_MPI
TEST_F(TrainClassifier, FourProcessesGiveBitByBitWhatFourReplicasOfOneDo) {
  if (std::system("command -v mpirun >/dev/null") != 0)
    GTEST_SKIP() << "mpirun is missing; install openmpi-bin";
  const Losses together = losses_of({"--devices", "host:4"});
  const auto under_mpirun = [&](const char* processes, const char* devices) {
    fs::remove(losses_);
    std::vector<std::string> command{"mpirun", "-np", processes};
    const auto trainer = small({"--devices", devices, "--threads", "1"});
    command.insert(command.end(), trainer.begin(), trainer.end());
    const Outcome outcome = train(command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("replicas      4"));
    return read_losses(losses_);
  };
  EXPECT_EQ(under_mpirun("4", "host:1"), together);
  expect_near(under_mpirun("2", "host:2"), together, "2 processes of 2 replicas");
}
#endif

#ifdef PENSTOCK_HAVE_GLOO
// Ranks that differ would spoil each other's weights: all are told at the start.
TEST_F(TrainClassifier, ProcessesThatDifferAreToldAtOnce) {
  for (const auto& [flags, says] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"--seed", "8"}, "the seed is '7' in process 0, '8' in process 1"},
           {{"--rate", "0.1"}, "--rate is '0.05' in process 0, '0.1' in process 1"},
           {{"--steps", "5"}, "--steps is '"},
           {{"--micro-steps", "2"}, "--micro-steps is '1' in process 0, '2' in process 1"},
           {{"--resume", "--checkpoint", (folder_ / "checkpoint").string()},
            "--resume is 'not given' in process 0, 'given' in process 1"},
           {{"--wire", "bf16"}, "--wire is 'none' in process 0, 'bf16' in process 1"}}) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Outcome& outcome : processes_with({small({}), small(flags)})) {
      EXPECT_EQ(outcome.status, 1) << says;
      EXPECT_THAT(outcome.err, HasSubstr(says));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << says;
  }

  for (const auto& [flag, value, says] :
       {std::array{"--batch", "24", "batch"}, {"--synthetic", "180", "image_folder(180 files"}}) {
    std::vector<std::string> other = small({});
    std::ranges::find(other, flag)[1] = value;
    for (const Outcome& outcome : processes_with({small({}), other})) {
      EXPECT_EQ(outcome.status, 1) << flag;
      EXPECT_THAT(outcome.err, HasSubstr(says));
    }
  }

  // A checkpoint that only process 0 has is that of all.
  const Losses whole = losses_of({"--devices", "host:2"});
  const std::string checkpoint = (folder_ / "checkpoint").string();
  const std::vector<std::string> half{"--devices",          "host:2", "--checkpoint", checkpoint,
                                      "--checkpoint-every", "12",     "--steps",      "12"};
  ASSERT_EQ(train(small(half)).status, 0);
  fs::remove(losses_);
  for (const Outcome& outcome :
       processes_with({small({"--checkpoint", checkpoint, "--resume"}),
                       small({"--checkpoint", checkpoint + ".none", "--resume"})}))
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Losses rest = read_losses(losses_);
  EXPECT_EQ(rest.size(), 12U);
  for (const auto& [step, loss] : rest)
    EXPECT_NEAR(loss, whole.at(step), 1e-4 * whole.at(step)) << "step " << step;
}

// As where a copy to one machine was cut short.
TEST_F(TrainClassifier, AFileThatOneProcessLacksIsToldAtOnce) {
  const fs::path whole = folder_ / "whole";
  const fs::path cut = folder_ / "cut";
  fs::copy(photos(), whole, fs::copy_options::recursive);
  fs::copy(photos(), cut, fs::copy_options::recursive);
  for (const auto& each : fs::recursive_directory_iterator(cut))
    if (each.path().extension() == ".jpg") {
      fs::remove(each.path());
      break;
    }
  const auto of = [&](const fs::path& data) {
    return std::vector<std::string>{trainer_,       "--data",  data.string(), "--held-out",
                                    whole.string(), "--batch", "12",          "--quiet"};
  };
  for (const Outcome& outcome : processes_with({of(whole), of(cut)})) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("image_folder(59 files"));
  }
}

TEST_F(TrainClassifier, WhoDoesNotComeInTimeIsNamed) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      finish(start(small({"--join-timeout", "1"}), 0,
                   variables({{"RANK", "0"},
                              {"LOCAL_RANK", "0"},
                              {"WORLD_SIZE", "3"},
                              {"LOCAL_WORLD_SIZE", "3"},
                              {"MASTER_ADDR", "127.0.0.1"},
                              {"MASTER_PORT", std::to_string(test::free_port())},
                              {"TORCHELASTIC_RUN_ID", "test"}})));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("these did not join within 1 s: 1, 2"));
}

TEST_F(TrainClassifier, WhyOneProcessEndedIsSaidByAll) {
  const fs::path good = folder_ / "good";
  const fs::path damaged = folder_ / "damaged";
  fs::copy(photos(), good, fs::copy_options::recursive);
  fs::copy(photos(), damaged, fs::copy_options::recursive);
  for (const auto& each : fs::recursive_directory_iterator(damaged))
    if (each.path().extension() == ".jpg")
      write_file(each.path(), std::string(fs::file_size(each.path()), 'x'));
  const auto of = [&](const fs::path& data) {
    return std::vector<std::string>{trainer_,      "--data",    data.string(), "--held-out",
                                    good.string(), "--classes", "10",          "--batch",
                                    "12",          "--quiet"};
  };
  for (const auto& [data, says] : std::vector<std::pair<fs::path, const char*>>{
           {folder_ / "missing", "missing, found nothing; check the path"}, {damaged, "sample "}}) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Outcome& outcome : processes_with({of(good), of(data), of(good)})) {
      EXPECT_EQ(outcome.status, 1) << says;
      EXPECT_THAT(outcome.err, HasSubstr(says));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << says;
  }
}

TEST_F(TrainClassifier, SurvivorsOfAKilledProcessNameItAndARestartGoesOn) {
  const Losses whole = losses_of({"--devices", "host:2"});
  const std::string checkpoint = (folder_ / "checkpoint").string();
  const auto world = [&](const std::vector<std::string>& more, const char* port) {
    std::vector<pid_t> processes;
    for (const char* rank : {"0", "1"})
      processes.push_back(start(small(more, "1000"), 0,
                                variables({{"RANK", rank},
                                           {"LOCAL_RANK", rank},
                                           {"WORLD_SIZE", "2"},
                                           {"LOCAL_WORLD_SIZE", "2"},
                                           {"MASTER_ADDR", "127.0.0.1"},
                                           {"MASTER_PORT", port},
                                           {"TORCHELASTIC_RUN_ID", "test"}}),
                                rank));
    return processes;
  };
  const std::string port = std::to_string(test::free_port());
  auto processes = world({"--checkpoint", checkpoint, "--checkpoint-every", "5"}, port.c_str());
  while (!fs::exists(checkpoint)) {
    ASSERT_EQ(waitpid(processes[0], nullptr, WNOHANG), 0) << read_file(folder_ / "err0");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(processes[1], SIGKILL);
  const Outcome survivor = finish(processes[0], "0");
  EXPECT_EQ(finish(processes[1], "1").status, -SIGKILL);
  EXPECT_EQ(survivor.status, 1);
  EXPECT_THAT(survivor.err, HasSubstr("process 1 has died"));

  // With another number of processes than before, from wherever the checkpoint stands.
  fs::remove(losses_);
  const Outcome resumed =
      train(small({"--devices", "host:2", "--checkpoint", checkpoint, "--resume"}));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  const Losses rest = read_losses(losses_);
  EXPECT_FALSE(rest.empty()) << "killed too late to show anything";
  for (const auto& [step, loss] : rest)
    EXPECT_NEAR(loss, whole.at(step), 1e-4 * whole.at(step)) << "step " << step;
}
#endif

TEST_F(TrainClassifier, KilledAndResumedItHasTheSameLossesBitByBit) {
  const Losses whole = losses_of({"--devices", "host:2"});
  const std::string checkpoint = (folder_ / "checkpoint").string();
  fs::remove(losses_);
  const std::vector<std::string> flags{"--devices",          "host:2", "--checkpoint", checkpoint,
                                       "--checkpoint-every", "3"};
  const pid_t child = start(small(flags), 0, variables());
  while (!fs::exists(checkpoint)) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << read_file(folder_ / "err");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  (void)finish(child);
  ASSERT_FALSE(fs::exists(losses_)) << "killed too late to show anything";
  auto resume = flags;
  resume.emplace_back("--resume");
  const Outcome outcome = train(small(resume));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Losses rest = read_losses(losses_);
  ASSERT_FALSE(rest.empty());
  EXPECT_GE(rest.begin()->first, 3);
  EXPECT_EQ(rest, Losses(whole.find(rest.begin()->first), whole.end()));
}

TEST_F(TrainClassifier, EndsWithACheckpointOfItsLastStep) {
  const Losses whole = losses_of({"--devices", "host:2", "--steps", "9"});
  const std::string checkpoint = (folder_ / "checkpoint").string();
  const std::vector<std::string> flags{"--devices", "host:2", "--checkpoint", checkpoint};
  const auto run_to = [&](const char* step, const char* every, bool resume) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), {"--steps", step, "--checkpoint-every", every});
    if (resume) all.emplace_back("--resume");
    fs::remove(losses_);
    return losses_of(all);
  };
  (void)run_to("3", "50", false);  // shorter than the steps between two
  const Losses middle = run_to("7", "2", true);
  const Losses rest = run_to("9", "50", true);
  EXPECT_EQ(middle, Losses(whole.find(3), whole.find(7)));
  EXPECT_EQ(rest, Losses(whole.find(7), whole.end()));
}

TEST_F(TrainClassifier, WrongFlagsAndCheckpointsAreRefusedByName) {
  EXPECT_EQ(train(small({"--resume"})).status, 2);
  EXPECT_EQ(train(small({"--devices", "tpu:1"})).status, 2);
  const fs::path checkpoint = folder_ / "checkpoint";
  const std::vector<std::string> resume{"--checkpoint", checkpoint.string(), "--resume"};
  write_file(checkpoint, "not one\n");
  Outcome outcome = train(small(resume));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("'" + checkpoint.string() + "' is not a checkpoint"));
  fs::remove(checkpoint);
  ASSERT_EQ(train(small({"--checkpoint", checkpoint.string(), "--checkpoint-every", "24"})).status,
            0);
  const std::string whole = read_file(checkpoint);
  const std::size_t head = whole.find('\n');
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = whole;
    return text.replace(text.find(what), what.size(), instead);
  };
  const std::size_t in_the_numbers = (head + whole.size()) / 2;
  std::string flipped = whole;
  flipped[in_the_numbers] = static_cast<char>(flipped[in_the_numbers] ^ 0x40);
  const std::string huge = with("\"parameters\":", "\"parameters\":1");
  for (const auto& [text, says] : std::vector<std::pair<std::string, const char*>>{
           {whole.substr(0, whole.size() - 1), "bytes follow"},
           {whole + "more", "bytes follow"},
           {whole.substr(0, head), "bytes follow"},
           {whole.substr(0, head / 2), "is not a checkpoint"},
           {"", "is not a checkpoint"},
           {"[]\n", "is not a checkpoint"},
           {flipped, "its numbers are not those that its digest is of"},
           {huge, "bytes follow"},
           {with("\"parameters\":", "\"parameters\":-"), "its field 'parameters'"},
           {with("\"parameters\":", "\"parameters\":1e30,\"was\":"), "its field 'parameters'"},
           {with("\"digest\":\"", "\"digest\":5,\"was\":\""), "its field 'digest'"},
           {with("\"loader\"", "\"was\""), "its field 'loader'"},
           {with("penstock_state", "penstock_plate"), "is not a saved state"},
           {with("checkpoint 2", "checkpoint 1"), "has the format 'penstock-checkpoint 1'"}}) {
    write_file(checkpoint, text);
    outcome = train(small(resume));
    EXPECT_EQ(outcome.status, 1) << says;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

TEST_F(TrainClassifier, AReportThatIsLostIsAnError) {
  const std::string run = trainer_ + " --synthetic 40 --batch 20 --epochs 1 --quiet";
  setenv("PENSTOCK_CACHE", (fs::temp_directory_path() / "penstock-test").c_str(), 1);
  expect_lost(run, "");
  expect_lost(run, "--json -");
  expect_lost(trainer_, "--help");
}

// A device keeps nothing that could be read back.
TEST_F(TrainClassifier, LossesMayGoToADevice) {
  auto flags = small({"--resume", "--checkpoint", (folder_ / "checkpoint").string()}, "1");
  *std::ranges::find(flags, losses_.string()) = "/dev/zero";
  const Outcome outcome = train(flags);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Its defaults, on two replicas: within a minute on two cores, which is two minutes of one.
TEST_F(TrainClassifier, LearnsNinetyFivePercentWithinAMinute) {
  fs::remove(losses_);
  rusage before{};
  getrusage(RUSAGE_CHILDREN, &before);
  const Outcome outcome = train({trainer_, "--devices", "host:2", "--quiet", "--json", "-"});
  rusage after{};
  getrusage(RUSAGE_CHILDREN, &after);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GE(outcome.report()["accuracy"], 0.95) << outcome.report();
  const auto seconds = [](const rusage& used) {
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
  };
  const double used = seconds(after) - seconds(before);
  RecordProperty("cpu_seconds", static_cast<int>(used));
  EXPECT_LT(used, 120);
}

}  // namespace
}  // namespace penstock
