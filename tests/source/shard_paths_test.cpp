#include "src/source/shards/shard_paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>

#include "src/source/shards/shard_names.hpp"
#include "tests/source/files.hpp"

namespace penstock::source {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

FoundShards find_all(const ShardPaths& paths) {
  return find_shards(
      paths, [](std::string_view name) { return name.ends_with(".tar"); }, "*.tar files",
      storage::Storage());
}

std::vector<std::string> find(const ShardPaths& paths) { return find_all(paths).paths; }

// As bash prints them.
TEST(ShardPaths, ExpandBracesAsAShellDoes) {
  EXPECT_THAT(expand_braces("plain.tar"), ElementsAre("plain.tar"));
  EXPECT_THAT(expand_braces("t-{8..11}.tar"),
              ElementsAre("t-8.tar", "t-9.tar", "t-10.tar", "t-11.tar"));
  EXPECT_THAT(expand_braces("{08..11}"), ElementsAre("08", "09", "10", "11"));
  EXPECT_THAT(expand_braces("{000000..000002}"), ElementsAre("000000", "000001", "000002"));
  EXPECT_THAT(expand_braces("{3..1}"), ElementsAre("3", "2", "1"));
  EXPECT_THAT(expand_braces("{-1..1}"), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(expand_braces("{0..9..4}"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(expand_braces("{a..c}"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(expand_braces("{train,val}-{0..1}"),
              ElementsAre("train-0", "train-1", "val-0", "val-1"));
  EXPECT_THAT(expand_braces("x{a,b{1..2},}y"), ElementsAre("xay", "xb1y", "xb2y", "xy"));
  EXPECT_THAT(expand_braces("{000..999}"), SizeIs(1000));
  EXPECT_THAT(expand_braces("{-9223372036854775808..9223372036854775807..9223372036854775807}"),
              ElementsAre("-9223372036854775808", "-1", "9223372036854775806"));
}

TEST(ShardPaths, KeepBracesThatMeanNothing) {
  for (const char* text : {"a{b}c", "{}", "{", "}", "a{1..", "{1..b}", "{1.2}", "x}y{z"}) {
    EXPECT_THAT(expand_braces(text), ElementsAre(text));
  }
  EXPECT_THAT(expand_braces("{x{1..2}"), ElementsAre("{x1", "{x2"));
}

TEST(ShardPaths, RefusePatternsForMillions) {
  EXPECT_THAT([] { (void)expand_braces("{0..99999999999}"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("more than 10000000")));
  EXPECT_THAT([] { (void)expand_braces("{0..9999}{0..9999}"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("more than 10000000")));
}

TEST(ShardPaths, KeepTheOrderOfBracesAndSortWhatIsFound) {
  const TemporaryFolder folder;
  for (const char* name : {"b-1.tar", "b-0.tar", "a-0.tar", "a-1.tar", "B-0.tar",
                           "a-0.tar.penstock-index", ".c.tar", "d.txt"}) {
    folder.write(name);
  }
  const auto at = [&](std::string_view name) { return (folder / name).string(); };
  EXPECT_THAT(find(at("{b,a}-{1..0}.tar")),
              ElementsAre(at("b-1.tar"), at("b-0.tar"), at("a-1.tar"), at("a-0.tar")));
  EXPECT_THAT(find(at("*-0*")), ElementsAre(at("B-0.tar"), at("a-0.tar"), at("b-0.tar")));
  EXPECT_THAT(find(at("{b,a}-?.tar")),
              ElementsAre(at("b-0.tar"), at("b-1.tar"), at("a-0.tar"), at("a-1.tar")));
  EXPECT_THAT(find(folder.path()), ElementsAre(at("B-0.tar"), at("a-0.tar"), at("a-1.tar"),
                                               at("b-0.tar"), at("b-1.tar")));
  EXPECT_THAT(find({at("b-0.tar"), at("a-0.tar"), at("b-0.tar")}),
              ElementsAre(at("b-0.tar"), at("a-0.tar"), at("b-0.tar")));
}

TEST(ShardPaths, SayWhatOfAFolderLooksLikeShardsAndIsLeftOut) {
  const TemporaryFolder folder;
  const auto texts = [&](const ShardPaths& paths) {
    std::vector<std::string> all;
    for (const Notice& notice : find_all(paths).notices) {
      EXPECT_TRUE(notice.is_warning);
      all.push_back(notice.text);
    }
    return all;
  };
  for (const char* name : {"a.tar", "notes.txt", "images/1.jpg", "empty/.b.tar", "list.txt.gz"})
    folder.write(name);
  const std::string root = folder.path();
  EXPECT_THAT(texts(root), ElementsAre());
  for (const char* name : {"b/2.tar", "more/b.tar", "c.tar.gz", "d.tgz"}) folder.write(name);
  EXPECT_THAT(texts(root),
              ElementsAre(AllOf(HasSubstr("left out 'c.tar.gz', 'd.tgz', a tar file"),
                                HasSubstr("unpack it with gunzip")),
                          AllOf(HasSubstr("left out folders with *.tar files: 'b', 'more'; "),
                                HasSubstr("'" + root + "', '" + root + "/b' and so on"))));
  EXPECT_THAT(texts({root + "/*.tar", root + "/*/*.tar"}), ElementsAre());
  EXPECT_THAT(texts({root, root + "/b", root + "/more"}), SizeIs(1));
  EXPECT_THAT(texts({root + "/more", root}),
              ElementsAre(HasSubstr("c.tar.gz"), HasSubstr("files: 'b'; ")));
}

TEST(ShardPaths, SayNothingOfOtherSplitsAndOfWhatProgramsKeepForThemselves) {
  const TemporaryFolder folder;
  for (const char* name : {"a.tar", "a.tar.gz", "val/b.tar", "test_2024/b.tar", "_delta_log/c.tar"})
    folder.write(name);
  EXPECT_THAT(find_all(folder.path()).notices, SizeIs(0));
}

TEST(ShardPaths, TakeWhatIsThereByItsName) {
  const TemporaryFolder folder;
  folder.write("x{1,2}*.tar");
  EXPECT_THAT(find(folder / "x{1,2}*.tar"), ElementsAre((folder / "x{1,2}*.tar").string()));
}

TEST(ShardPaths, SayWhatIsMissing) {
  const TemporaryFolder folder;
  folder.write("a-0.tar");
  folder.write("empty/readme.txt");
  const std::string pattern = (folder / "a-{0..1}.tar").string();
  EXPECT_THAT([&] { (void)find(pattern); },
              ThrowsMessage<Error>(AllOf(HasSubstr("a-1.tar, found nothing"), HasSubstr(pattern))));
  EXPECT_THAT([&] { (void)find((folder / "b-*.tar").string()); },
              ThrowsMessage<Error>(HasSubstr("no shard fits")));
  EXPECT_THAT([&] { (void)find((folder / "empty").string()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no shards in"), HasSubstr("*.tar files"))));
  EXPECT_THAT([&] { (void)find("gs://bucket/a.tar"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("local files")));
  EXPECT_THROW((void)find(""), std::invalid_argument);
  EXPECT_THROW((void)find(std::vector<std::string>{}), std::invalid_argument);
}

TEST(ShardPaths, OfAFolderAreThoseOfOneSplit) {
  const TemporaryFolder folder;
  folder.write("a/mnist-train-0.tar");
  folder.write("a/mnist-train-1.tar");
  folder.write("a/trainer.tar");  // another word
  EXPECT_THAT(find((folder / "a").string()), SizeIs(3));
  folder.write("a/Validation_0.tar");
  EXPECT_THAT([&] { (void)find((folder / "a").string()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("several splits, train (mnist-train-0.tar), "
                                                   "validation (Validation_0.tar): give a pattern"),
                                         HasSubstr("a/*train*.tar'"))));
  EXPECT_THAT(find((folder / "a/*").string()), SizeIs(4));
  EXPECT_THAT(find((folder / "a/*train-*").string()), SizeIs(2));
  EXPECT_THAT(find((folder / "a/*train*.tar").string()), SizeIs(3));
  folder.write("b/TEST-0-of-2.tar");
  folder.write("b/TEST-1-of-2.tar");
  folder.write("b/Dev.tar");
  EXPECT_THAT([&] { (void)find((folder / "b").string()); },
              ThrowsMessage<Error>(HasSubstr("b/TEST-*-of-2.tar'")));
  for (const auto& [name, split] : {std::pair{"dev.tar", "validation"},
                                    {"EVAL-1.tar", "test"},
                                    {"val.tar", "validation"},
                                    {"x_testing.tar", "test"}})
    EXPECT_EQ(split_of_name(name).value().split, split) << name;
  for (const char* name : {"contrived.tar", "", "1.tar"}) EXPECT_FALSE(split_of_name(name)) << name;
  EXPECT_EQ(split_of_name("x.Dev-1.tar")->word, "Dev");
}

TEST(ShardPaths, OfAFolderAreAsManyAsTheirNamesSay) {
  const TemporaryFolder folder;
  for (const char* name : {"x-00000-of-00003.tar", "x-00002-of-00003.tar", "y-0-of-1.tar"})
    folder.write(name);
  EXPECT_THAT(
      [&] { (void)find(folder.path()); },
      ThrowsMessage<Error>(HasSubstr("has 2 of 3 files x-*-of-00003.tar, number 1 is missing")));
  EXPECT_THAT(find((folder / "x-*-of-00003.tar").string()), SizeIs(2));
  folder.write("x-00001-of-00003.tar");
  EXPECT_THAT(find(folder.path()), SizeIs(4));
  for (const char* name : {"of-1", "-of-3", "a-of-3", "a-1-of-", "a-99999999999999999999-of-3"})
    EXPECT_EQ(numbered_name(name), std::nullopt) << name;
  EXPECT_EQ(numbered_name("1-of-3")->pattern, "*-of-3");
  EXPECT_EQ(numbered_name("a-1-of-3-b42f6c.x.tar")->pattern, "a-*-of-3*.tar");
  EXPECT_EQ(numbered_name("a-1-of-3-b42f6c")->pattern, "a-*-of-3*");
  for (const char* name : {"hub/train-0-of-2-b42f.tar", "hub/train-1-of-2-9ee2.tar"})
    folder.write(name);
  EXPECT_THAT(find((folder / "hub").string()), SizeIs(2));
}

}  // namespace
}  // namespace penstock::source
