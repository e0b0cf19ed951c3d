// Whole epochs over a real S3 server: the same digest as from a local folder, also where reads fail
// and the server goes away.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/storage/object_store.hpp"
#include "tests/asleep.hpp"
#include "tests/source/files.hpp"
#include "tests/storage/s3_server.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::S3Server;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kPhotos = 30;
constexpr int kBatch = 5;
// GETs that a server answers before it stops: more than a loader has in flight (three slots), so that the first step is
// complete in whatever order they arrive.
constexpr int kAnswered = 4 * kBatch;

class S3Loader : public ::testing::Test {
 protected:
  void SetUp() override {
    PENSTOCK_REQUIRE_MOTO();
    for (const auto& [name, value] :
         {std::pair("AWS_ACCESS_KEY_ID", "testing"), std::pair("AWS_SECRET_ACCESS_KEY", "testing"),
          std::pair("no_proxy", "127.0.0.1")}) {
      ::setenv(name, value, 1);
    }
  }
  // Generated photographs, a folder and a tar shard of them; made once.
  static const fs::path& photos() {
    static const fs::path kFolder = [] {
      static const TemporaryFolder kOwn;
      const fs::path made = source::synthetic_image_folder(
          {.count = kPhotos, .cache = fs::temp_directory_path() / "penstock-test"});
      fs::copy(made, kOwn / "folder", fs::copy_options::recursive);
      const auto source = source::image_folder(kOwn / "folder");
      fs::create_directories(kOwn / "shards");
      TarWriter shard(kOwn / "shards/0.tar");
      Record record;
      for (std::uint64_t i = 0; i < source->size(); ++i) {
        EXPECT_TRUE(source->read(i, record));
        shard.add(fmt::format("{:04}.jpg", i),
                  {record[0].raw(), static_cast<std::size_t>(record[0].byte_size())});
        const std::string label = std::to_string(*source->info(i).label);
        shard.add(fmt::format("{:04}.cls", i), std::as_bytes(std::span(label)));
      }
      shard.finish();
      return kOwn.path();
    }();
    return kFolder;
  }

  static Dataset plan(SourcePtr source) {
    return Dataset(std::move(source))
        .seed(7)
        .shuffle()
        .repeat(2)
        .map(decode_image({.crop = random_resized_crop(32)}))
        .batch(kBatch);
  }
  static Loader loader(SourcePtr source, RetryOptions retry = {}) {
    return plan(std::move(source))
        .loader({.context = InputContext{}, .digest = true, .threads = 2, .retry = retry});
  }
  // The digest of all steps from wherever it stands.
  static std::string run(Loader& loader) {
    while (loader.next()) {
    }
    return loader.digest().to_string();
  }
  static std::string digest_of(const SourcePtr& source) {
    Loader all = loader(source);
    return run(all);
  }
  static SourcePtr remote_folder(const S3Server& server) {
    return source::image_folder("s3://photos/folder", {.storage = server.options()});
  }
};

TEST_F(S3Loader, AListOfObjectsGivesTheDigestOfOneOfFiles) {
  const S3Server server(photos());
  const auto folder = source::image_folder(photos() / "folder");
  std::vector<std::string> here;
  std::vector<std::string> there;
  std::vector<std::int64_t> labels;
  for (std::uint64_t number = folder->size(); number-- > 0;) {
    here.push_back(folder->location(number));
    there.push_back("s3://photos/folder/" + folder->info(number).key);
    labels.push_back(static_cast<std::int64_t>(number) * 3);
  }
  const SourcePtr local = source::files(here, {.labels = labels});
  const SourcePtr remote = source::files(there, {.labels = labels, .storage = server.options()});
  EXPECT_EQ(remote->fingerprint(), local->fingerprint());
  EXPECT_EQ(digest_of(remote), digest_of(local));
  EXPECT_EQ(remote->name(1).file, there[1]);
  there[3] += ".none";
  const SourcePtr damaged = source::files(there, {.labels = labels, .storage = server.options()});
  Record record;
  const auto missing = damaged->read(3, record);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.fault().to_string(), HasSubstr(there[3]));
  EXPECT_TRUE(damaged->read(4, record));
}

