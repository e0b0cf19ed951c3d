#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/asleep.hpp"
#include "tests/free_port.hpp"
#include "tests/pipelines/run_program.hpp"
#include "tests/project_path.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

// README.md shows some lines of a report, from "throughput" to "bottleneck".
TEST_F(Throughput, ReadmeShowsLinesOfTheReport) {
  const std::string readme = read_file(test::project_path("README.md"));
  const std::size_t begin = readme.find("\nthroughput  ");
  ASSERT_NE(begin, std::string::npos);
  std::istringstream lines(readme.substr(begin + 1, readme.find("```", begin) - begin - 1));
  const Outcome outcome = run({"--data", photos().string(), "--crop", "32", "--quiet"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  int shown = 0;
  for (std::string line; std::getline(lines, line); ++shown)
    EXPECT_THAT("\n" + outcome.out, HasSubstr("\n" + line.substr(0, 14))) << line;
  EXPECT_EQ(shown, 4);
}

// What one has decoded in an epoch, another one gets in the next.
TEST_F(Throughput, ProcessesShareWhatTheyLearnOfJpegs) {
  const auto indexed = [&](const std::string& index, const std::string& name) {
    std::vector<pid_t> children;
    const std::string port = std::to_string(test::free_port());
    for (int rank = 0; rank < 4; ++rank)
      children.push_back(
          start({"--data", photos().string(), "--crop", "32", "--batch", "12", "--seed", "7",
                 "--epochs", "2", "--devices", "host:1", "--threads", "1", "--quiet", "--index",
                 index, "--json", (folder_ / name).string()},
                0,
                {{"RANK", std::to_string(rank)},
                 {"WORLD_SIZE", "4"},
                 {"LOCAL_RANK", std::to_string(rank)},
                 {"LOCAL_WORLD_SIZE", "4"},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", port}},
                name + std::to_string(rank)));
    double least = 1;
    for (int rank = 0; rank < 4; ++rank) {
      const Outcome outcome =
          finish(children[static_cast<std::size_t>(rank)], name + std::to_string(rank));
      EXPECT_EQ(outcome.status, 0) << outcome.err;
      const json report = json::parse(read_file(folder_ / (name + "." + std::to_string(rank))));
      least = std::min(
          least, report["jpeg"]["indexed"].get<double>() / report["jpeg"]["own"].get<double>());
    }
    return least;
  };
  EXPECT_LT(indexed("build", "alone"), 0.5);
  const std::string shared = "shared:" + (folder_ / "index").string();
  (void)indexed(shared, "first");
  EXPECT_GE(indexed(shared, "second"), 0.99);
}

TEST_F(Throughput, GivesOneDigestForAnyThreadsAndDevices) {
  const json reference = report({"--epochs", "2", "--threads", "1", "--devices", "host:1"});
  EXPECT_EQ(reference["samples"], 2 * kImages);
  EXPECT_EQ(reference["steps"], 8);
  EXPECT_EQ(reference["per_epoch"].size(), 2U);
  for (const char* threads : {"1", "2", "8"})
    for (const char* devices : {"host:1", "host:2", "host:4"})
      ASSERT_EQ(report({"--epochs", "2", "--threads", threads, "--devices", devices})["digest"],
                reference["digest"]);
  EXPECT_NE(report({"--epochs", "2", "--shuffle", "20"})["digest"], reference["digest"]);
  EXPECT_NE(report({"--epochs", "1"})["digest"], reference["digest"]);
  const json round_robin =
      report({"--epochs", "2", "--devices", "host:4", "--split", "round_robin"});
  EXPECT_EQ(round_robin["digest"], reference["digest"]);
  EXPECT_EQ(round_robin["devices"][3]["samples"],
            24);  // of short batches of 12 the front gets its fill
  const json early = report({"--epochs", "2", "--devices", "host:4", "--split", "shard_early"});
  EXPECT_EQ(early["samples"], 2 * kImages);
  EXPECT_EQ(early["devices"][3]["samples"], 30);
}

TEST_F(Throughput, GivesTheSameDigestWhenStoppedAndResumedAtAnyStep) {
  const std::string state = (folder_ / "state.json").string();
  for (const char* shuffle : {"full", "20", "off"}) {
    const json whole = report({"--epochs", "2", "--shuffle", shuffle});
    for (int step = 0; step <= 8; ++step) {
      const json first =
          report({"--steps", std::to_string(step), "--shuffle", shuffle, "--state-out", state});
      ASSERT_EQ(first["steps"], step);
      const json second = report({"--epochs", "2", "--shuffle", shuffle, "--state-in", state,
                                  "--devices", step % 2 == 0 ? "host:4" : "host:2"});
      ASSERT_EQ(second["digest"], whole["digest"])
          << "stopped at step " << step << ", shuffle " << shuffle;
      ASSERT_EQ(second["steps"], 8 - step);
    }
  }
}

TEST_F(Throughput, EndsAfterTheStepAtHandWhenInterrupted) {
  const std::string state = (folder_ / "state.json").string();
  const pid_t child =
      start({"--data", photos().string(), "--crop", "32", "--batch", "16", "--epochs", "100000",
             "--state-out", state, "--state-every", "1", "--json", "-"});
  while (!fs::exists(state)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  kill(child, SIGINT);
  const Outcome outcome = finish(child);
  EXPECT_EQ(outcome.status, 130);
  const auto saved = penstock::LoaderState::from_json(read_file(state));
  EXPECT_EQ(saved.step, outcome.report()["steps"]);
}

// Whether a process has a handler for the signal.
bool catches(pid_t process, int signal) {
  std::istringstream status(read_file("/proc/" + std::to_string(process) + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1U) != 0;
  return false;
}

// A signal ends the wait at hand; the step that was delivered counts.
TEST_F(Throughput, ASignalEndsALongStepAtOnce) {
  const std::string state = (folder_ / "state.json").string();
  const std::string digests = (folder_ / "digests").string();
  const pid_t child = start({"--data", photos().string(), "--crop", "32", "--batch", "16",
                             "--consume-ms", "1000000", "--state-out", state, "--record", digests,
                             "--timeline", (folder_ / "trace").string(), "--json", "-"});
  while (!catches(child, SIGTERM)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Then it is in its first step, or else still waits for it: that must end, too.
  ASSERT_TRUE(test::await_all_asleep(child)) << "it ended";
  const auto begin = std::chrono::steady_clock::now();
  kill(child, SIGTERM);
  const Outcome outcome = finish(child);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(500));
  ASSERT_EQ(outcome.status, 130) << outcome.err;
  const auto saved = penstock::LoaderState::from_json(read_file(state));
  EXPECT_EQ(saved.step, outcome.report()["steps"]);
  EXPECT_LE(saved.step, 1U);
  std::istringstream lines(read_file(digests));
  std::size_t recorded = 0;
  for (std::string line; std::getline(lines, line);) ++recorded;
  EXPECT_EQ(recorded, 1 + saved.step);
}

TEST_F(Throughput, NamesEveryBadFileAndFinishesAroundThem) {
  const fs::path data = make_folder(20);
  const std::string good = read_file(fs::directory_iterator(data)->path());
  std::string bomb = good;
  // The frame header: marker, length, precision, then height and width.
  const std::size_t frame = std::min(bomb.find("\xFF\xC0"), bomb.find("\xFF\xC2"));
  ASSERT_NE(frame, std::string::npos);
  bomb.replace(frame + 5, 4, "\xEA\x60\xEA\x60");  // 60,000 x 60,000
  write_file(data / "bad_bomb.jpg", bomb);
  write_file(data / "bad_cut.jpg", good.substr(0, good.size() / 8));
  write_file(data / "bad_empty.jpg", "");
  write_file(data / "bad_text.jpg", "This is no photograph.\n");
  const std::vector<std::string> bad{"bad_bomb.jpg", "bad_cut.jpg", "bad_empty.jpg",
                                     "bad_text.jpg"};
  const std::vector<std::string> flags{"--data", data.string(), "--crop", "32",     "--batch",
                                       "4",      "--seed",      "1",      "--json", "-"};

  const Outcome raised = run(flags);
  EXPECT_EQ(raised.status, 1);
  EXPECT_THAT(raised.err, AllOf(HasSubstr("bad_"), HasSubstr("on_fault = mask or replace")));
  for (const char* policy : {"mask", "replace"}) {
    auto tolerant = flags;
    tolerant.insert(tolerant.end(), {"--on-fault", policy});
    const Outcome outcome = run(tolerant);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const json faults = outcome.report()["faults"];
    EXPECT_EQ(outcome.report()["samples"], 24);
    EXPECT_EQ(faults["count"], 4);
    ASSERT_EQ(faults["list"].size(), 4U);
    std::vector<std::string> files;
    for (const json& fault : faults["list"]) {
      files.push_back(fs::path(fault["file"].get<std::string>()).filename());
      EXPECT_NE(fault["reason"], "");
    }
    EXPECT_THAT(files, testing::UnorderedElementsAreArray(bad));
    for (const std::string& name : bad)
      EXPECT_THAT(outcome.err, HasSubstr(name));  // the text report
  }
}

TEST_F(Throughput, NamesADirectoryThatItsUserMayNotRead) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const fs::path data = folder_ / "classes";
  const fs::path photo = fs::directory_iterator(make_folder(1))->path();
  for (const char* name : {"cats", "dogs"}) {
    fs::create_directories(data / name);
    fs::copy_file(photo, data / name / "1.jpg");
  }
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(data / "dogs", fs::perms::none);
  const Outcome outcome = run({"--data", data.string(), "--batch", "1"}, kNobody);
  if (outcome.status == kCannotStart)
    GTEST_SKIP() << "a folder above " << program << " is closed to other users";
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr((data / "dogs").string()), HasSubstr("ermission denied")));
}

TEST_F(Throughput, TellsADataErrorFromWrongFlags) {
  EXPECT_EQ(run({"--help"}).status, 0);
  EXPECT_THAT(run({"--version"}).out, HasSubstr("penstock"));
  const auto refuses = [&](const std::vector<std::string>& flags, int status, const char* words) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, status) << flags[0];
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  const std::string data = photos().string();
  refuses({"--no-such-flag"}, 2, "--no-such-flag");
  refuses({"--data", data, "--synthetic", "5"}, 2, "--synthetic");
  refuses({"--data", data, "--shuffle", "some"}, 2, "--shuffle");
  refuses({"--data", data, "--devices", "gpu:0"}, 2, "--devices");
  refuses({"--data", data, "--batch", "10", "--devices", "host:4"}, 2, "uneven");
  refuses({"--data", data, "--state-every", "5"}, 2, "--state-out");
  refuses({"--data", data, "--decode", "quick"}, 2, "--decode");
  refuses({"--data", data, "--decode", "libjpeg", "--index", "build"}, 2, "--index");
  refuses({"--data", data, "--index", "on"}, 2, "found 'on'");
  refuses({"--data", data, "--index", data}, 1, "no *.jpegindex file in this folder");
  write_file(folder_ / "notes", "This is no index, and long enough to be read.\n");
  refuses({"--data", data, "--index", (folder_ / "notes").string()}, 1, "JPEG index");
  refuses({"--data", data, "--split", "sideways"}, 2, "--split");
  refuses({"--data", data, "--io-threads", "-1"}, 2, "--io-threads");
  refuses({"--plan", "plan.json", "--crop", "8"}, 2, "--crop: cannot be used with --plan");
  refuses({"--plan", "plan.json", "--storage-timeout", "5"}, 2,
          "--storage-timeout: cannot be used with --plan");
  refuses({"--data", data, "--crop", "x"}, 2,
          "--crop: expected an integer from 1 to 65535, found 'x'");
  refuses({"--data", data, "--consume-ms", "-0.5"}, 2,
          "--consume-ms: expected a number from 0 to 86400000, found '-0.5'");
  refuses({"--data", (folder_ / "nowhere").string()}, 1, "nowhere");
  refuses({"--data", data, "--state-in", (folder_ / "none.json").string()}, 1, "none.json");
  refuses({"--data", data, "--batch", "16", "--steps", "1", "--state-out", "/proc/no/state"}, 1,
          "/proc/no/state");
  if (penstock::gpu_count() == 0)
    refuses({"--data", data, "--devices", "cuda:0"}, 1, "cuda:0 cannot be used");
}

// Devices and pipes are written to, never replaced; a report that is lost is no success.
TEST_F(Throughput, OutputFilesMayBeDevicesAndLostOnesAreAnError) {
  const std::string data = photos().string();
  const auto run_with = [&](const std::string& flag, const std::string& file) {
    return run(
        {"--data", data, "--crop", "32", "--batch", "8", "--steps", "2", "--quiet", flag, file});
  };
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* flag : {"--json", "--record", "--state-out"}) {
    std::string text;
    std::jthread reader([&] { text = read_file(pipe); });
    const Outcome outcome = run_with(flag, pipe.string());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    reader.join();
    EXPECT_GT(text.size(), 20U) << flag;
    EXPECT_TRUE(fs::is_fifo(pipe)) << flag;
    const Outcome lost = run_with(flag, "/dev/full");
    EXPECT_EQ(lost.status, 1) << flag;
    EXPECT_THAT(lost.err, HasSubstr("/dev/full: No space left on device"));
  }
  fs::create_symlink("report", folder_ / "link");
  EXPECT_EQ(run_with("--json", (folder_ / "link").string()).status, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_GT(fs::file_size(folder_ / "report"), 20U);

  for (const std::string flags : {"--json -", "--devices host:1"})
    expect_lost(program, "--crop 32 --batch 8 --steps 2 --quiet --data '" + data + "' " + flags);
  for (const char* name : {"penstock-throughput", "penstock-prepare", "penstock-training-loop"})
    expect_lost((fs::path(program).parent_path() / name).string(), "--help");
  expect_lost(program, "--version");
}

// What is looked at before the run begins: the index beside the data in a bucket, and a name.
TEST_F(Throughput, ErrorsBeforeTheRunAreSaidToo) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--data", "s3://photos/train"},
        {"--plan", "plan.json", "--index", "s3://photos/train", "--storage-timeout", "5"}}) {
    const Outcome bucket = finish(start(flags, 0,
                                        {{"AWS_ENDPOINT_URL", "http://127.0.0.1:1"},
                                         {"AWS_ACCESS_KEY_ID", "testing"},
                                         {"AWS_SECRET_ACCESS_KEY", "testing"}}));
    EXPECT_EQ(bucket.status, 1) << bucket.err;
    EXPECT_THAT(bucket.err, HasSubstr("s3://"));
  }
  const std::string name(300, 'x');
  const Outcome index = run({"--data", photos().string(), "--index", name});
  EXPECT_EQ(index.status, 2) << index.err;
  EXPECT_THAT(index.err, HasSubstr("found '" + name + "'"));
}

