// Files that a table names; python/tests/test_images_from.py compares with pandas.read_csv, and has Parquet and Arrow.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "src/source/csv/csv_rows.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

class ImagesFrom : public testing::Test {
 protected:
  ImagesFrom() {
    for (const char* name : {"a/1.jpg", "a/2.jpg", "b, c/3.jpg", "007.jpg", "9.jpg"})
      folder_.write(name, std::string("bytes of ") + name);
  }

  [[nodiscard]] std::filesystem::path table(const std::string& text,
                                            const std::string& name = "train.csv") const {
    return folder_.write(name, text);
  }
  void expect_error(const std::string& text, const std::string& part,
                    const ImagesFromOptions& options = {}) const {
    EXPECT_THAT([&] { (void)source::images_from(table(text), options); },
                ThrowsMessage<std::exception>(HasSubstr(part)))
        << text;
  }

  TemporaryFolder folder_;
};

std::string file_text(const Source& source, std::uint64_t number, std::size_t field = 0) {
  Record record;
  if (const auto result = source.read(number, record); !result)
    return "fault: " + result.fault().to_string();
  const auto bytes = record[field].bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
std::vector<T> numbers_in(const Source& source, const std::string& name) {
  std::vector<T> all;
  std::size_t field = 0;
  while (source.fields()[field].name != name) ++field;
  for (std::uint64_t number = 0; number < source.size(); ++number) {
    Record record;
    EXPECT_TRUE(source.read(number, record));
    EXPECT_EQ(record[field].dtype(), dtype_of<T>());
    all.push_back(*record[field].data<T>());
  }
  return all;
}

std::vector<std::int64_t> labels_in(const Source& source) {
  for (std::uint64_t number = 0; number < source.size(); ++number)
    EXPECT_EQ(source.label(number), numbers_in<std::int64_t>(source, "label")[number]);
  return numbers_in<std::int64_t>(source, "label");
}

TEST_F(ImagesFrom, AreTheFilesOfItsRowsInTheirOrder) {
  const SourcePtr source =
      source::images_from(table("file,label\na/2.jpg,dog\n\"b, c/3.jpg\",cat\n./a/2.jpg,dog\n"));
  ASSERT_EQ(source->size(), 3U);
  EXPECT_EQ(file_text(*source, 0), "bytes of a/2.jpg");
  EXPECT_EQ(file_text(*source, 1), "bytes of b, c/3.jpg");
  EXPECT_EQ(file_text(*source, 2), "bytes of a/2.jpg");
  EXPECT_THAT(labels_in(*source), ElementsAre(1, 0, 1));
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(source->name(0).key, "a/2.jpg");
  EXPECT_EQ(source->name(2).file, (folder_.path() / "a/2.jpg").string());
  EXPECT_EQ(source->fields()[0].name, "image");
}

TEST_F(ImagesFrom, TellsHowFarTheRowsAreRead) {
  const SourcePtr rows = source::csv_rows("file\na/1.jpg\na/2.jpg\n9.jpg\n", "rows.csv",
                                          {{.name = "file", .column = "file"}});
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] {
                  (void)source::images_from(*rows,
                                            {.path = "file", .label = "", .root = folder_.path()});
                });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().what, "reading the paths of the table");
  EXPECT_EQ(told.back().unit, "rows");
  EXPECT_EQ(told.back().done, 3U);
  EXPECT_EQ(told.back().total, 3U);
}