TEST_F(S3Loader, AnObjectOfAListThatIsReplacedIsAFaultFromThenOn) {
  const S3Server server(photos());
  const auto put = [&](const std::string& text) {
    const auto done = storage::open_object_store(server.options())
                          ->put({"photos", "list/1.jpg"}, std::as_bytes(std::span(text)));
    ASSERT_TRUE(done) << done.fault().reason;
  };
  const auto open = [&] {
    return source::files({"s3://photos/list/1.jpg"}, {.storage = server.options()});
  };
  put("one");
  const SourcePtr source = open();
  Record record;
  EXPECT_TRUE(source->read(0, record));
  EXPECT_TRUE(source->read(0, record));
  put("two");
  for (int times = 0; times < 2; ++times) {
    const auto changed = source->read(0, record);
    ASSERT_FALSE(changed);
    EXPECT_THAT(changed.fault().to_string(), AllOf(HasSubstr("s3://photos/list/1.jpg"),
                                                   HasSubstr("changed after it had been read")));
  }
  EXPECT_TRUE(open()->read(0, record));
}

TEST_F(S3Loader, FolderAndShardsGiveTheDigestOfLocalOnesAndStatesGoAcross) {
  const S3Server server(photos());
  const IndexOptions in_memory{.location = IndexLocation::memory};
  for (const bool shards : {false, true}) {
    const auto here = shards
                          ? source::webdataset((photos() / "shards").string(), {.index = in_memory})
                          : source::image_folder(photos() / "folder");
    const auto there = shards
                           ? source::webdataset("s3://photos/shards/*.tar",
                                                {.index = in_memory, .storage = server.options()})
                           : remote_folder(server);
    const std::string whole = digest_of(here);
    EXPECT_EQ(digest_of(there), whole);

    // Five steps from the local copy, the rest from the bucket.
    Loader first = loader(here);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(first.next());
    Loader second = loader(there);
    second.restore(first.state());
    EXPECT_EQ(run(second), whole);
  }
}

TEST_F(S3Loader, ReadsThatFailOnceLoseNothing) {
  const std::string whole = digest_of(source::image_folder(photos() / "folder"));
  for (const char* how : {"busy", "cut"}) {
    const S3Server server(photos(), {"--fail-every", "20", "--fail-how", how});
    Loader all = loader(remote_folder(server), {.initial_backoff = std::chrono::milliseconds(5)});
    EXPECT_EQ(run(all), whole) << how;
    // What was cut is gone on with, and no attempt of the loader.
    const Stats stats = all.stats();
    EXPECT_GE(stats.tiers.at(0).failures, 2 * kPhotos / 20U) << how;
    EXPECT_EQ(stats.retries > 0, how == std::string_view("busy"));
    EXPECT_GE(server.gets(), 2 * kPhotos + 2 * kPhotos / 20) << how;
  }
}

TEST_F(S3Loader, AServerThatDiesIsAClearErrorAndNotAWait) {
  S3Server server(photos());
  Loader all = loader(remote_folder(server), {.attempts = 3});
  ASSERT_TRUE(all.next());
  server.kill();
  const auto begin = Clock::now();
  try {
    while (all.next()) {
    }
    FAIL() << "read on without a server";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("s3://photos/folder/"), HasSubstr(server.endpoint()),
                                    HasSubstr("3 attempts")));
    EXPECT_TRUE(error.fault().transient);
  }
  EXPECT_LT(Clock::now() - begin, server.options().timeout / 2);
}

TEST_F(S3Loader, AServerThatStopsAnsweringIsAnErrorAfterTheTimeout) {
  const S3Server server(photos(), {"--hang-after", std::to_string(kAnswered)});
  auto options = server.options();
  options.timeout = std::chrono::seconds(10);  // a busy machine's server needs some for an answer
  Loader all =
      loader(source::image_folder("s3://photos/folder", {.storage = options}), {.attempts = 1});
  ASSERT_TRUE(all.next());
  EXPECT_THAT(
      [&] {
        while (all.next()) {
        }
      },
      ::testing::ThrowsMessage<DataError>(HasSubstr("no byte for 10000 ms")));
}

TEST_F(S3Loader, GoesOnWhenTheServerComesBack) {
  const std::string whole = digest_of(source::image_folder(photos() / "folder"));
  S3Server server(photos());
  Loader all = loader(remote_folder(server),
                      {.attempts = 20, .initial_backoff = std::chrono::milliseconds(1)});
  ASSERT_TRUE(all.next());
  server.kill();
  std::jthread back([&] { server.start(); });
  EXPECT_EQ(run(all), whole);
}

