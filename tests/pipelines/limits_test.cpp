// Programs with little memory, few descriptors or few threads: the same bytes, or an error that says what is short.
#include <gmock/gmock.h>

#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class Limits : public Throughput {
 protected:
  /// With `limit`, "-v 100000"; dumps no core.
  Outcome run_within(const std::string& limit, const std::vector<std::string>& flags,
                     const std::string& name = program) {
    std::vector<std::string> command{
        "-c", "ulimit -c 0 && ulimit " + limit + " && exec \"$0\" \"$@\"", name};
    command.insert(command.end(), flags.begin(), flags.end());
    const std::string before = std::exchange(program, "/bin/sh");
    Outcome outcome = finish(start(command));
    program = before;
    return outcome;
  }
  // A fault is tolerated: that memory is out must not be taken for one.
  std::vector<std::string> flags(const char* io_threads) {
    return {"--data",  photos().string(), "--crop",  "32",         "--batch",
            "16",      "--seed",          "7",       "--digest",   "--json",
            "-",       "--threads",       "2",       "--on-fault", "replace",
            "--quiet", "--io-threads",    io_threads};
  }
  // Where glibc itself gets no memory for a new thread's destructors, it ends the program.
  static void expect_error(const Outcome& outcome, const char* what_is_short) {
    if (outcome.status == -SIGABRT) {
      EXPECT_THAT(outcome.err, HasSubstr("Fatal glibc error"));
      return;
    }
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(what_is_short));
  }
  // Hashes; not of what says when files were written.
  static std::map<std::string, std::size_t> shards_in(const fs::path& folder) {
    std::map<std::string, std::size_t> files;
    for (const auto& each : fs::directory_iterator(folder))
      if (each.path().extension() == ".tar" || each.path().extension() == ".jpegindex")
        files[each.path().filename().string()] = std::hash<std::string>()(read_file(each.path()));
    return files;
  }
};

// Whether it ended before main(): by the dynamic linker, or where GnuTLS, which libraries that are linked with need, begins.
bool is_not_loaded(const Outcome& outcome) {
  constexpr int kCannotLoad = 127;
  return outcome.status == kCannotLoad || outcome.err.starts_with("Error in GnuTLS initialization");
}

TEST_F(Limits, LittleMemoryIsAnErrorAndNeverOtherBytes) {
  for (const char* io_threads : {"0", "2"}) {
    const Outcome enough = run(flags(io_threads));
    ASSERT_EQ(enough.status, 0) << enough.err;
    int errors = 0;
    int successes = 0;
    for (int mib = 40; mib <= 400; mib += mib < 120 ? 4 : 40) {
      const Outcome outcome = run_within("-v " + std::to_string(mib * 1024), flags(io_threads));
      if (is_not_loaded(outcome)) continue;
      SCOPED_TRACE(std::to_string(mib) + " MiB: " + outcome.err);
      if (outcome.status == 0) {
        ++successes;
        const json report = outcome.report();
        EXPECT_EQ(report["digest"], enough.report()["digest"]);
        EXPECT_EQ(report["faults"]["count"], 0);
      } else {
        ++errors;
        expect_error(outcome, "memory");
      }
    }
    EXPECT_GT(errors, 0);
    EXPECT_GT(successes, 0);
  }
}

TEST_F(Limits, FewDescriptorsAreEnoughOrAnError) {
  const Outcome enough = run(flags("2"));
  int successes = 0;
  for (int descriptors = 4; descriptors <= 20; ++descriptors) {
    const Outcome outcome = run_within("-n " + std::to_string(descriptors), flags("2"));
    if (is_not_loaded(outcome)) continue;
    SCOPED_TRACE(std::to_string(descriptors) + " descriptors: " + outcome.err);
    if (outcome.status == 0) {
      ++successes;
      EXPECT_EQ(outcome.report()["digest"], enough.report()["digest"]);
    } else {
      expect_error(outcome, "oo many open files");
    }
  }
  EXPECT_GT(successes, 0);
}

TEST_F(Limits, PreparingWithLittleMemoryWritesTheSameShardsOrNone) {
  const std::string prepare = (fs::path(program).parent_path() / "penstock-prepare").string();
  const auto to = [&](const fs::path& out) {
    return std::vector<std::string>{photos().string(), out.string(), "--longest-side", "64",
                                    "--threads",       "2",          "--quiet"};
  };
  const fs::path whole = folder_ / "whole";
  ASSERT_EQ(run_within("-n 100", to(whole), prepare).status, 0);
  const auto expected = shards_in(whole);
  ASSERT_FALSE(expected.empty());
  int successes = 0;
  const fs::path out = folder_ / "packed";
  for (int mib = 40; mib <= 400; mib += mib < 120 ? 4 : 40) {
    const Outcome outcome = run_within("-v " + std::to_string(mib * 1024), to(out), prepare);
    if (is_not_loaded(outcome)) continue;
    SCOPED_TRACE(std::to_string(mib) + " MiB: " + outcome.err);
    if (outcome.status == 0) {  // whatever those before it have left there
      ++successes;
      EXPECT_EQ(shards_in(out), expected);
      fs::remove_all(out);
    } else {
      expect_error(outcome, "memory");
    }
  }
  EXPECT_GT(successes, 0);
}

}  // namespace
}  // namespace penstock
