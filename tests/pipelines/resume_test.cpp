// kill -9, several processes, and digests that were recorded: SEMANTICS D9, S1, S2, S5.
#include <chrono>
#include <random>
#include <thread>

#include <gmock/gmock.h>

#include "tests/pipelines/run_program.hpp"
#include "tests/sanitized.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class Resume : public Throughput {
 protected:
  std::vector<std::string> flags(std::vector<std::string> more) {
    std::vector<std::string> all{"--data", photos().string(), "--crop", "32",       "--batch",
                                 "16",     "--seed",          "7",      "--digest", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// As torchrun would start them: `of` processes at once, each with `more` flags. Their reports.
  std::vector<json> run_world(int of, std::vector<std::string> more) {
    more.insert(more.end(), {"--json", "-"});
    std::vector<pid_t> children;
    for (int rank = 0; rank < of; ++rank)
      children.push_back(start(flags(more), 0, torchrun(rank, of), std::to_string(rank)));
    std::vector<json> reports;
    for (int rank = 0; rank < of; ++rank) {
      const Outcome outcome = finish(children[rank], std::to_string(rank));
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      reports.push_back(outcome.status == 0 ? outcome.report() : json::object());
    }
    return reports;
  }
  static Variables torchrun(int rank, int of) {
    return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(of)}};
  }
  static std::string sum(const std::vector<json>& reports) {
    Digest total;
    for (const json& report : reports) total += Digest::parse(report["digest"].get<std::string>());
    return total.to_string();
  }
};

constexpr int kKills = test::kSanitized ? 5 : 20;  // each takes ten times as long with a sanitizer

TEST_F(Resume, EndsInTheSameDigestAfterKill9AtAnyMoment) {
  const std::string state = (folder_ / "state.json").string();
  const json whole = report({"--epochs", "30"});
  const auto steps = whole["steps"].get<std::uint64_t>();
  std::mt19937 random(1);
  std::uint64_t killed_underway = 0;
  for (int round = 0; round < kKills; ++round) {
    fs::remove(state);
    const pid_t child = start(flags(
        {"--epochs", "30", "--state-out", state, "--state-every", "1", "--devices", "host:4"}));
    // Behind a step of the first half: most of the other half is before it, however busy the
    // machine.
    const std::uint64_t behind = random() % (steps / 2);
    const auto saved_step = [&] {
      return fs::exists(state) ? LoaderState::from_json(read_file(state)).step : 0;
    };
    while (saved_step() <= behind) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(child, SIGKILL);
    (void)finish(child);
    killed_underway += LoaderState::from_json(read_file(state)).step < steps ? 1 : 0;
    EXPECT_LE(fs::file_size(state), 1300U);
    const json rest = report({"--epochs", "30", "--state-in", state});
    ASSERT_EQ(rest["digest"], whole["digest"]) << "round " << round;
  }
  EXPECT_GT(killed_underway, 0U);
}

TEST_F(Resume, ProcessesShareTheGlobalBatchesSampleBySample) {
  const json whole = report({"--epochs", "2"});
  for (const char* devices : {"host:1", "host:2"}) {
    const auto reports = run_world(4, {"--epochs", "2", "--devices", devices});
    EXPECT_EQ(sum(reports), whole["digest"].get<std::string>());
    std::uint64_t samples = 0;
    for (const json& report : reports) {
      EXPECT_EQ(report["world"], 4);
      EXPECT_EQ(report["steps"], whole["steps"]);
      samples += report["samples"].get<std::uint64_t>();
    }
    EXPECT_EQ(samples, whole["samples"]);
  }
}

TEST_F(Resume, AStateOfTwoProcessesGoesOnWithFourAndThenWithOne) {
  const json whole = report({"--epochs", "3"});
  const std::string first = (folder_ / "first").string();
  const std::string second = (folder_ / "second").string();
  (void)run_world(2, {"--steps", "3", "--state-out", first});
  EXPECT_TRUE(fs::exists(first + ".0") && fs::exists(first + ".1"));
  (void)run_world(4, {"--steps", "4", "--state-in", first, "--state-out", second});
  EXPECT_EQ(report({"--epochs", "3", "--state-in", second})["digest"], whole["digest"]);
}

TEST_F(Resume, StatesOfDifferentStepsGoOnFromTheEarliest) {
  const std::string state = (folder_ / "state").string();
  (void)run_world(2, {"--steps", "5", "--state-out", state});
  auto behind = LoaderState::from_json(read_file(state + ".1"));
  behind.step = 4;
  write_file(state + ".1", behind.to_json());
  const Outcome outcome =
      run(flags({"--steps", "1", "--state-in", state, "--state-out", (folder_ / "s").string()}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("the earliest, step 4"));
  EXPECT_EQ(LoaderState::from_json(read_file(folder_ / "s")).step, 5U);
}

TEST_F(Resume, ProcessesWithoutASeedAreRefused) {
  const pid_t child = start({"--data", photos().string(), "--batch", "16"}, 0, torchrun(0, 2));
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("need one seed"));
}

TEST_F(Resume, LaunchersThatDisagreeAreRefused) {
  auto variables = torchrun(0, 1);
  variables.insert(variables.end(), {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  const Outcome outcome = finish(start(flags({"--steps", "1"}), 0, variables));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("torchrun"), HasSubstr("mpirun")));
}

