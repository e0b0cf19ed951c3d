#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/shards.hpp>

#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/webdataset/tar_samples.hpp"
#include "tests/project_path.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::is_fault;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::TemporaryFolder;
using test::text_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

using Field = WebDatasetField;

WebDatasetOptions shards_in_memory(std::vector<Field> fields = WebDatasetOptions().fields) {
  return {.fields = std::move(fields), .index = {.location = IndexLocation::memory}};
}

// The records of one shard of these bytes.
std::vector<std::string> samples(const std::string& tar,
                                 std::vector<Field> fields = WebDatasetOptions().fields) {
  const TemporaryFolder folder;
  const auto path = folder.write("shard.tar", tar);
  std::vector<std::string> all =
      describe_all(source::webdataset(path, shards_in_memory(std::move(fields))));
  for (std::string& text : all) {  // what remains is the same in every folder
    for (std::size_t at; (at = text.find(folder.path().string() + "/")) != text.npos;) {
      text.erase(at, folder.path().string().size() + 1);
    }
  }
  return all;
}

TEST(WebDatasetNames, AreTakenApartAsThePackagesExpressionDoes) {
  // webdataset.tariterators.base_plus_ext
  const std::regex expression("^((?:.*/|)[^.]+)[.]([^/]*)$");
  std::string name;
  const std::function<void(int)> try_all = [&](int more) {
    std::smatch parts;
    const bool fits = std::regex_match(name, parts, expression);
    const auto found = source::split_name(name);
    ASSERT_EQ(found.has_value(), fits) << name;
    if (found) {
      EXPECT_EQ(found->key, parts[1].str()) << name;
      EXPECT_EQ(found->extension, parts[2].str()) << name;
    }
    if (more == 0) return;
    for (const char c : {'a', '.', '/'}) {
      name.push_back(c);
      try_all(more - 1);
      name.pop_back();
    }
  };
  try_all(8);
}

TEST(WebDatasetNames, OfNotesAreNoSamples) {
  for (const char* name : {"__note__.x", "__a__/b.jpg", "____/b.jpg"}) {
    EXPECT_EQ(source::split_name(name).has_value(), name == std::string("__note__.x")) << name;
  }
  EXPECT_FALSE(source::split_name("__a.b__"));
  EXPECT_TRUE(source::split_name("a/__b__.jpg"));
  EXPECT_TRUE(source::split_name("__a/b.jpg"));
}

TEST(WebDatasetLabels, AreIntegersAsPythonReadsThem) {
  using source::parse_integer;
  EXPECT_EQ(parse_integer("7"), 7);
  EXPECT_EQ(parse_integer(" \t-7\r\n"), -7);
  EXPECT_EQ(parse_integer("+007"), 7);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* text :
       {"", " ", "9223372036854775808", "7.0", "7 8", "+-7", "+", "0x1", "cat"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
}

// Reads each golden shard and compares with what the webdataset package itself read from it.
TEST(WebDataset, ReadsWhatTheOriginalToolsWrite) {
  for (const char* name :
       {"webdataset.tar", "gnu_tar.tar", "python_gnu.tar", "python_pax.tar", "python_ustar.tar"}) {
    const std::string path = test::project_path("tests/source/golden/") + name;
    std::vector<std::pair<std::string, std::map<std::string, std::string>>> expected;
    std::istringstream list(test::read_text(path + ".txt"));
    for (std::string line; std::getline(list, line);) {
      std::istringstream parts(line);
      std::string key, extension, bytes, crc;
      std::getline(parts, key, '\t');
      std::getline(parts, extension, '\t');
      std::getline(parts, bytes, '\t');
      std::getline(parts, crc, '\t');
      if (expected.empty() || expected.back().first != key) expected.push_back({key, {}});
      expected.back().second[extension] = bytes + " " + crc;
    }
    ASSERT_FALSE(expected.empty());

    std::vector<Field> fields;
    for (const char* extension : {"jpg", "cls", "json", "seg.png", "empty"}) {
      fields.push_back({.name = extension, .extensions = {extension}, .required = false});
    }
    const SourcePtr source = source::webdataset(path, shards_in_memory(fields));
    ASSERT_EQ(source->size(), expected.size()) << name;
    Record record;
    for (std::uint64_t i = 0; i < source->size(); ++i) {
      EXPECT_EQ(source->info(i).key, expected[i].first);
      ASSERT_TRUE(source->read(i, record)) << name << " " << i;
      for (std::size_t k = 0; k < fields.size(); ++k) {
        const std::string found =
            fmt::format("{} {:08x}", record[k].byte_size(), source::crc32c(record[k].bytes()));
        const auto member = expected[i].second.find(fields[k].name);
        EXPECT_EQ(found, member == expected[i].second.end() ? "0 00000000" : member->second)
            << name << " " << expected[i].first << " " << fields[k].name;
      }
    }
  }
}

TEST(WebDataset, GivesTheLabelOfTheClassMember) {
  const SourcePtr source = source::webdataset(
      test::project_path("tests/source/golden/webdataset.tar"), shards_in_memory());
  EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"image", DType::u8, {kDynamic}},
                                            FieldSpec{"label", DType::i64, {}}));
  Record record;
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    ASSERT_TRUE(source->read(i, record));
    EXPECT_EQ(*record[1].data<std::int64_t>(), 10 * static_cast<int>(i) - 10);
    EXPECT_EQ(source->info(i).label, 10 * static_cast<int>(i) - 10);
    EXPECT_EQ(source->info(i).bytes, 300 + 300 * i);
    EXPECT_EQ(record[0].shape(), Shape{static_cast<std::int64_t>(300 + 300 * i)});
  }
}