// The same rows in every form that spreadsheets and pandas write.
TEST_F(ImagesFrom, DialectsOfCsvAreTheSameRows) {
  const std::string plain = "n,file,label\n1,\"b, c/3.jpg\",cat\n2,a/1.jpg,dog\n";
  const std::string expected = source::images_from(table(plain))->fingerprint();
  EXPECT_THAT(expected, StartsWith("files(2 files, "));
  for (const std::string& text : {
           std::string("\xEF\xBB\xBF") + plain,
           std::string("\xEF\xBB\xBF"
                       "file,label\n\"b, c/3.jpg\",cat\na/1.jpg,dog\n"),
           std::string("n,file,label\r\n1,\"b, c/3.jpg\",cat\r\n2,a/1.jpg,dog\r\n"),
           std::string("n,file,label\n\n1,\"b, c/3.jpg\",cat\n  \n2,a/1.jpg,dog"),
           std::string("n;file;label\n1;b, c/3.jpg;cat\n2;a/1.jpg;dog\n"),
           std::string("n\tfile\tlabel\n1\tb, c/3.jpg\tcat\n2\ta/1.jpg\tdog\n"),
           std::string("n|file|label\n1|b, c/3.jpg|cat\n2|a/1.jpg|dog\n"),
           std::string("n, file, label\n1, \"b, c/3.jpg\" , cat\n2, a/1.jpg, dog\n"),
           std::string("\"n\",\"file\",\"label\"\n\"1\",\"b, c/3.jpg\",\"cat\"\n\"2\",\"a/1.jpg\","
                       "\"dog\"\n"),
           std::string(",file,label,note\n0,\"b, c/3.jpg\",cat,\"two\nlines, and \"\"quotes\"\"\"\n"
                       "1,a/1.jpg,dog,\n"),
       })
    EXPECT_EQ(source::images_from(table(text))->fingerprint(), expected) << text;
  EXPECT_EQ(source::images_from(table("n\tfile,x\tfile\tlabel\n1\t\tb, c/3.jpg\tcat\n2\t\ta/1.jpg"
                                      "\tdog\n",
                                      "train.tsv"))
                ->fingerprint(),
            expected);
}

TEST_F(ImagesFrom, LabelsAreIntegersNamesOrNone) {
  const auto read = [&](const std::string& first, const std::string& second,
                        const ImagesFromOptions& options = {}) {
    return labels_in(*source::images_from(
        table("file,label\na/1.jpg," + first + "\na/2.jpg," + second + "\n"), options));
  };
  EXPECT_THAT(read("7", "-1"), ElementsAre(7, -1));
  EXPECT_THAT(read("7.0", "2"), ElementsAre(7, 2));
  EXPECT_THAT(read("dog", "cat", {.classes = {"dog", "eel", "cat"}}), ElementsAre(0, 2));
  EXPECT_THAT(read("1", "0", {.classes = {"dog", "cat"}}), ElementsAre(1, 0));
  EXPECT_THAT(read("10", "9", {.classes = {"10", "9"}}), ElementsAre(0, 1)) << "names";
  EXPECT_THAT(read("10", "9", {.label = ""}), ElementsAre(0, 0));
  const SourcePtr bare = source::images_from(table("file\na/1.jpg\n"), {.label = ""});
  EXPECT_THAT(labels_in(*bare), ElementsAre(0));
}

TEST_F(ImagesFrom, DoubtfulLabelsAreErrorsThatNameTheLine) {
  const std::string first = "file,label\na/1.jpg,";
  expect_error(first + "3\na/2.jpg,cat\n", "line 3: the label 'cat' is a name, but line 2 has an");
  expect_error(first + "1.5\n", "line 2: the label '1.5' is a number, but no integer");
  expect_error(first + "\n", "line 2: the label, in the column 'label', is empty");
  expect_error(first + "1;3\n", "line 2: the label '1;3' holds several");
  expect_error(first + "1;3\n", "pass label=\"\", and name the column in columns");
  expect_error(first + "ant\n", "the label 'ant' is none of the 2 names",
               {.classes = {"cat", "dog"}});
  expect_error(first + "2\n", "none of the 2 names", {.classes = {"cat", "dog"}});
}

TEST_F(ImagesFrom, RowsWithoutAPathAreErrorsThatNameTheLine) {
  expect_error("file,label\na/1.jpg,1\n ,2\n", "train.csv line 3: the path, in the column 'file'");
  expect_error("label,file\n1,\"two\nlines\"\n2,\n", "line 4: the path");
}