TEST_F(Resume, UnderMpirunProcessesShareTheGlobalBatches) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs mpirun";
  const json whole = report({"--epochs", "2"});
  const std::string out = (folder_ / "report").string();
  std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -np 4 " +
      program;
  for (const std::string& flag : flags({"--epochs", "2", "--json", out})) command += " " + flag;
  ASSERT_EQ(std::system((command + " >/dev/null 2>" + (folder_ / "err").string()).c_str()), 0)
      << read_file(folder_ / "err");
  std::vector<json> reports;
  for (int rank = 0; rank < 4; ++rank)
    reports.push_back(json::parse(read_file(out + "." + std::to_string(rank))));
  EXPECT_EQ(sum(reports), whole["digest"].get<std::string>());
}

TEST_F(Resume, VerifyChecksEveryStepAgainstWhatWasRecorded) {
  const std::string file = (folder_ / "digests").string();
  (void)report({"--epochs", "2", "--record", file});
  for (const char* devices : {"host:1", "host:4"})
    (void)report({"--epochs", "2", "--verify", file, "--devices", devices, "--threads", "3"});
  // A run that was stopped and resumed records the same file.
  const std::string text = read_file(file);
  const std::string state = (folder_ / "state").string();
  (void)report({"--steps", "5", "--record", file, "--state-out", state});
  (void)report({"--epochs", "2", "--record", file, "--state-in", state});
  EXPECT_EQ(read_file(file), text);
  // A device keeps nothing that could be read back.
  (void)report({"--epochs", "2", "--record", "/dev/null", "--state-in", state});

  const auto refuses = [&](std::vector<std::string> more, int status, const std::string& words) {
    more.insert(more.end(), {"--verify", file});
    const Outcome outcome = run(flags(more));
    EXPECT_EQ(outcome.status, status);
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  refuses({"--epochs", "3"}, 1, "step 8 is not in");
  refuses({"--epochs", "1", "--shuffle", "off"}, 1, "step 0 has the digest");
  std::string changed = text;
  changed[changed.rfind('\n', changed.size() - 2) + 5] ^= 1;
  write_file(file, changed);
  refuses({"--epochs", "2"}, 1, "step 7 has the digest");
  const std::string head = "penstock-digests 1 1\n";
  const std::string digest(32, '0');
  for (const auto& [damaged, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 1: expected 'penstock-digests 1' and the number of processes"},
           {"nonsense", "line 1: expected 'penstock-digests 1'"},
           {"penstock-digests 2 1\n", "line 1: expected 'penstock-digests 1'"},
           {"penstock-digests 1 0\n", "line 1: expected 'penstock-digests 1'"},
           {"penstock-digests 1 1 more\n", "line 1: expected 'penstock-digests 1'"},
           {"penstock-digests 1 4294967296\n", "line 1: expected 'penstock-digests 1'"},
           {head + "+0 " + digest + "\n", "line 2: expected a step and its digest"},
           {head + "-1 " + digest + "\n", "line 2: expected a step and its digest"},
           {head + "0\n", "line 2: expected a step and its digest"},
           {head + "0 " + digest + " more\n", "line 2: expected a digest of 32 hexadecimal digits"},
           {head + "0 " + std::string(32, 'A') + "\n", "line 2: expected a digest"},
           {head + "0 " + digest + "\n0 " + digest + "\n", "line 3: expected a step after 0"},
           {text.substr(0, text.size() - 1), "line 9: expected a newline at the end"}}) {
    write_file(file, damaged);
    refuses({"--epochs", "2"}, 1, words);
  }
  fs::remove(file);
  refuses({"--epochs", "2"}, 1, "cannot be read");
}

TEST_F(Resume, ARecordThatWouldLackStepsIsRefused) {
  const std::string file = (folder_ / "digests").string();
  const std::string state = (folder_ / "state").string();
  (void)report({"--steps", "5", "--state-out", state});
  (void)report({"--steps", "3", "--record", file});
  const std::string before = read_file(file);
  const Outcome ends_early = run(flags({"--epochs", "2", "--record", file, "--state-in", state}));
  EXPECT_EQ(ends_early.status, 2);
  EXPECT_THAT(ends_early.err, AllOf(HasSubstr("--record: '" + file + "' has no digest of step 4"),
                                    HasSubstr("or name another file")));
  EXPECT_EQ(read_file(file), before);

  (void)run_world(2, {"--steps", "5", "--record", file});
  const Outcome of_two = finish(
      start(flags({"--epochs", "2", "--record", file, "--state-in", state}), 0, torchrun(0, 4)));
  EXPECT_EQ(of_two.status, 2);
  EXPECT_THAT(of_two.err, HasSubstr("was recorded by one of 2 processes, and here there are 4"));

  // A new file has the steps from there on, for a run that resumes there.
  const std::string rest = (folder_ / "rest").string();
  (void)report({"--epochs", "2", "--record", rest, "--state-in", state});
  (void)report({"--epochs", "2", "--verify", rest, "--state-in", state});
}

TEST_F(Resume, OneProcessVerifiesWhatSeveralRecorded) {
  const std::string file = (folder_ / "digests").string();
  (void)run_world(2, {"--epochs", "2", "--record", file});
  (void)run_world(2, {"--epochs", "2", "--verify", file});
  (void)report({"--epochs", "2", "--verify", file});
  const Outcome outcome =
      finish(start(flags({"--epochs", "2", "--verify", file}), 0, torchrun(0, 4)));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("one of 2 processes"));
}

}  // namespace
}  // namespace penstock
