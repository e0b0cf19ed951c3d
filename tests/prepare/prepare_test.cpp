// Shards that are made one by one, by whoever is free, are those that one process makes.
#include <chrono>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include <penstock/core/error.hpp>
#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/core/output_file.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_index.hpp"
#include "src/source/webdataset/tar_index.hpp"
#include "tests/source/files.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr int kPhotos = 20;
constexpr const char* kRecord = "penstock-prepare.json";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PrepareShards : public ::testing::Test {
 protected:
  static std::string photos() {
    static const fs::path kMade = source::synthetic_image_folder(
        {.count = kPhotos, .cache = fs::temp_directory_path() / "penstock-test"});
    return kMade.string();
  }
  // All that is written but the shards' indexes, which hold their times of change.
  static std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".penstock-index")
        all[entry.path().filename().string()] = read(entry.path());
    return all;
  }
  [[nodiscard]] std::string folder(const char* name) const { return (files_ / name).string(); }

  PrepareOptions options_{.shard_samples = 6, .threads = 2};
  TemporaryFolder files_;
};

TEST_F(PrepareShards, AnyOrderAnyMachineAndTheSameBytes) {
  std::vector<std::uint64_t> told;
  const PrepareReport whole =
      prepare_shards(photos(), folder("one"), options_, [&](std::uint64_t done, std::uint64_t of) {
        EXPECT_EQ(of, kPhotos);
        told.push_back(done);
      });
  EXPECT_EQ(whole.samples, kPhotos);
  EXPECT_EQ(told.size(), kPhotos);
  EXPECT_EQ(told.back(), kPhotos);

  const Preparation plan(photos(), folder("many"), options_);
  ASSERT_THAT(plan.shards(), SizeIs(4));
  EXPECT_EQ(plan.shards()[3].end, kPhotos);
  EXPECT_EQ(plan.shards()[1].file, folder("many") + "/data-000001.tar");
  PrepareRun run(plan);
  EXPECT_THAT(run.missing(), ElementsAre(0, 1, 2, 3));
  for (const std::uint64_t number : {2, 0, 3, 1}) {
    PrepareOptions others = options_;
    others.threads = 1;
    const Preparation elsewhere(photos(), folder("many"), others);
    EXPECT_EQ(elsewhere.fingerprint(), plan.fingerprint());
    // As it travels.
    run.add(number, PrepareReport::from_json(elsewhere.make(number).to_json()));
    if (number == 0) {
      EXPECT_THAT(run.missing(), ElementsAre(1, 3));
    }
  }
  std::ofstream(files_ / "many/data-000002.tar.tmp.1234") << "half";  // of a machine that is gone
  EXPECT_EQ(run.finish(), whole);
  EXPECT_EQ(contents(folder("many")), contents(folder("one")));
}

TEST_F(PrepareShards, OneThatFailsKeepsNoMemory) {
  constexpr std::size_t kImage = 10'000'000;
  for (int image = 0; image < 6; ++image)
    (void)files_.write(fmt::format("in/{}.png", image), "\x89PNG" + std::string(kImage, 'x'));
  fs::create_directory(files_ / "out");
  const auto used = [] {
    const struct mallinfo2 all = ::mallinfo2();
    return all.uordblks + all.hblkhd;
  };
  const Preparation plan(folder("in"), folder("out"), options_);
  const auto fail = [&] {
    const auto on_prepared = [](std::uint64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // others are prepared
      throw std::runtime_error("enough");
    };
    EXPECT_THAT([&] { (void)plan.make(0, on_prepared); },
                ThrowsMessage<std::runtime_error>("enough"));
  };
  fail();
  const std::size_t before = used();
  for (int time = 0; time < 3; ++time) fail();
  EXPECT_LT(used(), before + kImage);  // 0 under AddressSanitizer, which finds it itself
}

TEST_F(PrepareShards, OnesThatAreMissingInTheMiddleAreMadeAndNoOthers) {
  (void)prepare_shards(photos(), folder("out"), options_);
  const auto whole = contents(folder("out"));
  {
    const Preparation plan(photos(), folder("again"), options_);
    PrepareRun run(plan);
    for (const std::uint64_t number : {3, 1}) run.add(number, plan.make(number));
    EXPECT_THROW((void)run.finish(), std::logic_error);
  }
  const auto time = fs::last_write_time(files_ / "again/data-000003.tar");
  EXPECT_THAT(json::parse(read(files_ / "again" / kRecord))["shards"], SizeIs(4));
  std::uint64_t first = 0;
  (void)prepare_shards(photos(), folder("again"), options_,
                       [&](std::uint64_t done, std::uint64_t) { first = first ? first : done; });
  EXPECT_EQ(first, 2 + 6 + 1U);
  EXPECT_EQ(fs::last_write_time(files_ / "again/data-000003.tar"), time);
  EXPECT_EQ(contents(folder("again")), whole);

  fs::remove(files_ / "again/data-000001.tar");
  const fs::path half = files_ / "again/data-000001.tar.tmp.1234";
  std::ofstream(half) << "half";
  const Preparation plan(photos(), folder("again"), options_);
  PrepareRun run(plan);
  EXPECT_FALSE(fs::exists(half));
  EXPECT_THAT(run.missing(), ElementsAre(1));
  EXPECT_THAT(run.changed(), ElementsAre(HasSubstr("data-000001.tar' has been removed")));
}

