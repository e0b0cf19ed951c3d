// A data set of an explicit list of files.
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

namespace penstock {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

class Files : public testing::Test {
 protected:
  Files()
      : folder_(fs::path(testing::TempDir()) /
                ("penstock_files_" +
                 std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
    for (const char* name : {"b/2.jpg", "a/1.jpg", "a/deep/3", "4\xFF.png"}) {
      const fs::path path = folder_ / name;
      fs::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << "bytes of " << name;
    }
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

std::string text_of(const Source& source, std::uint64_t number) {
  Record record;
  if (const auto result = source.read(number, record); !result)
    return "fault: " + result.fault().to_string();
  const auto bytes = record[0].bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::int64_t> labels_of(const Source& source) {
  std::vector<std::int64_t> labels;
  for (std::uint64_t number = 0; number < source.size(); ++number) {
    Record record;
    EXPECT_TRUE(source.read(number, record));
    labels.push_back(*record[1].data<std::int64_t>());
    EXPECT_EQ(source.info(number).label, labels.back());
  }
  return labels;
}

TEST_F(Files, ComeInTheOrderOfTheListAndMayComeTwice) {
  const SourcePtr source =
      source::files({path("b/2.jpg"), path("4\xFF.png"), path("a/deep/3"), path("b/2.jpg")});
  ASSERT_EQ(source->size(), 4U);
  EXPECT_EQ(text_of(*source, 0), "bytes of b/2.jpg");
  EXPECT_EQ(text_of(*source, 1), "bytes of 4\xFF.png");
  EXPECT_EQ(text_of(*source, 2), "bytes of a/deep/3");
  EXPECT_EQ(text_of(*source, 3), "bytes of b/2.jpg");
  EXPECT_THAT(labels_of(*source), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(source->info(2).key, "a/deep/3");
  EXPECT_EQ(source->info(2).bytes, 17U);
  EXPECT_EQ(source->name(1), (RecordName{.key = "4\xFF.png", .file = path("4\xFF.png")}));
  EXPECT_THAT(source->fingerprint(), StartsWith("files(4 files, "));
}

TEST_F(Files, HaveTheLabelsThatArePassed) {
  const std::vector<std::string> all{path("b/2.jpg"), path("a/1.jpg"), path("a/deep/3")};
  EXPECT_THAT(labels_of(*source::files(all, {.labels = std::vector<std::int64_t>{7, -1, 7}})),
              ElementsAre(7, -1, 7));
  const std::vector<std::string> names{"dog", "cat", "dog"};
  const SourcePtr sorted = source::files(all, {.labels = names});
  EXPECT_THAT(labels_of(*sorted), ElementsAre(1, 0, 1));
  EXPECT_THAT(sorted->class_names(), ElementsAre("cat", "dog"));
  const SourcePtr given = source::files(all, {.labels = names, .classes = {"dog", "eel", "cat"}});
  EXPECT_THAT(labels_of(*given), ElementsAre(0, 2, 0));
  EXPECT_THAT(given->class_names(), ElementsAre("dog", "eel", "cat"));
  const SourcePtr numbered =
      source::files(all, {.labels = std::vector<std::int64_t>{1, 0, 1}, .classes = {"cat", "dog"}});
  EXPECT_THAT(numbered->class_names(), ElementsAre("cat", "dog"));
  EXPECT_NE(sorted->fingerprint(), given->fingerprint());
}

TEST_F(Files, OneThatIsMissingIsAFaultOfItsRecordAlone) {
  const SourcePtr source = source::files({path("a/1.jpg"), path("a/none.jpg")});
  EXPECT_EQ(text_of(*source, 0), "bytes of a/1.jpg");
  EXPECT_THAT(text_of(*source, 1), HasSubstr(path("a/none.jpg")));
}

TEST_F(Files, TheFolderMayMoveAndAPlanTravels) {
  const std::vector<std::string> names{"b/2.jpg", "4\xFF.png", "a/1.jpg"};
  const Dataset plan =
      files(names,
            {.labels = std::vector<std::string>{"x", "y", "x"}, .root = folder_, .field = "bytes"})
          .shuffle({.seed = 2});
  const std::string json = plan.to_json();
  EXPECT_THAT(json, HasSubstr("4\\udcff.png"));
  const Dataset same = Dataset::from_json(json);
  EXPECT_EQ(same.to_json(), json);
  EXPECT_EQ(text_of(same.source(), 1), "bytes of 4\xFF.png");
  EXPECT_THAT(labels_of(same.source()), ElementsAre(0, 1, 0));
  EXPECT_EQ(same.fields()[0].name, "bytes");
  EXPECT_THAT(plan.describe(), HasSubstr("classes=['x', 'y']"));
  EXPECT_THAT(plan.describe(), HasSubstr("labels=[0, 1, 0])"));

  const fs::path moved = folder_.string() + "_moved";
  fs::remove_all(moved);
  fs::rename(folder_, moved);
  const Dataset there = Dataset::from_json(json, {.moved = {{folder_.string(), moved.string()}}});
  EXPECT_EQ(there.source().fingerprint(), plan.source().fingerprint());
  EXPECT_EQ(text_of(there.source(), 2), "bytes of a/1.jpg");
  EXPECT_EQ(files({(moved / "b/2.jpg").string(), (moved / "4\xFF.png").string(),
                   (moved / "a/1.jpg").string()},
                  {.labels = std::vector<std::string>{"x", "y", "x"}})
                .source()
                .fingerprint(),
            plan.source().fingerprint())
      << "the folder that all have in common is no part of it";
  fs::rename(moved, folder_);
}

TEST_F(Files, WhatDoesNotFitIsRefused) {
  const auto refused = [](std::vector<std::string> paths, FilesOptions options,
                          const std::string& because) {
    EXPECT_THAT([&] { (void)source::files(paths, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(because)));
  };
  using Integers = std::vector<std::int64_t>;
  refused({}, {}, "expected paths, found none");
  refused({""}, {}, "expected the path of a file, found ''");
  refused({"/a/b/"}, {}, "expected the path of a file");
  refused({"/a/b", "s3://bucket/c"}, {}, "all paths are s3:// or none is");
  refused({"/a/b", "hf://datasets/o/n/c"}, {}, "all paths are hf:// or none is");
  refused({"s3://bucket/c", "hf://datasets/o/n/c"}, {}, "all paths are s3:// or none is");
  refused({"hf://o/n/c"}, {}, "hf://datasets/o/n/c");
  refused({"/a/b"}, {.root = "/a"}, "with a root the paths are relative to it, found '/a/b'");
  refused({"a", "b"}, {.labels = Integers{1}}, "there are 1 labels and 2 paths");
  refused({"a", "b"}, {.labels = Integers{1, 2}, .classes = {"x", "y"}},
          "the label 2 of 'b' is none of the 2 names in the option classes");
  refused({"a"}, {.labels = std::vector<std::string>{"z"}, .classes = {"x", "y"}},
          "the label 'z' of 'a' is none of the 2 names in the option classes");
  refused({"a"}, {.classes = {"x"}}, "there are none: pass labels");
  refused({"a"}, {.field = "label"}, "which is not 'label'");
  refused({"a"}, {.max_file_bytes = 0}, "max_file_bytes is 0");
}

}  // namespace
}  // namespace penstock