TEST(WebDataset, MakesASampleOfNeighboursWithOneKey) {
  const std::string tar = tar_member("d/", "", '5') + tar_member("a.JPG", "A") +
                          tar_member("a.cls", "1") + tar_member("link.jpg", "", '2') +
                          tar_member("readme", "x") + tar_member("a.json", "{}") +
                          tar_member("d/a.jpg", "DA") + tar_member("d/a.cls", "2") +
                          tar_member("a.png", "AGAIN") + tar_member("a.cls", "3") + tar_end();
  EXPECT_THAT(samples(tar),
              ElementsAre("image=A;label=1 ;", "image=DA;label=2 ;", "image=AGAIN;label=3 ;"));
}

TEST(WebDataset, TakesTheFirstExtensionThatASampleHas) {
  const std::string tar = tar_member("a.png", "png") + tar_member("a.jpg", "jpg") +
                          tar_member("b.png", "only png") + tar_member("c.x.png", "x") +
                          tar_member("c.y.PNG", "y") + tar_end();
  EXPECT_THAT(samples(tar, {{.name = "i", .extensions = {".JPG", "png", "y.png"}}}),
              ElementsAre("i=jpg;", "i=only png;", "i=y;"));
}

TEST(WebDataset, ReadsMembersThatLieFarApart) {
  const std::string large(40'000, 'x');
  const std::string tar = tar_member("a.txt", "near") + tar_member("a.npy", large) +
                          tar_member("a.jpg", "far") + tar_member("a.cls", "1") + tar_end();
  EXPECT_THAT(samples(tar, {{.name = "i", .extensions = {"jpg"}},
                            {.name = "l", .extensions = {"cls"}, .type = Field::Type::integer},
                            {.name = "t", .extensions = {"txt"}},
                            {.name = "again", .extensions = {"txt"}}}),
              ElementsAre("i=far;l=1 ;t=near;again=near;"));
}

TEST(WebDataset, FillsInWhatASampleMayDoWithout) {
  const std::string tar = tar_member("a.jpg", "A") + tar_member("b.cls", "2") + tar_end();
  EXPECT_THAT(samples(tar, {{.name = "i", .extensions = {"jpg"}, .required = false},
                            {.name = "l",
                             .extensions = {"cls"},
                             .type = Field::Type::integer,
                             .required = false,
                             .default_value = -1}}),
              ElementsAre("i=A;l=-1 ;", "i=;l=2 ;"));
}

TEST(WebDataset, MakesAFaultOfASampleThatLacksSomethingAndKeepsItsNumber) {
  const std::string tar =
      tar_member("a.jpg", "A") + tar_member("a.cls", "1") + tar_member("b.jpg", "B") +
      tar_member("b.txt", "B") + tar_member("c.jpg", "C") + tar_member("c.cls", "three") +
      tar_member("d.jpg", "D") + tar_member("d.jpg", "D") + tar_member("d.cls", "4") +
      tar_member("e.jpg", "E") + tar_member("e.cls", "5") + tar_end();
  EXPECT_THAT(samples(tar),
              ElementsAre("image=A;label=1 ;",
                          AllOf(HasSubstr("shard.tar: b at byte 2560"),
                                HasSubstr("no member for 'label': expected cls, found jpg, txt")),
                          AllOf(HasSubstr("shard.tar: c at byte 5632"), HasSubstr("one integer")),
                          AllOf(HasSubstr("shard.tar: d"), HasSubstr("two members for 'image'")),
                          "image=E;label=5 ;"));
}

TEST(WebDataset, ReadsSizesThatOctalDigitsDoNotHold) {
  std::string header = tar_header("a.jpg", 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));  // base 256
  test::put_checksum(header);
  const std::string pax = tar_member("x", "12 size=600\n", 'x') + tar_header("b.jpg", 0) +
                          test::padded(std::string(600, 'B'));
  const std::string tar = header + test::padded("12345") + pax + tar_end();
  EXPECT_THAT(samples(tar, {{.name = "i", .extensions = {"jpg"}}}),
              ElementsAre("i=12345;", "i=" + std::string(600, 'B') + ";"));
}