TEST_F(PrepareShards, ARecordToLookAtIsNotWrittenTo) {
  (void)prepare_shards(photos(), folder("out"), options_);
  const Preparation plan(photos(), folder("out"), options_);
  PrepareRun run = PrepareRun::read_only(plan);
  EXPECT_THAT(run.missing(), IsEmpty());
  for (const std::function<void()>& write : std::initializer_list<std::function<void()>>{
           [&] { run.add(0, {}); }, [&] { (void)run.finish(); }})
    EXPECT_THAT(write, ThrowsMessage<std::logic_error>(HasSubstr("read_only()")));
  EXPECT_EQ(plan.differences(0), std::vector<std::string>());
}

TEST_F(PrepareShards, WhatIsStoppedGoesOn) {
  std::stop_source stop;
  const auto stop_at = [&](std::uint64_t done, std::uint64_t) {
    if (done == 9) stop.request_stop();
  };
  EXPECT_THAT(
      [&] { (void)prepare_shards(photos(), folder("out"), options_, stop_at, stop.get_token()); },
      ThrowsMessage<Error>(HasSubstr("was stopped")));
  EXPECT_TRUE(fs::exists(files_ / "out/data-000000.tar"));
  EXPECT_FALSE(fs::exists(files_ / "out/data-000001.tar"));
  // So does what the caller's own stop interrupts.
  std::stop_source outer;
  EXPECT_THAT(
      [&] {
        interruptible(outer.get_token(), [&] {
          (void)prepare_shards(photos(), folder("other"), options_,
                               [&](std::uint64_t done, std::uint64_t) {
                                 if (done == 9) outer.request_stop();
                               });
        });
      },
      ThrowsMessage<Error>(HasSubstr("was stopped")));
  EXPECT_FALSE(fs::exists(files_ / "other/data-000001.tar"));
  (void)prepare_shards(photos(), folder("out"), options_);
  (void)prepare_shards(photos(), folder("whole"), options_);
  EXPECT_EQ(contents(folder("out")), contents(folder("whole")));
}

TEST_F(PrepareShards, DifferencesAreNamed) {
  (void)prepare_shards(photos(), folder("out"), options_);
  const Preparation plan(photos(), folder("out"), options_);
  for (const PrepareShard& shard : plan.shards())
    EXPECT_THAT(plan.differences(shard.number), IsEmpty());
  fs::resize_file(plan.shards()[1].file, 5000);
  EXPECT_THAT(plan.differences(1), ElementsAre(HasSubstr("differs from byte 5000 on, in ")));
  std::ofstream(plan.shards()[2].file, std::ios::app) << "more";
  EXPECT_THAT(plan.differences(2), ElementsAre(HasSubstr("the end of the file")));
}

