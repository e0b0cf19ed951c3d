#include <stdexcept>
#include <stop_token>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>
#include <penstock/source/images.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ImageForm, GoesByTheNamesThatTheSourcesThemselvesTake) {
  for (const char* name : {"a.tar", "train-{000..099}.tar", "/x/y/T-*.TAR"})
    EXPECT_EQ(image_form(name), ImageForm::tar) << name;
  for (const char* name : {"a.tfrecord", "a.tfrecords", "a.tfrec", "a.record", "/x/train-*-of-*",
                           "train-00003-of-00010", "train-{00000..00009}-of-00010",
                           "train-????"
                           "?-of-?????",
                           "train-0000[0-4]-of-00010"})
    EXPECT_EQ(image_form(name), ImageForm::tfrecord) << name;
  for (const char* name : {"photos", "state-of-the-art", "/x/state-of-the-art/photos", "a-of-b",
                           "/x/train-00000-of-00010/photos", "cup-of-tea.jpg"})
    EXPECT_EQ(image_form(name), ImageForm::folder) << name;
}

TEST(ImageForm, AFlatFolderOfPhotosIsOneWhateverTheyAreCalled) {
  const TemporaryFolder folder;
  folder.write("cup-of-tea.jpg");
  folder.write("piece-of-cake.jpg");
  EXPECT_EQ(image_form(folder.path()), ImageForm::folder);
  EXPECT_EQ(source::images(folder.path())->size(), 2U);
}

TEST(ImageForm, TellsHowFarItIsAndEndsPromptly) {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) folder.write(std::to_string(i) + ".jpg");
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { (void)image_form(folder.path()); });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().what, "looking into " + folder.path().string());
  EXPECT_EQ(told.back().done, 20U);
  EXPECT_TRUE(told.back().has_ended);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT([&] { interruptible(stop.get_token(), [&] { (void)image_form(folder.path()); }); },
              ThrowsMessage<Error>(HasSubstr("the work was stopped")));
}

TEST(Images, RefusesOptionsOfFoldersForShards) {
  const TemporaryFolder tars;
  tars.write("a.tar", std::string(1024, '\0'));
  EXPECT_EQ(source::images(tars.path())->size(), 0U);
  const auto refuses = [&](ImageFolderOptions options, const std::string& name) {
    EXPECT_THAT([&] { (void)source::images(tars.path(), options); },
                ThrowsMessage<std::invalid_argument>(
                    HasSubstr("the option " + name + " is for a folder of image files, and")));
  };
  refuses({.labels = "labels.txt"}, "labels");
  refuses({.classes = {"a"}}, "classes");
  refuses({.extensions = {".jpg"}}, "extensions");
  refuses({.sniff = true}, "sniff");
  refuses({.follow_symlinks = false}, "follow_symlinks");
  refuses({.max_file_bytes = 1}, "max_file_bytes");
}

// Which of them was taken once went by the order in which the file system lists them.
TEST(ImageForm, OfAFolderWithFilesOfSeveralKindsIsAnError) {
  const TemporaryFolder folder;
  folder.write("b.tar", "");
  folder.write("a.parquet", "");
  folder.write("._c.mds", "");
  EXPECT_THAT(
      [&] { (void)image_form(folder.path()); },
      ThrowsMessage<Error>(HasSubstr(folder.path().string() +
                                     " has files of several kinds, such as b.tar and "
                                     "a.parquet: give a pattern for those of one, such as '" +
                                     (folder / "*.tar").string() + "'")));
  EXPECT_EQ(image_form(folder / "*.tar"), ImageForm::tar);
  EXPECT_EQ(image_form(folder / "*.parquet"), ImageForm::parquet);
}

TEST(ImageForm, OfShardsWithImagesBesideThemIsAnError) {
  for (const auto& [shard, what, pattern] :
       {std::tuple("b.tar", "shards", "*.tar"),
        {"b.tfrecord-00000-of-00001", "shards", "*.tfrecord-*-of-*"},
        {"b.parquet", "tables", "*.parquet"},
        {"b.arrow", "tables", "*.arrow"},
        {"b-00001-of-00002", "shards", "*-*-of-*"},
        {"b.tfrec", "shards", "*.tfrec"},
        {"b.record", "shards", "*.record"},
        {"b.parq", "tables", "*.parq"}}) {
    const TemporaryFolder folder;
    folder.write(shard, "");
    folder.write(".preview.png", "");
    folder.write("README.md", "");
    const ImageForm form = image_form(folder.path());
    EXPECT_NE(form, ImageForm::folder) << shard;
    EXPECT_EQ(image_form(folder / pattern), form) << pattern;
    folder.write("2.png", "");
    folder.write("1.png", "");
    EXPECT_THAT([&] { (void)image_form(folder.path()); },
                ThrowsMessage<Error>(HasSubstr(
                    fmt::format("{} has {}, and images beside them, such as 1.png: give a "
                                "pattern for the shards, such as '{}', or call",
                                folder.path().string(), what, (folder / pattern).string()))));
  }
}

TEST(ImageForm, OfWhatBelongsTogetherIsNoError) {
  const TemporaryFolder mds;
  mds.write("shard.00000.mds", "");
  mds.write("preview.png", "");
  EXPECT_EQ(image_form(mds.path()), ImageForm::mds);
  const TemporaryFolder classes;
  classes.write("a/1.jpg", "");
  classes.write("labels.parquet", "");
  classes.write("labels.feather", "");
  EXPECT_EQ(image_form(classes.path()), ImageForm::folder);
}

TEST(ImageForm, AFolderIsWhatItsShardsAre) {
  const TemporaryFolder tars;
  tars.write("README");
  tars.write("a.tar", "");
  EXPECT_EQ(image_form(tars.path()), ImageForm::tar);
  const TemporaryFolder records;
  records.write("a.record", "");
  EXPECT_EQ(image_form(records.path()), ImageForm::tfrecord);
}

}  // namespace
}  // namespace penstock