TEST_F(Throughput, EndlessInputFilesAreRefused) {
  EXPECT_THAT(run({"--data", photos().string(), "--state-in", "/dev/zero"}).err,
              HasSubstr("longer than a gigabyte"));
}

TEST_F(Throughput, ReportsTheKeysOfItsInterface) {
  const json keys = report({"--steps", "3", "--devices", "host:2"});
  for (const char* key :
       {"samples",    "steps",      "epochs",         "seconds",        "samples_per_s",
        "per_epoch",  "bytes_read", "stall_fraction", "consume_s",      "first_batch_ms",
        "bottleneck", "stages",     "peak_rss_mb",    "budget_peak_mb", "threads",
        "seed",       "world",      "devices",        "faults",         "digest",
        "version",    "jpeg",       "tokens"})
    EXPECT_TRUE(keys.contains(key)) << key;
  for (const char* stage : {"order", "slot", "read", "decode", "copy"}) {
    EXPECT_TRUE(keys["stages"][stage].contains("wait_s")) << stage;
    EXPECT_TRUE(keys["stages"][stage].contains("busy_s")) << stage;
  }
  EXPECT_EQ(keys["devices"][1]["name"], "host:1");
  EXPECT_EQ(keys["devices"][1]["samples"], 24);
}

TEST_F(Throughput, ReportsTokens) {
  // Documents of 1 to 9 tokens, which end with 0.
  std::string bytes;
  for (int document = 0; document < 400; ++document)
    for (int i = document % 9; i >= 0; --i) bytes += {static_cast<char>(i), '\0'};
  write_file(folder_ / "train.bin", bytes);
  const std::string data = (folder_ / "train.bin").string();
  const auto report_of = [&](std::vector<std::string> flags) {
    for (const char* flag : {"--json", "-", "--digest"}) flags.emplace_back(flag);
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.status == 0 ? outcome.report() : json::object();
  };
  const auto tokens = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--data", data, "--batch", "8", "--seed", "7"});
    return report_of(flags);
  };
  const json packed = tokens({"--pack", "16", "--document-end", "0"});
  EXPECT_EQ(packed["tokens"]["row_tokens"], 16);
  EXPECT_EQ(packed["tokens"]["row_bytes"], 4 * 16 * 8);
  EXPECT_LT(packed["tokens"]["padding_fraction"], 0.05);
  EXPECT_GT(packed["tokens"]["tokens_per_s"], 0);
  EXPECT_TRUE(packed["jpeg"].is_null());
  const double places = packed["samples"].get<double>() * 16;
  EXPECT_NEAR(places * (1 - packed["tokens"]["padding_fraction"].get<double>()), 1990, 0.01);

  const json blocks = tokens({"--blocks", "32"});
  EXPECT_EQ(blocks["samples"], 1989 / 32);
  EXPECT_EQ(blocks["tokens"]["padding_fraction"], 0);
  EXPECT_THAT(run({"--data", data, "--blocks", "32", "--quiet"}).out,
              HasSubstr("million/s without padding"));

  const auto by_length = [&](const char* devices) {
    return report_of({"--data", data, "--seed", "7", "--by-length", "4,10", "--batch-tokens", "80",
                      "--document-end", "0", "--devices", devices});
  };
  const json lengths = by_length("host:1");
  EXPECT_EQ(lengths["samples"], 400);
  EXPECT_EQ(lengths["steps"], 180 / 20 + (220 + 7) / 8);
  const double padded = 180 * 4 + 220 * 10;
  EXPECT_NEAR(lengths["tokens"]["padding_fraction"].get<double>(), 1 - 1990 / padded, 1e-9);
  EXPECT_NEAR(lengths["tokens"]["row_tokens"].get<double>(), padded / 400, 1e-9);
  EXPECT_EQ(by_length("host:4")["digest"], lengths["digest"]);

  const std::string plan = (folder_ / "plan.json").string();
  EXPECT_EQ(tokens({"--pack", "16", "--document-end", "0", "--save-plan", plan})["digest"],
            packed["digest"]);
  EXPECT_EQ(report_of({"--plan", plan})["tokens"]["padding_fraction"],
            packed["tokens"]["padding_fraction"]);

  const std::string megatron = test::project_path("tests/source/golden/megatron_u16");
  for (const char* ending : {"", ".bin", ".idx"})
    EXPECT_EQ(report_of({"--data", megatron + ending, "--pack", "325", "--pack-method", "wrap",
                         "--batch", "1"})["samples"],
              1);

  const auto refuses = [&](std::vector<std::string> flags, const char* words) {
    flags.insert(flags.begin(), {"--data", data});
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  refuses({"--blocks", "8", "--pack", "8"}, "cannot be used with --pack");
  refuses({"--blocks", "8", "--crop", "8"}, "is for images");
  refuses({"--document-end", "8"}, "with --blocks N, --pack N or --by-length N,N,...");
  refuses({"--by-length", "8"}, "needs --batch-tokens N");
  refuses({"--pack", "8", "--long-samples", "drop"}, "is for --by-length N,N,...");
  refuses({"--pack", "8", "--batch-tokens", "9"}, "is for --by-length N,N,...");
  refuses({"--by-length", "8", "--batch-tokens", "80", "--batch", "8"}, "leave it out");
  refuses({"--by-length", "8", "--batch-tokens", "8", "--shuffle", "100"},
          "--shuffle: is full or off with --by-length, found 100");
  EXPECT_THAT(run({"--data", megatron, "--pack", "8", "--document-end", "0"}).err,
              HasSubstr("an .idx says where documents end"));
  refuses({"--blocks", "8", "--token-type", "f32"}, "--token-type");
}