TEST_F(ImagesFrom, TablesThatAreNoneAreErrors) {
  expect_error("", "has no first line that names its columns");
  expect_error("file,label\n", "has a header, and no rows");
  expect_error("id,label\na/1.jpg,1\n", "has no column 'file'; its columns, which the first line");
  expect_error("id,label\na/1.jpg,1\n", "are id, label");
  expect_error("file,label,file\na/1.jpg,1,a/1.jpg\n", "two columns are called 'file'");
  expect_error("file,label\na/1.jpg\n",
               "line 2: expected 2 values, as many as there are columns, found 1");
  expect_error("file,label\nb, c/3.jpg,1\n", "line 2: expected 2 values");
  expect_error("file,label\n\"a/1.jpg,1\n", "line 2: a double quote has no second one");
  expect_error("file,label\n\"a\"/1.jpg,1\n", "line 2: a double quote");
  expect_error(std::string("f\0i\0l\0e\0", 8), "UTF-16");
  expect_error("\x1F\x8B\x08", "is compressed; unpack it");
  expect_error("file,label\na/1.jpg,1\n", "named for both", {.path = "label"});
  expect_error("file,label\na/1.jpg,1\n", "there is no column of these",
               {.label = "", .classes = {"a"}});
  expect_error("file,label\nftp://host/1.jpg,1\n", "ftp://host/1.jpg is not a path");
}

TEST_F(ImagesFrom, PathsAreRelativeToTheRootOrAbsolute) {
  const std::string root = folder_.path().string();
  const auto read = [&](const std::string& path, const ImagesFromOptions& options = {}) {
    return file_text(
        *source::images_from(table("file,label\n" + path + ",1\n", "tables/t.csv"), options), 0);
  };
  EXPECT_EQ(read("../a/1.jpg"), "bytes of a/1.jpg");
  EXPECT_EQ(read("1.jpg", {.root = folder_.path() / "a"}), "bytes of a/1.jpg");
  EXPECT_EQ(read(root + "/a/1.jpg", {.root = folder_.path() / "b"}), "bytes of a/1.jpg");
  const SourcePtr both =
      source::images_from(table("file,label\n" + root + "/a/1.jpg,1\na/2.jpg,2\n"));
  EXPECT_EQ(file_text(*both, 0), "bytes of a/1.jpg");
  EXPECT_EQ(file_text(*both, 1), "bytes of a/2.jpg");
}

TEST_F(ImagesFrom, IdsGetAnEnding) {
  const SourcePtr source = source::images_from(table("id,label\n007,1\n9,0\n9.jpg,0\n"),
                                               {.path = "id", .ending = ".jpg"});
  EXPECT_EQ(file_text(*source, 0), "bytes of 007.jpg") << "not 7.jpg";
  EXPECT_EQ(file_text(*source, 1), "bytes of 9.jpg");
  EXPECT_EQ(file_text(*source, 2), "bytes of 9.jpg");
}

TEST_F(ImagesFrom, FilesThatAreMissingAreFaultsUnlessAllOfTheFirstAre) {
  const SourcePtr source = source::images_from(table("file,label\nnone.jpg,1\na/1.jpg,1\n"));
  EXPECT_THAT(file_text(*source, 0), AllOf(StartsWith("fault"), HasSubstr("none.jpg")));
  EXPECT_EQ(file_text(*source, 1), "bytes of a/1.jpg");
  const std::string root = folder_.path().string();
  expect_error("file,label\n1.jpg,1\n2.jpg,1\n", "none of the first 2 files");
  expect_error("file,label\n1.jpg,1\n2.jpg,1\n", "looked for " + root + "/1.jpg");
  expect_error("file,label\n1.jpg,1\n2.jpg,1\n", "below root, here " + root + ": pass root");
  expect_error("file,label\n9,1\n", "there is one that ends in .jpg: pass ending=\".jpg\"");
  std::string many = "file,label\n";
  for (int row = 0; row < 100; ++row) many += "none" + std::to_string(row) + ".jpg,1\n";
  expect_error(many + "a/1.jpg,1\n", "none of the first 100 files");
  EXPECT_EQ(source::images_from(table("file,label\na/1.jpg,1\n" + many.substr(11)))->size(), 101U);
}