TEST(WebDataset, ReadsVersionSevenAndUstarPrefixes) {
  std::string prefixed = tar_header("a.jpg", 1);
  prefixed.replace(345, 6, "folder");
  test::put_checksum(prefixed);
  std::string gnu = tar_header("b.jpg", 1, '0', std::string_view("ustar  \0", 8));
  gnu.replace(345, 6, "123456");  // GNU's times, no prefix
  test::put_checksum(gnu);
  const std::string v7 = tar_header("folder/", 0, '\0', "") + tar_header("c.jpg", 1, '\0', "");
  const TemporaryFolder folder;
  const auto path = folder.write("a.tar", prefixed + test::padded("A") + gnu + test::padded("B") +
                                              v7 + test::padded("C") + tar_end());
  const SourcePtr source =
      source::webdataset(path, shards_in_memory({{.name = "i", .extensions = {"jpg"}}}));
  EXPECT_THAT(describe_all(source), ElementsAre("i=A;", "i=B;", "i=C;"));
  EXPECT_EQ(source->info(0).key, "folder/a");
  EXPECT_EQ(source->info(1).key, "b");
}

TEST(WebDataset, AcceptsAShardWithoutItsEndMark) {
  const std::string whole = tar_member("a.jpg", "A") + tar_member("a.cls", "1");
  EXPECT_THAT(samples(whole), ElementsAre("image=A;label=1 ;"));
  EXPECT_THAT(samples(whole + std::string(512, '\0')), ElementsAre("image=A;label=1 ;"));
  EXPECT_THAT(samples(whole.substr(0, whole.size() - 1)), ElementsAre(HasSubstr("cut off")));
  EXPECT_THAT(samples(whole + tar_end() + "anything"), ElementsAre("image=A;label=1 ;"));
  EXPECT_THAT(samples(tar_end()), ElementsAre());
}

TEST(WebDataset, NumbersTheShardsThroughAndSaysWhichRecordLiesWhere) {
  const TemporaryFolder folder;
  folder.write("b.tar", test::plain_tar(3, "b"));
  folder.write("a.tar", test::plain_tar(2, "a"));
  folder.write("c.tar", tar_end());
  folder.write("d.tar", test::plain_tar(1, "d"));
  const SourcePtr source = source::webdataset(folder.path(), shards_in_memory());
  ASSERT_EQ(source->size(), 6U);
  EXPECT_EQ(source->files(), 4U);
  std::vector<std::string> keys;
  std::vector<std::uint64_t> files;
  for (std::uint64_t i = 0; i < 6; ++i) {
    keys.push_back(source->info(i).key);
    files.push_back(source->file_of(i));
  }
  EXPECT_THAT(keys, ElementsAre("a0", "a1", "b0", "b1", "b2", "d0"));
  EXPECT_THAT(files, ElementsAre(0, 0, 1, 1, 1, 3));
  EXPECT_EQ(source->location(4), (folder / "b.tar").string() + ": b2");
}

