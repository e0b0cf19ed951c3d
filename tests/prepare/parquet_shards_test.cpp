// Shards that are Parquet files: what tar shards hold, in columns.
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "tests/source/files.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr int kTablePhotos = 20;
constexpr const char* kHiddenRecord = ".penstock-prepare.json";

// The fields of all records, as texts.
std::vector<std::vector<std::string>> rows_of(const Source& source) {
  std::vector<std::vector<std::string>> rows;
  for (std::uint64_t number = 0; number < source.size(); ++number) {
    Record record;
    const auto read = source.read(number, record);
    if (!read) throw DataError(read.fault());
    rows.emplace_back();
    for (std::size_t field = 0; field < source.fields().size(); ++field) {
      const auto bytes = record[field].bytes();
      rows.back().emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return rows;
}

class ParquetShards : public ::testing::Test {
 protected:
  static std::string photos() {
    static const fs::path kMade = source::synthetic_image_folder(
        {.count = kTablePhotos, .cache = fs::temp_directory_path() / "penstock-test"});
    return kMade.string();
  }
  static std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".penstock-index")
        all[entry.path().filename().string()] = test::read_text(entry.path());
    return all;
  }
  [[nodiscard]] std::string folder(const char* name) const { return (files_ / name).string(); }
  // A tar file of members, as (name, contents).
  [[nodiscard]] std::string tar_of(
      const std::vector<std::pair<std::string, std::string>>& members) const {
    const fs::path path = files_ / "in.tar";
    TarWriter tar(path);
    for (const auto& [name, text] : members) tar.add(name, std::as_bytes(std::span(text)));
    tar.finish();
    return path.string();
  }

  PrepareOptions options_{
      .name = "train", .shard_samples = 6, .format = PrepareFormat::parquet, .threads = 2};
  TemporaryFolder files_;
};

TEST_F(ParquetShards, HoldWhatTarShardsHold) {
  PrepareOptions tar = options_;
  tar.format = PrepareFormat::tar;
  const PrepareReport there = prepare_shards(photos(), folder("tar"), tar);
  PrepareReport here = prepare_shards(photos(), folder("parquet"), options_);
  std::uint64_t bytes = 0;
  for (int k = 0; k < 4; ++k)
    bytes += fs::file_size(files_ / "parquet" /
                           ("train-0000" + std::to_string(k) + "-of-00004.parquet"));
  EXPECT_EQ(here.tar_bytes, bytes);
  here.tar_bytes = there.tar_bytes;
  EXPECT_EQ(here, there);

  EXPECT_EQ(image_form(files_ / "parquet"), ImageForm::parquet);
  const SourcePtr images = source::images(files_ / "parquet");
  EXPECT_EQ(rows_of(*images), rows_of(*source::images(files_ / "tar")));
  const SourcePtr input = source::image_folder(photos());
  EXPECT_THAT(std::vector(images->class_names().begin(), images->class_names().end()),
              ::testing::ElementsAreArray(input->class_names()));
  MemoryJpegIndex index;
  EXPECT_EQ(index.load(files_ / "parquet"), there.indexed);
  for (const char* const data : {"", "/train-00001-of-00004.parquet", "/*.parquet"})
    EXPECT_EQ(jpeg_indices_beside(folder("parquet") + data), folder("parquet")) << data;

  // The path is the name of the member that the image would be.
  const SourcePtr paths =
      source::parquet(files_ / "parquet", {.columns = {{.name = "image.path"}}});
  const SourcePtr members = source::webdataset(files_ / "tar");
  const auto found = rows_of(*paths);
  for (std::uint64_t number = 0; number < members->size(); ++number)
    EXPECT_EQ(found[number][0], members->info(number).key + ".jpg");
}

// Readers of Parquet (datasets, pyarrow, Spark) take every other file of a folder for one of its data.
TEST_F(ParquetShards, WhatLiesBesideThemIsHidden) {
  (void)prepare_shards(photos(), folder("out"), options_);
  (void)source::images(files_ / "out");
  std::size_t shards = 0;
  for (const auto& entry : fs::directory_iterator(files_ / "out")) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.starts_with('.') || name.ends_with(".parquet")) << name;
    shards += name.ends_with(".parquet") ? 1 : 0;
  }
  EXPECT_EQ(shards, 4U);
  EXPECT_TRUE(fs::exists(files_ / "out" / kHiddenRecord));
}

