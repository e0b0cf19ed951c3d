// Disks that fail, are slow or full: an error that names the file, and nothing lost or left half done.
#include <gmock/gmock.h>

#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class FaultyDisk : public Throughput {
 protected:
  Outcome run_on(const std::string& faults, const std::string& path,
                 const std::vector<std::string>& flags) {
    return finish(start(flags, 0,
                        {{"LD_PRELOAD", PENSTOCK_FAULTY_DISK},
                         {"FAULTY_DISK", faults},
                         {"FAULTY_DISK_PATH", path}}));
  }
  std::vector<std::string> flags(const std::vector<std::string>& more) {
    std::vector<std::string> all{"--data", photos().string(), "--crop", "32",       "--batch",
                                 "16",     "--seed",          "7",      "--digest", "--json",
                                 "-"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// One photograph's path from the folder of all on.
  static std::string one() {
    for (const auto& entry : fs::recursive_directory_iterator(photos()))
      if (entry.path().extension() == ".jpg") return entry.path().string();
    return "none";
  }
};

TEST_F(FaultyDisk, ABadSectorNamesItsFileAndMovesNoOtherSample) {
  const Outcome raised = run_on("eio", one(), flags({"--read-attempts", "2"}));
  EXPECT_EQ(raised.status, 1);
  EXPECT_THAT(raised.err, AllOf(HasSubstr(fs::path(one()).filename().string()),
                                HasSubstr("Input/output error (2 attempts)")));
  const Outcome masked =
      run_on("eio", one(), flags({"--read-attempts", "1", "--on-fault", "mask", "--epochs", "2"}));
  ASSERT_EQ(masked.status, 0) << masked.err;
  const json report = masked.report();
  EXPECT_EQ(report["samples"], 2 * kImages);
  EXPECT_EQ(report["faults"]["count"], 2) << masked.out;
}

TEST_F(FaultyDisk, ReadsThatFailOnceOrAreSlowChangeNothing) {
  const Outcome sound = run(flags({}));
  ASSERT_EQ(sound.status, 0) << sound.err;
  for (const char* faults : {"once", "slow"}) {
    const Outcome outcome = run_on(faults, *faults == 's' ? one() : photos().string(), flags({}));
    ASSERT_EQ(outcome.status, 0) << faults << outcome.err;
    EXPECT_EQ(outcome.report()["digest"], sound.report()["digest"]) << faults;
    EXPECT_EQ(outcome.report()["retries"], *faults == 'o' ? kImages : 0);
  }
}

TEST_F(FaultyDisk, AFullDiskKeepsTheOldStateAndIsAnError) {
  const fs::path state = folder_ / "state.json";
  ASSERT_EQ(run(flags({"--steps", "1", "--state-out", state.string()})).status, 0);
  const std::string before = read_file(state);
  for (const char* faults : {"full", "eio"}) {
    // A state has a few hundred bytes: all the room is taken by the report before it.
    const Outcome outcome =
        run_on(faults, folder_.string(),
               {"--data", photos().string(), "--crop", "32", "--batch", "16", "--seed", "7",
                "--steps", "2", "--state-in", state.string(), "--state-out",
                (folder_ / "new.json").string(), "--json", (folder_ / "report.json").string()});
    EXPECT_EQ(outcome.status, 1) << faults << outcome.out;
    EXPECT_THAT(outcome.err,
                AnyOf(HasSubstr("No space left on device"), HasSubstr("Input/output error")))
        << faults;
    EXPECT_EQ(read_file(state), before);
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("new.json."))) << "left behind";
  }
}

TEST_F(FaultyDisk, PrepareStartsAgainWhereTheDiskFailed) {
  const std::string throughput =
      std::exchange(program, (fs::path(program).parent_path() / "penstock-prepare").string());
  const fs::path out = folder_ / "shards";
  const std::vector<std::string> flags{photos().string(), out.string(), "--shard-samples", "25"};
  const Outcome unread = run_on("eio", one(), flags);
  EXPECT_EQ(unread.status, 1);
  EXPECT_THAT(unread.err, AllOf(HasSubstr(fs::path(one()).filename().string()),
                                HasSubstr("Input/output error")));
  const Outcome full = run_on("full", out.string(), flags);
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  const Outcome sound = run(flags);
  EXPECT_EQ(sound.status, 0) << sound.err;
  EXPECT_EQ(run({photos().string(), out.string(), "--shard-samples", "25", "--verify"}).status, 0);
  // What cannot be read is neither the same nor damaged.
  for (const auto& [part, what] : {std::pair{"data-000001.tar", "data-000001.tar"},
                                   {"penstock-prepare.json", "list of shards"}}) {
    const Outcome unverified =
        run_on("eio", part, {photos().string(), out.string(), "--shard-samples", "25", "--verify"});
    EXPECT_EQ(unverified.status, 1) << part;
    EXPECT_THAT(unverified.err + unverified.out,
                AllOf(HasSubstr(what), HasSubstr("Input/output error")))
        << part;
  }
  program = throughput;
}

TEST_F(FaultyDisk, AnIndexThatCannotBeReadIsNotReplacedByASmallerOne) {
  const fs::path index = folder_ / "photos.index";
  ASSERT_EQ(run(flags({"--index", index.string()})).status, 0);
  const std::string before = read_file(index);
  const Outcome outcome = run_on("eio", index.string(), flags({"--index", index.string()}));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("photos.index"), HasSubstr("Input/output error")));
  EXPECT_EQ(read_file(index), before);
}

}  // namespace
}  // namespace penstock