TEST(WebDataset, HasAFingerprintThatFollowsTheDataNotThePlace) {
  const TemporaryFolder here;
  const TemporaryFolder there;
  const auto fingerprint = [](const std::filesystem::path& path, WebDatasetOptions options) {
    return source::webdataset(path, std::move(options))->fingerprint();
  };
  here.write("a.tar", test::plain_tar(3));
  there.write("a.tar", test::plain_tar(3));
  const std::string first = fingerprint(here.path(), shards_in_memory());
  EXPECT_THAT(first, StartsWith("webdataset(3 records in 1 shards, "));
  EXPECT_EQ(first, fingerprint(there.path(), shards_in_memory()));
  EXPECT_EQ(first,
            fingerprint(here / "a.tar", {.index = {.location = IndexLocation::next_to_data}}));
  EXPECT_NE(first,
            fingerprint(here.path(), shards_in_memory({{.name = "image", .extensions = {"jpg"}}})));
  there.write("a.tar", test::plain_tar(3, "m"));
  EXPECT_NE(first, fingerprint(there.path(), shards_in_memory()));
  there.write("a.tar", test::plain_tar(3));
  std::filesystem::rename(there / "a.tar", there / "b.tar");
  EXPECT_NE(first, fingerprint(there.path(), shards_in_memory()));
}

TEST(WebDataset, ReadsInAnyOrderFromManyThreadsWhatItReadsInTurn) {
  const TemporaryFolder folder;
  for (int shard = 0; shard < 20; ++shard) {
    folder.write(fmt::format("{:02}.tar", shard), test::plain_tar(9, fmt::format("s{}-", shard)));
  }
  const SourcePtr source =
      source::webdataset((folder / "{00..19}.tar").string(), shards_in_memory());
  const std::vector<std::string> in_turn = describe_all(source);
  ASSERT_EQ(in_turn.size(), 180U);
  std::atomic<int> different{0};
  {
    std::vector<std::jthread> readers;
    for (unsigned seed = 0; seed < 4; ++seed) {
      readers.emplace_back([&, seed] {
        std::mt19937 draw(seed);
        Record record;
        for (int i = 0; i < 1000; ++i) {
          const std::uint64_t number = draw() % source->size();
          if (test::describe(*source, number, record) != in_turn[number]) ++different;
        }
      });
    }
  }
  EXPECT_EQ(different, 0);
}

TEST(WebDataset, RefusesRecordsLargerThanAllowed) {
  const TemporaryFolder folder;
  const auto path = folder.write(
      "a.tar", tar_member("a.jpg", std::string(5000, 'x')) + tar_member("b.jpg", "B") + tar_end());
  WebDatasetOptions options = shards_in_memory({{.name = "i", .extensions = {"jpg"}}});
  options.max_record_bytes = 5000;
  const SourcePtr source = source::webdataset(path, options);
  Record record;
  auto large = source->read(0, record);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.fault().reason, HasSubstr("more than max_record_bytes = 5000"));
  EXPECT_TRUE(source->read(1, record));
  record.set_limit(100);
  record.reset(0);
  auto over = source::webdataset(path, shards_in_memory({{.name = "i", .extensions = {"jpg"}}}))
                  ->read(0, record);
  ASSERT_FALSE(over);
  EXPECT_THAT(over.fault().reason, HasSubstr("budget"));
  EXPECT_EQ(over.fault().file, path.string() + ": a");
}