TEST_F(Throughput, DeliversTheSameWhateverDecodesAndWhateverIsKnown) {
  const json libjpeg = report({"--epochs", "2", "--decode", "libjpeg"});
  const json fast = report({"--epochs", "2", "--decode", "fast"});
  const json learning =
      report({"--epochs", "2", "--decode", "fast", "--index", "build", "--budget-mb", "400",
              "--threads", "1"});  // of two, one may still have an image of the first epoch in hand
  EXPECT_EQ(fast["digest"], libjpeg["digest"]);
  EXPECT_EQ(learning["digest"], libjpeg["digest"]);
  const json smooth = report({"--epochs", "2"});
  EXPECT_NE(smooth["digest"], libjpeg["digest"]);
  EXPECT_EQ(report({"--epochs", "2", "--decode", "reference"})["digest"], smooth["digest"]);

  EXPECT_EQ(libjpeg["jpeg"]["own"], 0);
  EXPECT_GE(libjpeg["jpeg"]["libjpeg"]["chosen"], 2 * kImages);
  EXPECT_GE(fast["jpeg"]["own"], 2 * kImages);
  EXPECT_EQ(fast["jpeg"]["indexed"], 0);
  EXPECT_TRUE(fast["jpeg"]["index"].is_null());
  EXPECT_GE(learning["jpeg"]["indexed"], kImages);
  EXPECT_EQ(learning["jpeg"]["index"]["images"], kImages);
}