TEST_F(ImagesFrom, MoreColumnsAreFields) {
  const SourcePtr source =
      source::images_from(table("file,label,age,score,note,zip,flag\n"
                                "a/1.jpg,1,-5,1.5,\"a, \"\"b\"\"\",01234,True\n"
                                "a/2.jpg,0,+7,2,,99999,False\n"),
                          {.columns = {{.name = "years", .column = "age"},
                                       {.name = "score"},
                                       {.name = "note"},
                                       {.name = "zip"},
                                       {.name = "flag"}}});
  std::string fields;
  for (const FieldSpec& field : source->fields()) fields += field.to_string() + "; ";
  EXPECT_EQ(fields,
            "image u8 [?]; label i64 []; years i64 []; score f64 []; note u8 [?]; zip u8 [?]; flag "
            "u8 [?]; ");
  EXPECT_EQ(file_text(*source, 1), "bytes of a/2.jpg");
  EXPECT_THAT(numbers_in<std::int64_t>(*source, "years"), ElementsAre(-5, 7));
  EXPECT_THAT(numbers_in<double>(*source, "score"), ElementsAre(1.5, 2.0));
  EXPECT_EQ(file_text(*source, 0, 4), "a, \"b\"");
  EXPECT_EQ(file_text(*source, 1, 4), "");
  EXPECT_EQ(file_text(*source, 0, 5), "01234");
  EXPECT_EQ(file_text(*source, 0, 6), "True");
  EXPECT_THAT(labels_in(*source), ElementsAre(1, 0));
  EXPECT_THAT(source->name(1).to_string(), HasSubstr("a/2.jpg"));
}

// Type by type, of a file alone.
TEST(CsvRows, TypesAreThoseOfAllValues) {
  const auto type_of = [](const std::vector<std::string>& values, const TableColumn& column) {
    std::string text = "x,y\n";
    for (const std::string& value : values) text += value + ",\n";
    return source::csv_rows(text, "t.csv", {column})->fields()[0].to_string();
  };
  const TableColumn x{.name = "x"};
  EXPECT_EQ(type_of({"1", "-2", "+3"}, x), "x i64 []");
  EXPECT_EQ(type_of({"1", "2.0"}, x), "x f64 []");
  EXPECT_EQ(type_of({"1e3", "nan", "-inf"}, x), "x f64 []");
  EXPECT_EQ(type_of({"nan", "Inf"}, x), "x u8 [?]") << "names";
  EXPECT_EQ(type_of({"007", "8"}, x), "x u8 [?]");
  EXPECT_EQ(type_of({"9223372036854775808", "1"}, x), "x u8 [?]");
  EXPECT_EQ(type_of({"-9223372036854775808", "9223372036854775807"}, x), "x i64 []");
  EXPECT_EQ(type_of({"", ""}, x), "x u8 [?]");
  EXPECT_EQ(type_of({"a", "\"12\""}, x), "x u8 [?]") << "numbers in quotes beside texts";
  EXPECT_EQ(type_of({"\"1\"", "\"12\""}, x), "x i64 []");
  EXPECT_EQ(type_of({"1", ""}, {.name = "x", .required = false}), "x i64 []");
  const auto refuses = [&](const std::vector<std::string>& values, const TableColumn& column,
                           const std::string& part) {
    EXPECT_THAT([&] { (void)type_of(values, column); },
                ThrowsMessage<std::exception>(HasSubstr(part)));
  };
  refuses({"1", "two"}, x, "has numbers and texts: '1' in line 2, 'two' in line 3");
  refuses({"x", "1.5"}, x, "'1.5' in line 3, 'x' in line 2");
  refuses({"007", "1.5"}, x, "'1.5' in line 3, '007' in line 2");
  refuses({"1", "", "3"}, x, "line 3: the column 'x' has numbers, and no value in this row");
  refuses({"1", "NA"}, x, "if a number is missing, leave its value empty");
  refuses({"1"}, {.name = "x", .default_value = 0.5},
          "default_value = 0.5 is no value of type i64");
  refuses({"1"}, {.name = "x", .shape = {2}}, "a CSV file has no lists");
  refuses({"1"}, {.name = "x", .column = "z"}, "has no column 'z'");
}