TEST_F(ParquetShards, HaveTheSameBytesInAnyOrderAndAfterAStop) {
  (void)prepare_shards(photos(), folder("one"), options_);
  const auto whole = contents(files_ / "one");
  {
    const Preparation plan(photos(), folder("many"), options_);
    EXPECT_EQ(plan.shards()[1].file, folder("many") + "/train-00001-of-00004.parquet");
    PrepareRun run(plan);
    for (const std::uint64_t number : {2, 0, 3, 1}) run.add(number, plan.make(number));
    std::ofstream(files_ / "many/train-00002-of-00004.parquet.tmp.1234") << "half";
    std::ofstream(files_ / "many/.train-00002-of-00004.jpegindex.tmp.1234") << "half";
    (void)run.finish();
  }
  EXPECT_EQ(contents(files_ / "many"), whole);

  std::stop_source stop;
  const auto stop_at = [&](std::uint64_t done, std::uint64_t) {
    if (done == 9) stop.request_stop();
  };
  EXPECT_THAT(
      [&] {
        (void)prepare_shards(photos(), folder("stopped"), options_, stop_at, stop.get_token());
      },
      ThrowsMessage<Error>(HasSubstr("was stopped")));
  EXPECT_FALSE(fs::exists(files_ / "stopped/train-00001-of-00004.parquet"));
  (void)prepare_shards(photos(), folder("stopped"), options_);
  EXPECT_EQ(contents(files_ / "stopped"), whole);

  fs::resize_file(files_ / "stopped/train-00002-of-00004.parquet", 1000);
  const Preparation plan(photos(), folder("stopped"), options_);
  EXPECT_THAT(PrepareRun(plan).changed(), ElementsAre(HasSubstr("has been changed since")));
  (void)plan.make_all();
  EXPECT_EQ(contents(files_ / "stopped"), whole);
}

TEST_F(ParquetShards, ARunDoesNotGoOnWithAnotherFormat) {
  PrepareOptions tar = options_;
  tar.format = PrepareFormat::tar;
  (void)prepare_shards(photos(), folder("tar"), tar);
  EXPECT_THAT([&] { (void)prepare_shards(photos(), folder("tar"), options_); },
              ThrowsMessage<Error>(AllOf(HasSubstr(folder("tar")),
                                         HasSubstr("was made with format \"tar\", and now it is "
                                                   "\"parquet\""))));
  (void)prepare_shards(photos(), folder("parquet"), options_);
  EXPECT_THAT(
      [&] { (void)prepare_shards(photos(), folder("parquet"), tar); },
      ThrowsMessage<Error>(HasSubstr("was made with format \"parquet\", and now it is \"tar\"")));
  const Preparation plan(photos(), folder("parquet"), tar);
  EXPECT_THAT([&] { (void)PrepareRun::read_only(plan); },
              ThrowsMessage<Error>(HasSubstr("was made with format")));
}

TEST_F(ParquetShards, DifferencesAndStrangersAreNamed) {
  (void)prepare_shards(photos(), folder("out"), options_);
  const Preparation plan(photos(), folder("out"), options_);
  for (const PrepareShard& shard : plan.shards())
    EXPECT_THAT(plan.differences(shard.number), IsEmpty());
  const std::string good = test::read_text(plan.shards()[1].file);
  const auto differs_at = [&](std::size_t at) {
    std::string text = good;
    text[at] = static_cast<char>(text[at] ^ 1);
    std::ofstream(plan.shards()[1].file, std::ios::binary) << text;
    return plan.differences(1);
  };
  const std::string path = rows_of(*source::parquet(
      plan.shards()[1].file,
      {.columns = {{.name = "image.path"}}, .index = {.location = IndexLocation::memory}}))[5][0];
  EXPECT_THAT(differs_at(good.find(path)),
              ElementsAre(AllOf(HasSubstr("differs from byte " + std::to_string(good.find(path))),
                                HasSubstr("in " + path + ", column 'image.path'"))));
  EXPECT_THAT(differs_at(good.size() - 20), ElementsAre(HasSubstr("in the end of the file")));
  std::ofstream(plan.shards()[1].file, std::ios::binary) << good;
  fs::copy_file(plan.shards()[0].file, files_ / "out/more.parquet");
  EXPECT_THAT(PrepareRun::read_only(plan).changed(),
              ElementsAre(HasSubstr("more.parquet': it is not one of the shards")));
}

