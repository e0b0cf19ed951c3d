#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

class Labels : public ::testing::Test {
 protected:
  Labels() {
    folder_.write("a.jpg");
    folder_.write("b c.jpg");
    folder_.write("d,e.jpg");
  }
  SourcePtr open(std::string_view lines) const {
    return source::image_folder(folder_.path(), {.labels = folder_.write("labels.txt", lines)});
  }
  static std::vector<std::int64_t> labels(const SourcePtr& source) {
    std::vector<std::int64_t> all;
    Record record;
    for (std::uint64_t i = 0; i < source->size(); ++i) {
      EXPECT_TRUE(source->read(i, record));
      all.push_back(*record[1].data<std::int64_t>());
    }
    return all;
  }
  void expect_error(std::string_view lines, std::string_view part) const {
    EXPECT_THAT([&] { (void)open(lines); },
                ThrowsMessage<Error>(AllOf(HasSubstr((folder_ / "labels.txt").string()),
                                           HasSubstr(std::string(part)))));
  }

  const TemporaryFolder folder_;
};

TEST_F(Labels, AreIntegersAsTheyStand) {
  const SourcePtr source = open("b c.jpg 7\na.jpg -1\nd,e.jpg,9000000000\n");
  EXPECT_THAT(labels(source), ElementsAre(-1, 7, 9'000'000'000));
  EXPECT_THAT(source->class_names(), IsEmpty());
}

TEST_F(Labels, WrittenAsRealsAreTheIntegersThatTheyAre) {
  const SourcePtr source = open("a.jpg,10.0\nb c.jpg,2.0\nd,e.jpg,+1.0e1\n");
  EXPECT_THAT(labels(source), ElementsAre(10, 2, 10));
  EXPECT_THAT(source->class_names(), IsEmpty());
  EXPECT_THAT(labels(open("a.jpg,-0.0\nb c.jpg,3.\nd,e.jpg,4\n")), ElementsAre(0, 3, 4));
  EXPECT_THAT(labels(open("a.jpg,.0\nb c.jpg,-.0\nd,e.jpg,9007199254740993.0\n")),
              ElementsAre(0, 0, 9007199254740993));
}

TEST_F(Labels, ThatAreNoIntegersAreAnError) {
  for (const char* const label :
       {"1.5", "-0.25", "1.0e-3", "1.0e300", "1.0e400", "9223372036854775808",
        "9223372036854775808.0", "2.9999999999999999999", "9.007199254740993e15"})
    expect_error(std::string("a.jpg,1\nb c.jpg,") + label + "\n",
                 std::string("line 2: the label '") + label + "' is a number, but no integer");
  EXPECT_THAT(open("a.jpg,7e1\nb c.jpg,ab3\nd,e.jpg,1e3\n")->class_names(),
              ElementsAre("1e3", "7e1", "ab3"));
  expect_error("a.jpg,1.0\nb c.jpg,nan\n", "line 2: the label 'nan' is a name, but line 1 has an");
}

TEST_F(Labels, AreNumberedByTheClassesThatAreGiven) {
  const auto lines = folder_.write("labels.txt", "a.jpg,cat\nb c.jpg,ant\nd,e.jpg,10\n");
  const auto open_with = [&](std::vector<std::string> classes) {
    return source::image_folder(folder_.path(), {.labels = lines, .classes = std::move(classes)});
  };
  const SourcePtr source = open_with({"9", "10", "bee", "cat", "ant"});
  EXPECT_THAT(labels(source), ElementsAre(3, 4, 1));
  EXPECT_THAT(source->class_names(), ElementsAre("9", "10", "bee", "cat", "ant"));
  EXPECT_THAT(
      [&] {
        (void)open_with({"cat", "10"});
      },
      ThrowsMessage<Error>(
          HasSubstr("line 2: the label 'ant' is none of the 2 names in the option classes")));
}

TEST_F(Labels, InUtf16AreAnErrorThatSaysSo) {
  expect_error(std::string_view("\xFF\xFE"
                                "a\0.\0j\0",
                                8),
               "it looks like UTF-16); save it as UTF-8");
  expect_error(std::string_view("\xFE\xFF\0a\0.", 6), "UTF-8");
  expect_error(std::string_view("a\0.\0j\0", 6), "UTF-8");
}

TEST_F(Labels, InAFileWithoutAnEndAreRefused) {
  EXPECT_THAT([&] { (void)source::image_folder(folder_.path(), {.labels = "/dev/zero"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/dev/zero"), HasSubstr("more than"))));
}

TEST_F(Labels, AreClassNamesNumberedInTheirOrder) {
  const SourcePtr source = open("a.jpg\tgreat white shark\nb c.jpg,ant\nd,e.jpg, ant\n");
  EXPECT_THAT(labels(source), ElementsAre(1, 0, 0));
  EXPECT_THAT(source->class_names(), ElementsAre("ant", "great white shark"));
}

TEST_F(Labels, MayHaveWindowsLineEndsAMarkAndBlankLines) {
  EXPECT_THAT(labels(open("\xEF\xBB\xBF"
                          "a.jpg,1\r\n\r\n  b c.jpg  2 \r\nd,e.jpg\t3")),
              ElementsAre(1, 2, 3));
}

TEST_F(Labels, MayHaveAHeader) {
  for (const char* const header :
       {"filename,label", "image_id,breed", "ID\tFoo", "image\tid", "\"Image Name\";\"class\"",
        "\xEF\xBB\xBFpath|target", "img label"})
    EXPECT_THAT(labels(open(std::string(header) + "\na.jpg,1\nb c.jpg,2\nd,e.jpg,3\n")),
                ElementsAre(1, 2, 3))
        << header;
  expect_error("zebra.jpg,y\na.jpg,1\n", "line 1: expected the path of an image");
  expect_error("zebra.jpg,class\na.jpg,1\n", "line 1: expected the path of an image");
  expect_error("zebra.jpg,stripes\na.jpg,1\n", "line 1: expected the path of an image");
  expect_error("a.jpg,1\nfilename,label\n", "line 2: expected the path of an image");
  folder_.write("label.jpg");
  expect_error("label.jpg,label\nlabel.jpg,1\n", "'label.jpg' has a label already, from line 1");
}

TEST_F(Labels, MayBeInQuotes) {
  folder_.write("f \"g\".jpg");
  const SourcePtr source = open(
      "\"file\",\"label\"\n\"d,e.jpg\",\"dog, big\"\na.jpg,\"the \"\"cat\"\"\"\r\n\"b c.jpg\" , "
      "ant\n"
      "\"f \"\"g\"\".jpg\"\tant\n");
  EXPECT_THAT(source->class_names(), ElementsAre("ant", "dog, big", "the \"cat\""));
  EXPECT_THAT(labels(source), ElementsAre(2, 0, 1, 0));
  EXPECT_THAT(labels(open("\"a.jpg\" 1\n\"b c.jpg\" \"2\"\nd,e.jpg\t\"3\"\nf \"g\".jpg,4\n")),
              ElementsAre(1, 2, 3, 4));
}

TEST_F(Labels, MayBeSeparatedBySemicolonsAndBars) {
  EXPECT_THAT(labels(open("a.jpg;1\nb c.jpg|2\n\"d,e.jpg\" ; 3\n")), ElementsAre(1, 2, 3));
  EXPECT_THAT(open("a.jpg,x;y\nb c.jpg,z\nd,e.jpg,z\n")->class_names(), ElementsAre("x;y", "z"));
}

TEST_F(Labels, AreReadAsTheLineThatNamesAnImage) {
  folder_.write("5\" disc, big.jpg");
  folder_.write("image.jpg");
  const SourcePtr source =
      open("image,label\na.jpg dog|big\nb c.jpg x;y\nd,e.jpg w\n5\" disc, big.jpg,z\nimage,v\n");
  EXPECT_THAT(source->class_names(), ElementsAre("dog|big", "v", "w", "x;y", "z"));
  EXPECT_THAT(labels(source), ElementsAre(4, 0, 3, 2, 1));
}

TEST_F(Labels, OfMoreColumnsOrDamagedQuotesAreAnError) {
  expect_error("a.jpg,3,0.5\n", "line 1: expected two columns, the name of an image and its label");
  for (const char* const line :
       {"\"a.jpg,1", "\"a.jpg\"x,1", "\"a.jpg\",1,2", "\"\",1", "\"a.jpg\""})
    expect_error(std::string(line) + "\n", "line 1: expected 'name label', found '");
}

// One row with several label columns, or one column with several labels.
TEST_F(Labels, ThatAreSeveralForAnImageAreAnErrorThatSaysWhereTheyGo) {
  const std::string remedy =
      "several labels of an image are a field of their own: use zip([image_folder(path), "
      "memory({'labels': array})]) without `labels`";
  for (const char* const row : {"a.jpg,1,0,1", "a.jpg\t1\t0", "a.jpg 1 0 1", "a.jpg;1;3;7",
                                "image,cat,dog\na.jpg,0,1", "id;cat;dog;bird"})
    expect_error(std::string(row) + "\n", "line 1: expected two columns, the name of an image");
  for (const char* const row : {"a.jpg,1,0,1", "a.jpg 1 0 1", "image,cat,dog\na.jpg,0,1"})
    expect_error(std::string(row) + "\n", remedy);
  for (const char* const label : {"1;3;7", "1 3 7", "1|3", "[1, 3]", "1.0;3.0"}) {
    expect_error(fmt::format("b c.jpg,2\n\"a.jpg\",\"{}\"\n", label),
                 fmt::format("line 2: the label '{}' holds several; {}", label, remedy));
    expect_error(fmt::format("a.jpg\t\"{}\"\n", label), "if it is one name, list all names");
  }
  const auto lines = folder_.write("labels.txt", "a.jpg,1;3\nb c.jpg,3\nd,e.jpg,3\n");
  EXPECT_THAT(source::image_folder(folder_.path(), {.labels = lines, .classes = {"1;3", "3"}})
                  ->class_names(),
              ElementsAre("1;3", "3"));
  EXPECT_THAT(
      [&] {
        (void)source::image_folder(folder_.path(), {.labels = lines, .classes = {"1", "3"}});
      },
      ThrowsMessage<Error>(HasSubstr("line 1: the label '1;3' holds several; " + remedy)));
}

TEST_F(Labels, ThatAreListsOfOtherLabelsAreAnError) {
  for (const char* const both : {"cat;dog", "dog|cat", "\"cat, dog\""})
    expect_error(fmt::format("\"a.jpg\",{}\nb c.jpg,cat\n\"d,e.jpg\",dog\n", both),
                 "line 1: the label '");
  expect_error("a.jpg,cat;dog\nb c.jpg,cat\nd,e.jpg,dog\n",
               "line 1: the label 'cat;dog' holds several that are labels of other images");
}

TEST_F(Labels, OfIdsFindTheirImages) {
  folder_.write("0001.png");
  folder_.write("0001.v2.png");
  folder_.write("00011.png");
  EXPECT_THAT(labels(open("id,label\n00011,5\n0001,4\na,1\nb c.jpg,2\nd,e,3\n0001.v2,6\n")),
              ElementsAre(4, 6, 5, 1, 2, 3));
  folder_.write("a.png");
  expect_error("a,1\n",
               "line 1: 'a' is the name of two images, 'a.jpg' and 'a.png'; write the ending");
}

TEST(LabelsOfFolders, ArePathsBelowTheFolder) {
  const TemporaryFolder folder;
  for (const char* const path :
       {"top.jpg", "a/1.jpg", "a/2.jpg", "a.x/1.jpg", "b/c/3.jpg", "none/readme.txt"})
    folder.write(path);
  const auto lines = folder.write(
      "labels.csv", "path,label\nb/c/3.jpg,7\n./a/1.jpg,1\na/2,2\na.x/1,3\ntop.jpg,9\n");
  const SourcePtr source = source::image_folder(folder.path(), {.labels = lines});
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (std::uint64_t i = 0; i < source->size(); ++i)
    found.emplace_back(source->info(i).key, *source->info(i).label);
  EXPECT_THAT(found, ElementsAre(std::pair("a.x/1.jpg", 3), std::pair("a/1.jpg", 1),
                                 std::pair("a/2.jpg", 2), std::pair("b/c/3.jpg", 7),
                                 std::pair("top.jpg", 9)));
  EXPECT_THAT(source->class_names(), IsEmpty());
  folder.write("b/4.jpg");
  EXPECT_THAT([&] { (void)source::image_folder(folder.path(), {.labels = lines}); },
              ThrowsMessage<Error>(HasSubstr("no label for 1 of 6 images, 'b/4.jpg' the first")));
}

TEST_F(Labels, OfAnUnknownImageAreAnErrorWithTheLine) {
  expect_error("a.jpg 1\nzebra.jpg 2\n",
               "line 2: expected the path of an image relative to the folder, "
               "found 'zebra.jpg'; remove the line, or add the image");
}

TEST_F(Labels, MissingForAnImageAreAnErrorThatNamesIt) {
  expect_error("a.jpg 1\n", "no label for 2 of 3 images, 'b c.jpg' the first");
  expect_error("", "no label for 3 of 3 images");
}

TEST_F(Labels, MalformedAreAnErrorWithTheLine) {
  expect_error("a.jpg 1\n\nb\n", "line 3: expected 'name label', found 'b'");
  expect_error("a.jpg,\n", "line 1: expected 'name label', found 'a.jpg,'");
  expect_error(",1\n", "line 1: expected 'name label', found ',1'");
}

TEST_F(Labels, TwiceForAnImageAreAnErrorWithBothLines) {
  expect_error("a.jpg 1\nb c.jpg 1\na.jpg 2\n", "line 3: 'a.jpg' has a label already, from line 1");
}

TEST_F(Labels, OfTwoKindsAreAnErrorWithBothLines) {
  expect_error("a.jpg 1\nb c.jpg\tcat\n",
               "line 2: the label 'cat' is a name, but line 1 has an "
               "integer");
  expect_error("a.jpg\tcat\nb c.jpg 1\n",
               "line 2: the label '1' is an integer, but line 1 has a "
               "name");
}

TEST_F(Labels, InAFileThatIsNotThereAreAnError) {
  EXPECT_THAT([&] { (void)source::image_folder(folder_.path(), {.labels = folder_ / "none.txt"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr((folder_ / "none.txt").string()),
                                         HasSubstr("No such file or directory"))));
  EXPECT_THROW((void)source::image_folder(folder_.path(), {.labels = folder_.path()}), Error);
}

}  // namespace
}  // namespace penstock