TEST(CsvRows, NullsOfNumbersAreTheDefault) {
  const SourcePtr rows =
      source::csv_rows("x,y\n1,\n,2.5\n", "t.csv",
                       {{.name = "x", .required = false, .default_value = -7},
                        {.name = "y", .required = false, .default_value = 0.25}});
  EXPECT_THAT(numbers_in<std::int64_t>(*rows, "x"), ElementsAre(1, -7));
  EXPECT_THAT(numbers_in<double>(*rows, "y"), ElementsAre(0.25, 2.5));
  EXPECT_EQ(rows->location(1), "t.csv:3");
}

TEST_F(ImagesFrom, APlanHasTheTableAndNotItsPaths) {
  const std::filesystem::path file =
      table("file,label,n\na/1.jpg,dog,4\na/2.jpg,cat,5\n\"b, c/3.jpg\",dog,6\n");
  const Dataset plan =
      images_from(file, {.columns = {{.name = "n"}}, .field = "bytes"}).shuffle({.seed = 2});
  const std::string json = plan.to_json();
  EXPECT_THAT(json, AllOf(HasSubstr("\"images_from\""), HasSubstr(file.string())));
  EXPECT_EQ(json.find("a/1.jpg"), json.npos);
  const Dataset same = Dataset::from_json(json);
  EXPECT_EQ(same.to_json(), json);
  EXPECT_EQ(same.source().fingerprint(), plan.source().fingerprint());
  EXPECT_EQ(file_text(same.source(), 1), "bytes of a/2.jpg");
  EXPECT_THAT(plan.describe(), StartsWith("images_from(table='" + file.string() + "', "));
  folder_.write("train.csv", "file,label,n\na/1.jpg,dog,4\na/2.jpg,cat,5\n\"b, c/3.jpg\",dog,7\n");
  EXPECT_THAT([&] { (void)Dataset::from_json(json); },
              ThrowsMessage<Error>(HasSubstr("the data are not those of the plan")));
}

TEST_F(ImagesFrom, TheFingerprintIsOfPathsAndLabels) {
  const auto fingerprint = [&](const std::string& text, const ImagesFromOptions& options = {}) {
    return source::images_from(table(text), options)->fingerprint();
  };
  const std::string one = fingerprint("file,label,n\na/1.jpg,1,4\n");
  EXPECT_EQ(one, source::files({"a/1.jpg"},
                               {.labels = std::vector<std::int64_t>{1}, .root = folder_.path()})
                     ->fingerprint());
  EXPECT_NE(one, fingerprint("file,label,n\na/2.jpg,1,4\n"));
  EXPECT_NE(one, fingerprint("file,label,n\na/1.jpg,2,4\n"));
  EXPECT_EQ(one, fingerprint("file,label,n\na/1.jpg,1,5\n"));
  const ImagesFromOptions more{.columns = {{.name = "n"}}};
  EXPECT_NE(fingerprint("file,label,n\na/1.jpg,1,4\n", more),
            fingerprint("file,label,n\na/1.jpg,1,5\n", more));
}

TEST_F(ImagesFrom, OfTheRowsOfASourceAreItsFiles) {
  const SourcePtr rows =
      source::csv_rows("p,c\na/1.jpg,3\na/2.jpg,4\n", "t.csv", {{.name = "p"}, {.name = "c"}});
  const SourcePtr source =
      source::images_from(*rows, {.path = "p", .label = "c", .root = folder_.path()});
  EXPECT_EQ(file_text(*source, 1), "bytes of a/2.jpg");
  EXPECT_THAT(labels_in(*source), ElementsAre(3, 4));
  EXPECT_THAT([&] { (void)source::images_from(*rows, {.path = "q", .label = ""}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("has no field 'q': there are p u8")));
  EXPECT_THAT(
      [&] {
        (void)source::images_from(*rows, {.path = "p", .label = "", .columns = {{.name = "c"}}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("columns are for tables that are files")));
}

}  // namespace
}  // namespace penstock