#ifdef PENSTOCK_THROUGHPUT
struct Outcome {
  int status = -1;
  std::string out;
};
Outcome command(const std::string& text) {
  Outcome outcome;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(text.c_str(), "r"), ::pclose);
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe.get()) != nullptr) outcome.out += part.data();
  return outcome;
}
std::string value_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\"");
  if (at == std::string::npos) return "none in: " + json;
  const std::size_t begin = json.find_first_not_of(": \"", at + key.size() + 2);
  return json.substr(begin, json.find_first_of(",\"\n}", begin) - begin);
}

// 1% of the reads fail once: nothing is lost, and the program's digest is that of a local run.
TEST_F(S3Loader, TheProgramReadsBucketsAndOutlivesFaults) {
  const S3Server server(photos(), {"--fail-every", "100"});
  ::setenv("AWS_ENDPOINT_URL", server.endpoint().c_str(), 1);
  const auto report = [&](const std::string& data) {
    return command(std::string(PENSTOCK_THROUGHPUT) + " --data '" + data +
                   "' --crop 32 --batch 20 --epochs 6 --seed 7 --digest --json - 2>&1")
        .out;
  };
  const std::string here = report((photos() / "folder").string());
  const std::string there = report("s3://photos/folder");
  ::unsetenv("AWS_ENDPOINT_URL");
  EXPECT_EQ(value_of(there, "digest"), value_of(here, "digest"));
  EXPECT_EQ(value_of(there, "samples"), "180");
  EXPECT_GT(server.gets(), 180);
}

TEST_F(S3Loader, TheProgramsAskAsOftenAndWaitAsLongAsTheirFlagsSay) {
  const TemporaryFolder output;
  const auto run = [](const S3Server& server, const std::string& line) {
    ::setenv("AWS_ENDPOINT_URL", server.endpoint().c_str(), 1);
    const std::string said = command(line + " 2>&1; echo status $?").out;
    ::unsetenv("AWS_ENDPOINT_URL");
    return said;
  };
  const std::string throughput = std::string(PENSTOCK_THROUGHPUT) +
                                 " --data s3://photos/folder --crop 32 --batch 20 --seed 7 ";
  // oneTBB's threads live as long as the process, and with them what OpenSSL keeps for each.
  const std::string prepare = std::string("ASAN_OPTIONS=detect_leaks=0 ") + PENSTOCK_PREPARE +
                              " s3://photos/folder " + output.path().string() + " ";
  {
    const S3Server server(photos(), {"--fail-every", "7"});
    EXPECT_THAT(run(server, throughput + "--read-attempts 1"), HasSubstr("status 1"));
    EXPECT_THAT(run(server, throughput), HasSubstr("status 0"));
    EXPECT_THAT(run(server, prepare + "--read-attempts 1"), HasSubstr("status 1"));
    EXPECT_THAT(run(server, prepare), HasSubstr("status 0"));
  }
  const S3Server server(photos(), {"--hang-after", "10"});
  EXPECT_THAT(run(server, throughput + "--read-attempts 1 --storage-timeout 0.5"),
              AllOf(HasSubstr("no byte for 500 ms"), HasSubstr("status 1")));
}

// A request that gets no answer holds up no Ctrl-C.
TEST_F(S3Loader, ASignalEndsTheProgramWhileARequestHangs) {
  const TemporaryFolder output;
  const std::string state = (output.path() / "state").string();
  const S3Server server(photos(), {"--hang-after", std::to_string(kAnswered)});
  ::setenv("AWS_ENDPOINT_URL", server.endpoint().c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {1, 2}) ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), stream);
    ::execl(PENSTOCK_THROUGHPUT, PENSTOCK_THROUGHPUT, "--data", "s3://photos/folder", "--crop",
            "32", "--batch", "5", "--seed", "7", "--storage-timeout", "1000", "--read-attempts",
            "1", "--state-out", state.c_str(), "--state-every", "1", nullptr);
    ::_exit(127);
  }
  ::unsetenv("AWS_ENDPOINT_URL");
  // It has delivered a step, and asks for what does not come.
  while (!fs::exists(state) || server.gets() <= kAnswered) {
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it ended";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(test::await_all_asleep(child)) << "it ended";
  const auto begin = Clock::now();
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(500));
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  std::ifstream file(state);
  const std::string saved{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GE(LoaderState::from_json(saved).step, 1U);
}
#endif

}  // namespace
}  // namespace penstock
