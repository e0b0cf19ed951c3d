// Runs penstock-prepare as its users do.
#include <chrono>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "tests/pipelines/run_program.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

class Prepare : public Throughput {
 protected:
  void SetUp() override {
    Throughput::SetUp();
    throughput_ = program;
    program = (fs::path(program).parent_path() / "penstock-prepare").string();
  }
  void TearDown() override {
    program = throughput_;
    Throughput::TearDown();
  }

  // Every file of a folder but the report, by name.
  static std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".tar" || entry.path().extension() == ".parquet")
        all[entry.path().filename().string()] = read_file(entry.path());
    return all;
  }
  // Digests of the decoded crops in order.
  static Digest digest(const Dataset& images) {
    Loader loader =
        images.map(decode_image({.crop = resize_to(48)})).seed(7).batch(8).loader({.digest = true});
    while (loader.next()) {
    }
    return loader.digest();
  }

  std::string throughput_;
  fs::path out_ = folder_ / "out-shards";
};

TEST_F(Prepare, KeepsEveryPixelLabelAndTheOrder) {
  const Outcome outcome =
      run({photos().string(), out_.string(), "--shard-samples", "25", "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = outcome.report();
  EXPECT_EQ(report["samples"], kImages);
  EXPECT_GT(report["transcoded"], kImages * 9 / 10);
  EXPECT_LE(report["bytes_out"].get<double>(), 1.01 * report["bytes_in"].get<double>());
  EXPECT_EQ(contents(out_).size(), 3U);
  EXPECT_EQ(digest(webdataset(out_.string())), digest(image_folder(photos())));

  const fs::path tables = folder_ / "tables";
  const Outcome again = run({photos().string(), tables.string(), "--shard-samples", "25", "--name",
                             "train", "--format", "parquet", "--json", "-"});
  ASSERT_EQ(again.status, 0) << again.err;
  for (const char* const same : {"samples", "transcoded", "bytes_out", "indexed"})
    EXPECT_EQ(again.report()[same], report[same]) << same;
  EXPECT_THAT(contents(tables),
              testing::UnorderedElementsAre(testing::Key("train-00000-of-00003.parquet"),
                                            testing::Key("train-00001-of-00003.parquet"),
                                            testing::Key("train-00002-of-00003.parquet")));
  EXPECT_EQ(digest(images(tables.string())), digest(images(out_.string())));
  EXPECT_THAT(run({photos().string(), tables.string(), "--name", "train", "--format", "arrow"}).err,
              HasSubstr("--format: arrow not in {tar,parquet}"));
}

// What the loader says of a data set: files and links that are left out.
TEST_F(Prepare, SaysWhatOfTheInputIsLeftOut) {
  const fs::path images = folder_ / "some";
  fs::create_directories(images);
  for (const auto& entry : fs::recursive_directory_iterator(photos()))
    if (entry.path().extension() == ".jpg" && !fs::exists(images / "a.jpg"))
      fs::copy_file(entry.path(), images / "a.jpg");
  std::ofstream(images / "notes.txt") << "text";
  const Outcome notice = run({images.string(), out_.string()});
  EXPECT_EQ(notice.status, 0) << notice.err;
  EXPECT_THAT(notice.err, HasSubstr("penstock-prepare: " + images.string() + ": left out 1 .txt"));
  EXPECT_THAT(notice.err, Not(HasSubstr("warning")));
  EXPECT_THAT(run({images.string(), out_.string(), "--quiet"}).err, Not(HasSubstr("left out")));
  fs::copy_file(images / "a.jpg", images / "b.picture");
  for (const char* flag : {"--dry-run", "--quiet"}) {
    const Outcome warning = run({images.string(), (folder_ / "other").string(), flag});
    EXPECT_EQ(warning.status, 0) << warning.err;
    EXPECT_THAT(warning.err,
                AllOf(HasSubstr("penstock-prepare: warning: " + images.string()),
                      HasSubstr("left out 1 .picture, 1 .txt"), HasSubstr("set the option sniff")));
  }
  const Outcome sniffed =
      run({images.string(), out_.string() + "-sniffed", "--sniff", "--json", "-"});
  ASSERT_EQ(sniffed.status, 0) << sniffed.err;
  EXPECT_EQ(sniffed.report()["samples"], 2);
  EXPECT_THAT(sniffed.err, HasSubstr("left out 1 .txt"));
}

class PrepareFormats : public Prepare, public ::testing::WithParamInterface<PrepareFormat> {};

INSTANTIATE_TEST_SUITE_P(Each, PrepareFormats,
                         ::testing::Values(PrepareFormat::tar, PrepareFormat::parquet),
                         [](const auto& format) { return name_of(format.param); });

TEST_P(PrepareFormats, GoOnAfterKill9AndGiveTheSameBytes) {
  const std::vector<std::string> flags{
      photos().string(), out_.string(), "--shard-samples", "7", "--format", name_of(GetParam())};
  ASSERT_EQ(run(flags).status, 0);
  const auto whole = contents(out_);
  ASSERT_EQ(whole.size(), 9U);
  std::mt19937 random(1);
  int unfinished = 0;
  const auto files = [&] {
    return fs::exists(out_) ? std::distance(fs::directory_iterator(out_), {}) : 0;
  };
  for (int round = 0; round < 20; ++round) {
    fs::remove_all(out_);
    for (int k = 0; k < 3; ++k) {
      // It is killed at the first change that it makes there, or some time later.
      const auto before = files();
      const pid_t child = start(flags);
      siginfo_t end{};
      const auto ended = [&] {
        return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               end.si_pid == child;
      };
      while (files() == before && !ended()) std::this_thread::yield();
      if (k > 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 20));
      kill(child, SIGKILL);
      (void)finish(child);
      unfinished += !fs::exists(out_) || contents(out_).size() < whole.size() ? 1 : 0;
    }
    const Outcome last = run(flags);
    ASSERT_EQ(last.status, 0) << last.err;
    ASSERT_EQ(contents(out_), whole) << "round " << round;
    for (const auto& entry : fs::directory_iterator(out_))
      ASSERT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
  EXPECT_GT(unfinished, 0);
}

TEST_F(Prepare, WritesAgainWhatWasChangedOrRemovedSince) {
  const std::vector<std::string> flags{photos().string(), out_.string(), "--shard-samples", "15"};
  ASSERT_EQ(run(flags).status, 0);
  const auto whole = contents(out_);
  const fs::path shard = out_ / "data-000001.tar";
  for (const bool removed : {false, true}) {
    if (removed)
      fs::remove(shard);
    else
      fs::resize_file(shard, 1000);
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(shard.string() +
                                       (removed ? "' has been removed" : "' has been changed")));
    EXPECT_EQ(contents(out_), whole);
  }
}

TEST_F(Prepare, PacksItsOwnShardsAgainUnchanged) {
  ASSERT_EQ(run({photos().string(), out_.string()}).status, 0);
  const fs::path again = folder_ / "again";
  ASSERT_EQ(run({out_.string(), again.string()}).status, 0);
  EXPECT_EQ(contents(again), contents(out_));
}

TEST_F(Prepare, FeedsThroughputFromItsShards) {
  ASSERT_EQ(run({photos().string(), out_.string()}).status, 0);
  program = throughput_;
  const json shards = report({"--data", out_.string(), "--epochs", "2"});
  EXPECT_EQ(shards["digest"], report({"--epochs", "2"})["digest"]);
  EXPECT_EQ(report({"--data", (out_ / "data-{000000..000000}.tar").string()})["samples"], kImages);
}

TEST_F(Prepare, WritesAnIndexThatThroughputGoesByFromTheFirstEpochOn) {
  const Outcome outcome =
      run({photos().string(), out_.string(), "--shard-samples", "25", "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.report()["indexed"], kImages);
  MemoryJpegIndex index;
  EXPECT_EQ(index.load(out_), kImages);
  EXPECT_EQ(index.load(out_ / "data-000001.jpegindex"), 25U);

  program = throughput_;
  const std::vector<std::string> prepared{"--data", out_.string(), "--epochs",
                                          "1",      "--decode",    "fast"};
  const json by_index = report(prepared);
  auto without = prepared;
  without.insert(without.end(), {"--index", "off"});
  const json without_index = report(without);
  EXPECT_EQ(by_index["jpeg"]["indexed"], by_index["jpeg"]["own"]);
  EXPECT_EQ(without_index["jpeg"]["indexed"], 0);
  EXPECT_EQ(by_index["digest"], without_index["digest"]);
  const json of_some = report({"--data", (out_ / "data-{000000..000001}.tar").string()});
  EXPECT_EQ(of_some["jpeg"]["indexed"], of_some["jpeg"]["own"]);
  EXPECT_EQ(report({"--data", out_.string(), "--decode", "libjpeg"})["digest"], by_index["digest"]);

  fs::remove(out_ / "data-000002.jpegindex");
  const json in_part = report(prepared);
  // Some images of an epoch that was not asked for are decoded ahead.
  EXPECT_THAT(in_part["jpeg"]["own"].get<int>() - in_part["jpeg"]["indexed"].get<int>(),
              AllOf(Ge(kImages - 50), Le(kImages - 50 + 3)))
      << "the others are learned, unless the next epoch's are decoded beside them";
  EXPECT_EQ(in_part["digest"], by_index["digest"]);
}

TEST_F(Prepare, ShrinksWhatIsLargerThanItMayBe) {
  const Outcome outcome = run({photos().string(), out_.string(), "--longest-side", "100",
                               "--quality", "85", "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json report = outcome.report();
  EXPECT_EQ(report["samples"], kImages);
  EXPECT_GT(report["shrunk"], 0);
  EXPECT_EQ(report["indexed"], kImages);
  EXPECT_LT(report["bytes_out"], report["bytes_in"]);
  EXPECT_THAT(outcome.err, HasSubstr("100 pixels on the longer side, at quality 85"));
  Loader loader = webdataset(out_.string())
                      .map(decode_image({.crop = resize_to(48), .geometry = "size"}))
                      .batch(1)
                      .loader();
  while (const auto step = loader.next()) {
    const auto* size = (*step)[0]["size"].data<std::int32_t>();
    EXPECT_LE(std::max(size[5], size[6]), 100);
  }
  EXPECT_EQ(run({photos().string(), out_.string(), "--longest-side", "90"}).status, 1)
      << "another size in the same folder";
}

TEST_F(Prepare, PacksBadFilesAsTheyAreAndSaysSo) {
  const fs::path data = make_folder(6);
  write_file(data / "bad.jpg", "This is no photograph.\n");
  const Outcome outcome = run({data.string(), out_.string(), "--json", "-"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.report()["kept"]["bad"], 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("bad.jpg"), HasSubstr("packed as it is")));
  EXPECT_EQ(webdataset(out_.string()).size(), 7U);
}

TEST_F(Prepare, RefusesToWriteAmongOtherFilesOrOtherwiseMadeShards) {
  const auto refuses = [&](const std::vector<std::string>& flags, int status, const char* words) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  };
  const fs::path data = make_folder(4);
  refuses({data.string(), photos().string()}, 1, "is not empty");
  refuses({data.string(), data.string()}, 2, "is inside");
  refuses({data.string(), (data / "shards").string()}, 2, "name a folder elsewhere");
  refuses({data.string(), "gs://bucket/shards"}, 2, "is no folder");
  ASSERT_EQ(run({data.string(), out_.string()}).status, 0);
  refuses({data.string(), out_.string(), "--interval", "16"}, 1, "interval 8, and now it is 16");
  EXPECT_EQ(run({data.string(), out_.string(), "--skip-bad"}).status, 0);
  const fs::path progress = out_ / "penstock-prepare.json";
  json damaged = json::parse(read_file(progress));
  damaged["shards"][0].erase("samples");
  std::ofstream(progress) << damaged;
  refuses({data.string(), out_.string()}, 1, "json' is damaged");
  refuses({data.string(), (progress / "shards").string()}, 1, "cannot be made: Not a directory");
  refuses({(folder_ / "nowhere").string(), (folder_ / "x").string()}, 1, "nowhere");
  refuses({data.string()}, 2, "OUTPUT");
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

// Each sample has a key of its own, and none looks like a note, whatever the files are called.
TEST_F(Prepare, AnyNamesMakeShardsThatAllReadersReadWhole) {
  const fs::path data = folder_ / "data";
  std::string image;
  for (const auto& entry : fs::recursive_directory_iterator(photos()))
    if (image.empty() && entry.is_regular_file()) image = read_file(entry.path());
  const std::vector<std::string> names{"__train__/1.jpg",
                                       "__train__/2.jpg",
                                       "_train__/1.jpg",
                                       "____/1.jpg",
                                       "b/a.b.jpg",
                                       "b/a.c.jpg",
                                       "b/a.jpg",
                                       "b/a_.jpg",
                                       "b/x\ny.jpg",
                                       "b/__y__.jpg",
                                       "b/w\xff.jpg",
                                       "b/-rf.jpg",
                                       "b/" + std::string(150, 'l') + ".jpg",
                                       "v1.2/1.jpg",
                                       "b/with space.jpg"};
  for (const std::string& name : names) {
    fs::create_directories((data / name).parent_path());
    write_file(data / name, image);
  }
  const Outcome outcome = run({data.string(), out_.string(), "--quiet"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(source::webdataset(out_.string())->size(), names.size());
  const fs::path files = folder_ / "files";
  fs::create_directories(files);
  ASSERT_EQ(std::system(("tar xf " + (out_ / "data-000000.tar").string() + " -C " + files.string())
                            .c_str()),  // NOLINT
            0);
  std::size_t images = 0;
  for (const auto& entry : fs::recursive_directory_iterator(files))
    images += entry.path().extension() == ".jpg" ? 1 : 0;
  EXPECT_EQ(images, names.size());
  EXPECT_EQ(run({data.string(), out_.string(), "--verify"}).status, 0);
}

// Members whose names differ, and that would be one file for `tar xf`.
TEST_F(Prepare, NoTwoSamplesUnpackToOneFile) {
  const fs::path data = folder_ / "tars";
  fs::create_directories(data);
  const std::string image = read_file(*fs::directory_iterator(make_folder(1)));
  const std::vector<std::string> names{"1.jpg",   "./1.jpg",  "/1.jpg",    "x/../1.jpg",
                                       "a/1.jpg", "a//1.jpg", "a/./1.jpg", "././a/1.jpg"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    TarWriter tar(data / ("in-" + std::to_string(k) + ".tar"));
    tar.add(names[k], std::as_bytes(std::span(image)));
    tar.finish();
  }
  ASSERT_EQ(run({data.string(), out_.string(), "--quiet"}).status, 0);
  const fs::path files = folder_ / "files";
  fs::create_directories(files);
  (void)std::system(
      ("tar xf " + (out_ / "data-000000.tar").string() + " -C " + files.string() + " 2> /dev/null")
          .c_str());  // NOLINT
  std::size_t images = 0;
  for (const auto& entry : fs::recursive_directory_iterator(files))
    images += entry.path().extension() == ".jpg" ? 1 : 0;
  EXPECT_EQ(images, names.size());
}

TEST_F(Prepare, VerifyFindsShardsThatAreNotItsOwn) {
  const std::vector<std::string> flags{photos().string(), out_.string(), "--quiet"};
  ASSERT_EQ(run(flags).status, 0);
  const auto verify = [&] {
    auto with = flags;
    with.emplace_back("--verify");
    return run(with);
  };
  ASSERT_EQ(verify().status, 0);
  write_file(out_ / "notes.txt", "no reader reads it");
  ASSERT_EQ(verify().status, 0);
  for (const char* stray : {"data-000009.tar", "x\x1b[31m.tar"}) {
    fs::copy_file(out_ / "data-000000.tar", out_ / stray);
    const Outcome outcome = verify();
    EXPECT_EQ(outcome.status, 1) << stray;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr(".tar': it is not one of the shards, and readers"),
                                   Not(HasSubstr("\x1b"))));
    fs::remove(out_ / stray);
  }
}

TEST_F(Prepare, NamesOfFilesAreShownWithoutTheirControlCharacters) {
  const fs::path data = make_folder(1);
  write_file(data / "b\x1b[31m.jpg", "no image");
  const Outcome packed = run({data.string(), out_.string(), "--quiet"});
  EXPECT_EQ(packed.status, 0);
  EXPECT_THAT(packed.out, AllOf(HasSubstr("b\\x1b[31m.jpg"), Not(HasSubstr("\x1b"))));

  const fs::path other = folder_ / "other";
  fs::create_directories(other);
  write_file(other / "c\x1b[31m", "is there");
  EXPECT_THAT(run({data.string(), other.string(), "--quiet"}).err,
              AllOf(HasSubstr("('c\\x1b[31m')"), Not(HasSubstr("\x1b"))));

  const fs::path shard = out_ / "data-000000.tar";
  std::string bytes = read_file(shard);
  bytes[bytes.find("no image")] = 'X';
  write_file(shard, bytes);
  EXPECT_THAT(run({data.string(), out_.string(), "--verify", "--quiet"}).out,
              AllOf(HasSubstr("in b\\x1b[31m.jpg"), Not(HasSubstr("\x1b"))));
}

TEST_F(Prepare, VerifyComparesParquetFilesToo) {
  const std::vector<std::string> flags{photos().string(), out_.string(), "--format", "parquet",
                                       "--quiet"};
  ASSERT_EQ(run(flags).status, 0);
  auto with = flags;
  with.emplace_back("--verify");
  Outcome outcome = run(with);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 shards and their indices are what 60 samples"));
  const fs::path shard = out_ / "data-00000-of-00001.parquet";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(shard, bytes);
  fs::remove(out_ / ".data-00000-of-00001.jpegindex");
  outcome = run(with);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("data-00000-of-00001.parquet': differs from byte " +
                                           std::to_string(bytes.size() / 2) + " on, in "),
                                 HasSubstr(".jpg, column 'image.bytes'\n"),
                                 HasSubstr(".data-00000-of-00001.jpegindex'")));
}

TEST_F(Prepare, VerifyComparesShardsAndIndicesWithTheirSource) {
  const fs::path data = make_folder(20);
  const std::vector<std::string> flags{data.string(), out_.string(), "--shard-samples", "8",
                                       "--quiet"};
  const auto verify = [&] {
    auto with = flags;
    with.emplace_back("--verify");
    return run(with);
  };
  EXPECT_THAT(verify().err, HasSubstr("holds nothing that penstock-prepare made"));
  ASSERT_EQ(run(flags).status, 0);
  const auto before = contents(out_);
  Outcome outcome = verify();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("3 shards and their indices are what 20 samples"));

  const fs::path shard = out_ / "data-000001.tar";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(shard, bytes);
  write_file(out_ / "data-000002.jpegindex", read_file(out_ / "data-000000.jpegindex"));
  outcome = verify();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("data-000001.tar': differs from byte " +
                                           std::to_string(bytes.size() / 2) + " on, in "),
                                 HasSubstr(".jpg\n"),
                                 HasSubstr("data-000002.jpegindex': 4 of its 4 images are missing"),
                                 Not(HasSubstr("data-000000"))));
  fs::remove(shard);
  EXPECT_THAT(verify().out, HasSubstr("data-000001.tar': it is not there"));
  write_file(shard, before.at("data-000001.tar"));
  write_file(data / fs::directory_iterator(data)->path().filename(),
             read_file(data / fs::directory_iterator(data)->path().filename()) + "more");
  outcome = verify();
  EXPECT_EQ(outcome.status, 1) << outcome.out;
}

TEST_F(Prepare, TwoAtATimeInOneFolderAreRefused) {
  fs::create_directories(out_);
  const int folder = ::open(out_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(folder, LOCK_EX), 0);
  const Outcome outcome = run({photos().string(), out_.string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("another penstock-prepare writes to '" + out_.string()));
  ::close(folder);
}

TEST_F(Prepare, ADryRunWritesNothing) {
  const Outcome outcome = run({photos().string(), out_.string(), "--dry-run", "--json", "-"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.report()["samples"], kImages);
  EXPECT_FALSE(fs::exists(out_));
}

}  // namespace
}  // namespace penstock