TEST(WebDataset, RefusesOptionsThatCannotBe) {
  const std::string shard = test::project_path("tests/source/golden/webdataset.tar");
  const auto refused = [&](WebDatasetOptions options, std::string_view why) {
    EXPECT_THAT([&] { (void)source::webdataset(shard, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(std::string(why))));
  };
  refused(shards_in_memory({}), "no fields");
  refused(shards_in_memory({{.name = "", .extensions = {"jpg"}}}), "no name");
  refused(shards_in_memory({{.name = "a", .extensions = {}}}), "no extensions");
  refused(shards_in_memory({{.name = "a", .extensions = {"."}}}), "expected an extension");
  refused(
      shards_in_memory(
          {{.name = "a", .extensions = {"jpg"}, .type = static_cast<WebDatasetField::Type>(7)}}),
      "webdataset: type: expected one of bytes, integer, found the number 7");
  for (const char* list : {"png,jpg", "png;jpg", "png|jpg"})
    refused(shards_in_memory({{.name = "a", .extensions = {list}}}),
            std::string("field 'a': '") + list +
                "' is no extension: of several give a list, such as [\"jpg\", \"png\"]");
  refused(
      shards_in_memory({{.name = "a", .extensions = {"b"}}, {.name = "a", .extensions = {"c"}}}),
      "two fields");
  refused(shards_in_memory(std::vector<Field>(17, {.name = "a", .extensions = {"b"}})),
          "two fields");
  WebDatasetOptions none = shards_in_memory();
  none.max_record_bytes = 0;
  refused(none, "max_record_bytes");
  WebDatasetOptions negative = shards_in_memory();
  negative.index.threads = -1;
  refused(negative, "threads");
}

TEST(WebDataset, SaysWhatIsNotATarFile) {
  const TemporaryFolder folder;
  const auto gzip = folder.write("a.tar", "\x1F\x8B\x08 and so on");
  EXPECT_THAT([&] { (void)source::webdataset(gzip, shards_in_memory()); },
              ThrowsMessage<Error>(HasSubstr("compressed with gzip")));
  EXPECT_THAT([&] { (void)source::webdataset((folder / "none.tar").string(), shards_in_memory()); },
              ThrowsMessage<Error>(HasSubstr("found nothing")));
  std::filesystem::create_directory(folder / "folder.tar");
  EXPECT_THAT(
      [&] { (void)source::webdataset((folder / "folder.tar").string(), shards_in_memory()); },
      ThrowsMessage<Error>(HasSubstr("no shards in")));
  EXPECT_THAT(samples("what is this?"), ElementsAre(HasSubstr("cut off")));
  EXPECT_THAT(samples(std::string(5000, 'x')), ElementsAre(HasSubstr("damaged tar header")));
}

TEST(TarWriter, WritesWhatIsReadAndTheSameEachTime) {
  const TemporaryFolder folder;
  const std::string long_name = std::string(200, 'l') + ".jpg";
  const auto write = [&](std::string_view name) {
    TarWriter shard(folder / name);
    for (const auto& [member, data] :
         std::vector<std::pair<std::string, std::string>>{{"a.jpg", std::string(512, 'A')},
                                                          {"a.cls", "1"},
                                                          {long_name, "L"},
                                                          {std::string(200, 'l') + ".cls", "2"}}) {
      shard.add(member, std::as_bytes(std::span(data)));
    }
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << "before finish()";
    const std::uint64_t bytes = shard.bytes();
    shard.finish();
    EXPECT_EQ(std::filesystem::file_size(folder / name), bytes);
    EXPECT_THROW(shard.add("b.jpg", {}), std::logic_error);
  };
  write("one.tar");
  write("two.tar");
  EXPECT_EQ(test::read_text(folder / "one.tar"), test::read_text(folder / "two.tar"));
  const SourcePtr source = source::webdataset(folder / "one.tar", shards_in_memory());
  EXPECT_THAT(describe_all(source),
              ElementsAre("image=" + std::string(512, 'A') + ";label=1 ;", "image=L;label=2 ;"));
  EXPECT_EQ(source->info(1).key, std::string(200, 'l'));
}

TEST(TarWriter, LeavesNothingOfAFileThatIsNotFinished) {
  const TemporaryFolder folder;
  {
    TarWriter shard(folder / "a.tar");
    shard.add("a.jpg", {});
    EXPECT_THROW(shard.add("", {}), std::invalid_argument);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT([&] { TarWriter(folder / "no/such/a.tar"); },
              ThrowsMessage<Error>(HasSubstr("cannot create")));
}

}  // namespace
}  // namespace penstock
