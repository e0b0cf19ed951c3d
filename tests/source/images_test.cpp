#include <string>

#include <gtest/gtest.h>

#include <penstock/source/images.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;

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

TEST(ImageForm, AFolderIsWhatItsFirstShardIs) {
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