TEST_F(ParquetShards, OtherMembersAreColumnsOfTextsAndBytes) {
  const std::string photo = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(photos()))
      if (entry.path().extension() == ".jpg") return test::read_text(entry.path());
    return std::string();
  }();
  const std::string in = tar_of({{"x/0.jpg", photo},
                                 {"x/0.cls", "-3"},
                                 {"x/0.txt", "d\xC3\xB6g"},
                                 {"x/0.npy", std::string("\xFF\0\x01", 3)},
                                 {"x/1.jpg", photo},
                                 {"x/1.txt", ""},
                                 {"x/2.png", "\x89PNG no image"},
                                 {"x/2.cls", "7"},
                                 {"x/2.json", "{}"}});
  options_.also = {"txt", "npy", "json", "xml"};
  (void)prepare_shards(in, folder("out"), options_);
  const auto text_of = [](std::int64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::vector<TableColumn> columns{{.name = "label", .required = false, .default_value = 99}};
  for (const char* const name : {"image.path", "txt", "npy", "json"})
    columns.push_back({.name = name, .required = false});
  EXPECT_THAT(rows_of(*source::parquet(files_ / "out", {.columns = columns})),
              ElementsAre(ElementsAre(text_of(-3), "x/0.jpg", "d\xC3\xB6g",
                                      std::string("\xFF\0\x01", 3), ""),
                          ElementsAre(text_of(99), "x/1.jpg", "", "", ""),
                          ElementsAre(text_of(7), "x/2.png", "", "", "{}")));
  // None for what no sample has.
  columns.push_back({.name = "xml"});
  EXPECT_THAT([&] { (void)source::parquet(files_ / "out", {.columns = columns}); },
              ThrowsMessage<Error>(HasSubstr("its columns are image, label, txt, npy, json")));
}

TEST_F(ParquetShards, WhatParquetCannotHoldIsAFaultOfItsSample) {
  const std::string in =
      tar_of({{"a\xFF.jpg", "image"}, {"b.jpg", "image"}, {"b.txt", "\xFF"}, {"c.jpg", "image"}});
  const Preparation plan(in, folder("out"), options_);
  EXPECT_THAT(
      [&] { (void)plan.try_out(0); },
      ThrowsMessage<DataError>(AllOf(HasSubstr("in.tar: a"), HasSubstr("its name is not UTF-8"),
                                     HasSubstr("or write tar shards"))));
  options_.skip_bad = true;
  const PrepareReport report = prepare_shards(in, folder("out"), options_);
  EXPECT_EQ(report.samples, 1U);
  EXPECT_EQ(report.left_out, 2U);
  EXPECT_THAT(report.listed[1], HasSubstr("its member .txt is not UTF-8"));
  options_.format = PrepareFormat::tar;
  EXPECT_EQ(prepare_shards(in, folder("tar"), options_).samples, 3U);

  const fs::path classes = files_ / "classes";
  fs::create_directories(classes / "d\xFFg");
  std::ofstream(classes / "d\xFFg/1.jpg") << "image";
  options_.format = PrepareFormat::parquet;
  EXPECT_THAT([&] { (void)Preparation(classes.string(), folder("other"), options_); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("the name of the class 'd"), HasSubstr("is not UTF-8"))));
}

TEST_F(ParquetShards, ColumnsThatWouldComeTwiceAreRefused) {
  for (const char* const taken : {"image", "Label"}) {
    options_.also = {taken};
    EXPECT_THAT(
        [&] { Preparation::check(photos(), folder("out"), options_); },
        ThrowsMessage<std::invalid_argument>(HasSubstr("than the image and the label in `also`")));
  }
  options_.format = PrepareFormat::tar;
  Preparation::check(photos(), folder("out"), options_);
}

TEST_F(ParquetShards, AreOneForManyShardsInTheirOrderAndNoneForNoSample) {
  options_.shard_samples = 1;
  const Preparation plan(photos(), folder("out"), options_);
  EXPECT_EQ(plan.shards()[19].file, folder("out") + "/train-00019-of-00020.parquet");
  const std::string in = tar_of({{"a\xFF.jpg", "image"}});
  options_.skip_bad = true;
  (void)Preparation(in, folder("none"), options_).make_all();
  EXPECT_EQ(source::parquet(files_ / "none", {})->size(), 0U);
}

}  // namespace
}  // namespace penstock