TEST_F(PrepareShards, OptionsOutOfRangeAndUnknownShardsAreRefused) {
  const auto refuses = [&](const std::function<void(PrepareOptions&)>& change, const char* words) {
    PrepareOptions options;
    change(options);
    EXPECT_THAT([&] { Preparation::check(photos(), folder("out"), options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refuses([](auto& options) { options.shard_samples = 0; }, "at least 1 sample");
  refuses([](auto& options) { options.interval = 0; }, "from 1 to 65535");
  refuses([](auto& options) { options.quality = 101; }, "from 1 to 100");
  refuses([](auto& options) { options.name = "a/b"; }, "without a slash");
  refuses([](auto& options) { options.threads = -1; }, "threads");
  refuses([](auto& options) { options.attempts = 0; }, "attempt");
  for (const auto& [input, output] :
       {std::pair{"s3://b/photos", "s3://b/photos/out"}, {"s3://b", "s3://b/out"}})
    EXPECT_THAT([&] { Preparation::check(input, output, {}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("is inside the input")));
  Preparation::check("s3://b/photos", "s3://b/photos-out", {});
  EXPECT_THAT([&] { Preparation::check(photos(), "s3:/bucket", {}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("s3://bucket/prefix")));
  const Preparation plan(photos(), folder("out"), options_);
  EXPECT_THAT([&] { (void)plan.make(4); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("from 0 to 3, found 4")));
  EXPECT_THROW((void)PrepareReport::from_json("[]"), Error);
  for (const char* const count : {"-1", "0.5", "1e40", "\"1\"", "null"}) {
    std::string text = PrepareReport().to_json();
    const std::string field = "\"samples\": ";
    text.replace(text.find(field) + field.size(), 1, count);
    EXPECT_THAT([&] { (void)PrepareReport::from_json(text); },
                ThrowsMessage<Error>(HasSubstr("an integer of 0 or more")))
        << text;
  }
}

TEST_F(PrepareShards, AShardWhoseJpegIndexWasRemovedIsMadeAgain) {
  for (const PrepareFormat format : {PrepareFormat::tar, PrepareFormat::parquet}) {
    options_.format = format;
    const std::string out = folder(name_of(format));
    (void)prepare_shards(photos(), out, options_);
    const auto whole = contents(out);
    const std::string index =
        format == PrepareFormat::tar ? "data-000001.jpegindex" : ".data-00001-of-00004.jpegindex";
    ASSERT_TRUE(fs::remove(fs::path(out) / index));
    {
      const Preparation plan(photos(), out, options_);
      const PrepareRun run(plan);
      EXPECT_THAT(run.missing(), ElementsAre(1));
      EXPECT_THAT(run.changed(), ElementsAre(HasSubstr(index + "' has been removed since")));
    }
    (void)prepare_shards(photos(), out, options_);
    EXPECT_EQ(contents(out), whole);
  }
}

TEST_F(PrepareShards, AShardWhoseImagesWereChangedIsMadeAgain) {
  fs::copy(photos(), files_ / "in", fs::copy_options::recursive);
  (void)prepare_shards(folder("in"), folder("out"), options_);
  const SourcePtr images = source::image_folder(folder("in"));
  ASSERT_TRUE(fs::copy_file(images->location(0), images->location(7),
                            fs::copy_options::overwrite_existing));
  {
    const Preparation plan(folder("in"), folder("out"), options_);
    const PrepareRun run(plan);
    EXPECT_THAT(run.missing(), ElementsAre(1));
    EXPECT_THAT(
        run.changed(),
        ElementsAre(HasSubstr("data-000001.tar' was made of files that have been changed")));
  }
  (void)prepare_shards(folder("in"), folder("out"), options_);
  (void)prepare_shards(folder("in"), folder("fresh"), options_);
  EXPECT_TRUE(contents(folder("out")) == contents(folder("fresh")));
}

TEST_F(PrepareShards, ATarFileThatWasReplacedMakesItsShardsAgain) {
  const auto write = [&](const char* name, const std::string& text) {
    TarWriter tar(files_ / name);
    const std::string image = "\x89PNG" + text;
    for (int k = 0; k < 6; ++k)
      tar.add(std::to_string(k) + ".png", std::as_bytes(std::span(image)));
    tar.finish();
  };
  fs::create_directory(files_ / "in");
  write("in/a.tar", "old");
  write("in/b.tar", "old");
  const auto find_missing = [&] {
    const Preparation plan(folder("in"), folder("out"), options_);
    return PrepareRun(plan).missing();
  };
  (void)prepare_shards(folder("in"), folder("out"), options_);
  EXPECT_THAT(find_missing(), IsEmpty());
  write("in/b.tar", "new");
  fs::last_write_time(files_ / "in/b.tar", fs::file_time_type::clock::now() + 1s);
  EXPECT_THAT(find_missing(), ElementsAre(1));
}

// In a tar shard the name ends at the first point.
TEST_F(PrepareShards, ImagesKeepTheirWholeNames) {
  const char* const photo = "in/class/scan.12:30.v1.jpg";
  const char* const other = "in/class/scan.12:30.v2.jpg";
  (void)files_.write(photo, "\xff\xd8 no image");
  (void)files_.write(other, "\xff\xd8 no image");
  const auto names_in = [&](const char* out) {
    (void)prepare_shards(folder("in"), folder(out), options_);
    const SourcePtr images = source::images(folder(out));
    return std::vector{images->name(0).key, images->name(1).key};
  };
  EXPECT_THAT(names_in("tar"), ElementsAre("class/scan_12:30_v1", "class/scan_12:30_v2"));
  options_.format = PrepareFormat::parquet;
  (void)prepare_shards(folder("in"), folder("parquet"), options_);
  const SourcePtr table = source::parquet(folder("parquet") + "/*.parquet",
                                          {.columns = {{.name = "path", .column = "image.path"}}});
  std::vector<std::string> paths;
  for (std::uint64_t row = 0; row < table->size(); ++row) {
    Record record;
    ASSERT_TRUE(table->read(row, record));
    const auto bytes = record[0].bytes();
    paths.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  EXPECT_THAT(paths, ElementsAre("class/scan.12:30.v1.jpg", "class/scan.12:30.v2.jpg"));
}

TEST_F(PrepareShards, SniffedImagesKeepWhatIsNoEndingOfAnImage) {
  for (const char* name : {"in/class/1.2.840.1", "in/class/1.2.840.2"})
    (void)files_.write(name, "\xff\xd8\xff\xe0 no image");
  options_.sniff = true;
  (void)prepare_shards(folder("in"), folder("out"), options_);
  const SourcePtr images = source::images(folder("out"));
  EXPECT_EQ(images->name(0).key, "class/1_2_840_1");
  EXPECT_EQ(images->name(1).key, "class/1_2_840_2");
}

TEST_F(PrepareShards, AFileThatCannotBeAskedIsAnErrorAndNoChange) {
  fs::copy(photos(), files_ / "in", fs::copy_options::recursive);
  (void)prepare_shards(folder("in"), folder("out"), options_);
  const Preparation plan(folder("in"), folder("out"), options_);
  fs::remove(source::image_folder(folder("in"))->location(0));
  EXPECT_THAT([&] { PrepareRun{plan}; }, ThrowsMessage<Error>(HasSubstr("--skip-bad")));
}

// What of the input is not copied; nothing of the images and labels themselves.
TEST_F(PrepareShards, MembersThatAreLeftOutAreSaid) {
  TarWriter tar(files_ / "in.tar");
  const auto add = [&](const char* name, const std::string& text) {
    tar.add(name, std::as_bytes(std::span(text)));
  };
  add("a.jpg", "image");
  add("a.cls", "1");
  add("a.txt", "");
  add("a.xml", "<a/>");
  add("a.seg.png", "mask");
  add("b.jpg", "image");
  add("b.txt", "text");
  add("b.xml", "<b/>");
  tar.finish();
  const std::string in = (files_ / "in.tar").string();
  std::vector<std::string> texts;
  for (const Notice& notice : Preparation(in, folder("out")).notices()) {
    texts.push_back(notice.text);
    EXPECT_EQ(notice.is_warning, notice.text.find(".seg.png") != std::string::npos) << notice.text;
  }
  EXPECT_THAT(texts,
              ElementsAre(in + ": left out members: 1 .seg.png, 2 .xml; to copy them, name them in "
                               "`also`",
                          in + ": left out members of 0 bytes: 1 .txt"));
  const Preparation all(in, folder("out"), {.also = {"xml", "seg.png"}});
  EXPECT_THAT(all.notices(), SizeIs(1));
}

TEST_F(PrepareShards, ASecondImageOfASampleIsSaidToBeLeftOut) {
  TarWriter tar(files_ / "in.tar");
  for (const char* name : {"a.jpg", "a.png", "b.png", "b.webp", "c.jpg"})
    tar.add(name, std::as_bytes(std::span("image")));
  tar.finish();
  const std::vector<Notice> notices =
      Preparation((files_ / "in.tar").string(), folder("out")).notices();
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_TRUE(notices[0].is_warning);
  EXPECT_THAT(notices[0].text,
              HasSubstr("left out at least 2 images of samples that have several of"));
}

// What a bucket gets beside a shard is what webdataset() makes of the shard, its time of change aside.
TEST_F(PrepareShards, TheIndexOfATarFileThatIsWrittenIsThatOfTheWrittenOne) {
  const fs::path path = files_ / "a.tar";
  auto made = std::make_unique<source::ShardSketch>(std::make_unique<core::OutputFile>(path));
  const source::ShardSketch& sketch = *made;
  TarWriter tar(std::move(made));
  std::string body(100'000, 'x');
  // A tar file as a member: what is in it is no member.
  body.replace(512, 5, "ustar");
  for (int k = 0; k < 20; ++k) {
    const std::string key =
        "folder/" + std::string(static_cast<std::size_t>(k * 15), 'l') + "k" + std::to_string(k);
    const std::string label = std::to_string(k % 3);
    const std::string text(static_cast<std::size_t>(k * 1700), 't');
    tar.add(key + ".jpg", std::as_bytes(std::span(body)));
    if (k % 4 != 3) tar.add(key + ".cls", std::as_bytes(std::span(label)));
    tar.add(key + ".txt", std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> index = source::tar_index(sketch, tar.bytes(), "a.tar");
  tar.finish();
  EXPECT_EQ(source::webdataset(path.string())->size(), 20U);
  const std::string expected = read(source::index_path(source::ShardKind::tar, path.string()));
  const auto stamp_of = [](std::span<const std::byte> file) {
    return source::ShardIndex::of_encoded(file).stamp();
  };
  const auto beside = std::as_bytes(std::span(expected));
  EXPECT_EQ(stamp_of(index).bytes, fs::file_size(path));
  ASSERT_TRUE(source::ShardIndex::restamp(index, stamp_of(beside)));
  EXPECT_TRUE(std::ranges::equal(index, beside));
}

}  // namespace
}  // namespace penstock