TEST_F(Throughput, KeepsAnIndexInAFileAndMakesADamagedOneAnew) {
  const std::string index = (folder_ / "index").string();
  const std::vector<std::string> flags{"--epochs", "1", "--index", index};
  const json first = report(flags);
  const json second = report(flags);
  EXPECT_EQ(second["digest"], first["digest"]);
  EXPECT_EQ(second["jpeg"]["indexed"], second["jpeg"]["own"]);

  const std::string good = read_file(index);
  std::string damaged = good;
  for (std::size_t at = good.size() / 2; at < good.size(); at += 50) damaged[at] ^= 1;
  for (const std::string& bad : {damaged, good.substr(0, good.size() / 3)}) {
    write_file(index, bad);
    const json third = report(flags);
    EXPECT_EQ(third["digest"], first["digest"]);
    EXPECT_LT(third["jpeg"]["indexed"], third["jpeg"]["own"]);
    EXPECT_EQ(third["jpeg"]["index"]["images"], kImages);
    const json fourth = report(flags);
    EXPECT_EQ(fourth["jpeg"]["indexed"], fourth["jpeg"]["own"]);
  }
}

TEST_F(Throughput, WritesATimelineOfEveryThread) {
  const fs::path file = folder_ / "trace.json";
  (void)report({"--epochs", "1", "--threads", "2", "--timeline", file.string()});
  const json trace = json::parse(read_file(file));
  std::map<std::string, int> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++events[event["name"].get<std::string>()];
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_EQ(events["wait"], 4);
  EXPECT_EQ(events["consume"], 4);
  EXPECT_GE(events["decode"], kImages);
  EXPECT_GE(events["read"], kImages);
  EXPECT_GE(events["order"], 4);
  EXPECT_GE(events["slot"], 4);
  EXPECT_GE(events["copy"], 4);
}

TEST_F(Throughput, NamesDecodeWhenTheConsumerIsFasterAndTheConsumerWhenItIsNot) {
  const json fast = report({"--epochs", "5"});
  EXPECT_EQ(fast["bottleneck"], "decode");
  // A step takes ten times as long as making one took, however slow this build and machine are.
  const double step_ms = 1e3 * fast["seconds"].get<double>() / fast["steps"].get<double>();
  const double consume_ms = std::max(300.0, 10 * step_ms);
  const json slow = report({"--epochs", "2", "--consume-ms", std::to_string(consume_ms)});
  EXPECT_EQ(slow["bottleneck"], "consumer");
  EXPECT_LE(slow["stall_fraction"], 0.02);
}

}  // namespace
}  // namespace penstock
