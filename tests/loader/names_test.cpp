// What the rows of a batch are called and where their records are stored: for every source, and behind mixes, replacements,
// masks and several replicas.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock::names_test {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;

// A folder of its own.
class Names : public testing::Test {
 protected:
  Names()
      : folder_(fs::path(testing::TempDir()) /
                ("penstock_names_" +
                 std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Names() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view contents) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path.string();
  }
  // The bytes at the place that a name says.
  static std::string at(const RecordName& name, std::size_t bytes) {
    std::ifstream file(name.file, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(name.offset));
    std::string found(bytes, '\0');
    file.read(found.data(), static_cast<std::streamsize>(bytes));
    return found;
  }

  fs::path folder_;
};

std::vector<std::string> keys_of(const std::vector<RecordName>& names) {
  std::vector<std::string> keys;
  for (const RecordName& name : names) keys.push_back(name.key);
  return keys;
}

// The rows of the first step, and what the data set says of each sample.
std::vector<RecordName> first_names(const Dataset& dataset, std::uint64_t rows) {
  Loader loader = dataset.batch(rows).loader();
  const auto step = loader.next();
  std::vector<RecordName> names = step->names();
  EXPECT_EQ(names.size(), step->samples().size());
  for (std::size_t row = 0; row < names.size(); ++row) {
    EXPECT_EQ(names[row], dataset.name(step->samples()[row]));
    EXPECT_EQ(names[row].key, dataset.source().info(step->samples()[row].number).key);
  }
  return names;
}

Dataset folder_of(const fs::path& path) {
  return image_folder(path).map(pad({.field = "image", .to = 16}));
}

TEST_F(Names, OfAFolderAreFiles) {
  write("photos/a/1.jpg", "first");
  write("photos/b/2.jpg", "second");
  write("photos/b/3\xFF.jpg", "third");
  const auto names = first_names(folder_of(folder_ / "photos"), 3);
  EXPECT_THAT(keys_of(names), ElementsAre("a/1.jpg", "b/2.jpg", "b/3\xFF.jpg"));
  EXPECT_EQ(names[1].file, (folder_ / "photos/b/2.jpg").string());
  EXPECT_EQ(at(names[2], 5), "third");
  EXPECT_EQ(names[1].to_string(),
            "b/2.jpg in " + (folder_ / "photos/b/2.jpg").string() + " at byte 0");
}

TEST_F(Names, OfShardsSayTheByte) {
  TarWriter tar(folder_ / "s-0.tar");
  TfRecordWriter records(folder_ / "s.tfrecord");
  for (int number = 0; number < 3; ++number) {
    const std::string image = "image " + std::to_string(number);
    const std::string label = std::to_string(number);
    tar.add("sample" + label + ".cls", std::as_bytes(std::span(label)));
    tar.add("sample" + label + ".jpg", std::as_bytes(std::span(image)));
    ExampleWriter example;
    example.add_bytes("image/encoded", std::as_bytes(std::span(image)));
    const std::int64_t value = number;
    example.add_integers("image/class/label", {&value, 1});
    const std::string message = example.encode();
    records.add(std::as_bytes(std::span(message)));
  }
  tar.finish();
  records.finish();
  const auto padded = [](const Dataset& dataset) {
    return dataset.map(pad({.field = "image", .to = 16}));
  };
  const auto members = first_names(padded(webdataset((folder_ / "s-0.tar").string())), 3);
  EXPECT_THAT(keys_of(members), ElementsAre("sample0", "sample1", "sample2"));
  EXPECT_EQ(at(members[2], 7), "image 2") << "the member of the first field, not the first member";
  const auto examples = first_names(padded(tfrecord((folder_ / "s.tfrecord").string())), 3);
  EXPECT_THAT(keys_of(examples), ElementsAre("s.tfrecord:0", "s.tfrecord:1", "s.tfrecord:2"));
  EXPECT_THAT(at(examples[2], 60), HasSubstr("image 2"));
  EXPECT_EQ(examples[1].file, (folder_ / "s.tfrecord").string());
}

TEST_F(Names, OfArraysSayTheByteInEachFile) {
  const std::string x = write("x.raw", "..aabbccdd");
  const std::string y = write("y.raw", "0123");
  const Dataset both =
      arrays({{.name = "x", .path = x, .dtype = DType::u8, .shape = {2}, .offset = 2},
              {.name = "y", .path = y, .dtype = DType::u8}});
  const auto names = first_names(both, 4);
  ASSERT_EQ(names[2].pieces.size(), 2U);
  EXPECT_EQ(at(names[2].pieces[0], 2), "cc");
  EXPECT_EQ(at(names[2].pieces[1], 1), "2");
  EXPECT_EQ(at(names[2], 2), "cc") << "the first one's";
  EXPECT_TRUE(
      first_names(arrays({{.name = "y", .path = y, .dtype = DType::u8}}), 4)[3].pieces.empty());
  EXPECT_EQ(first_names(numbers(5), 4)[3], (RecordName{.key = "number 3"}));
}

TEST_F(Names, OfPackedRowsAreThePiecesOfDocuments) {
  // Documents end with 0: 3, 4, 2 and 6 tokens.
  const std::string path = write(
      "t.bin", std::string("\1\0\2\0\0\0\3\0\4\0\5\0\0\0\6\0\0\0\7\0\7\0\7\0\7\0\7\0\0\0", 30));
  const Dataset documents =
      token_files(path, {.document_end = 0, .index = {.location = IndexLocation::memory}});
  const auto rows = first_names(documents.pack({.length = 7, .method = PackMethod::wrap}), 2);
  ASSERT_EQ(rows[0].pieces.size(), 2U);
  ASSERT_EQ(rows[1].pieces.size(), 2U);
  EXPECT_EQ(rows[0].key, "row 0");
  EXPECT_EQ(at(rows[0].pieces[1], 2), std::string("\3\0", 2));
  EXPECT_EQ(rows[1].pieces[1].key, path + " document 3");
  EXPECT_EQ(rows[1].pieces[1].begin, 0U);
  EXPECT_EQ(rows[1].pieces[1].length, 5U);
  EXPECT_EQ(rows[1].file, path);
  EXPECT_EQ(at(rows[1], 2), std::string("\6\0", 2));
  EXPECT_THAT(rows[1].to_string(), HasSubstr("row 1: " + path + " document 2, tokens 0 to 1 in"));

  const auto blocks = first_names(documents.blocks({.length = 5}), 2);
  ASSERT_EQ(blocks[1].pieces.size(), 3U);  // tokens 5 to 9
  EXPECT_EQ(blocks[1].pieces[0].begin, 2U);
  EXPECT_EQ(blocks[1].pieces[0].length, 2U);
  EXPECT_THAT(blocks[1].pieces[0].to_string(),
              HasSubstr(", tokens 2 to 3 in " + path + ", where the document begins at byte " +
                        std::to_string(blocks[1].pieces[0].offset)));
  EXPECT_EQ(blocks[1].pieces[1].length, 2U);
  EXPECT_EQ(blocks[1].pieces[2].length, 1U);
  EXPECT_EQ(first_names(documents.map(pad({.field = "tokens", .to = 8})), 2)[1].key,
            path + " document 1");
}

TEST_F(Names, OfJoinedDataSetsAreThoseOfEach) {
  write("photos/1.jpg", "photo");
  write("masks/1.png", "mask");
  const Dataset pairs =
      zip({folder_of(folder_ / "photos"), image_folder(folder_ / "masks")
                                              .rename({{"image", "mask"}, {"label", "other"}})
                                              .map(pad({.field = "mask", .to = 16}))});
  const auto names = first_names(pairs, 1);
  EXPECT_EQ(names[0].key, "1.jpg");
  ASSERT_EQ(names[0].pieces.size(), 2U);
  EXPECT_EQ(names[0].pieces[1].file, (folder_ / "masks/1.png").string());

  auto one = fake(6);
  auto other = fake(6);
  other->name = "other";
  const Dataset mixed = mix({Dataset(one).shuffle(), Dataset(other).shuffle()}, {.seed = 4});
  Loader loader = mixed.batch(4).repeat(2).loader();
  std::uint64_t others = 0;
  while (const auto step = loader.next()) {
    const auto found = step->names();
    for (std::size_t row = 0; row < found.size(); ++row) {
      const SampleId& sample = step->samples()[row];
      EXPECT_EQ(found[row].key,
                (sample.source == 1 ? "other/" : "fake/") + std::to_string(sample.number));
      EXPECT_EQ(found[row], mixed.name(sample));
      others += sample.source;
    }
  }
  EXPECT_GT(others, 0U);
  EXPECT_THAT([&] { (void)mixed.name({.number = 0, .source = 2}); },
              ThrowsMessage<std::out_of_range>(HasSubstr("the plan has 2 sources")));
  EXPECT_THAT([&] { (void)mixed.name({.number = 6, .source = 1}); },
              ThrowsMessage<std::out_of_range>(HasSubstr("source 1 has 6 records")));
}

TEST_F(Names, OfReplacedAndMaskedRowsSayWhatWasDrawn) {
  const auto plan = [](std::set<std::uint64_t> bad) {
    auto source = fake(500);
    source->bad = std::move(bad);
    return Dataset(source)
        .shuffle({.seed = 3})
        .batch(30, {.uneven = true})
        .prefetch_to_devices(host_devices(4));
  };
  std::set<std::uint64_t> bad;
  for (std::uint64_t number = 0; number < 500; number += 5) bad.insert(number);
  for (const OnFault policy : {OnFault::replace, OnFault::mask}) {
    Loader clean = plan({}).loader();
    Loader loader = plan(bad).loader({.on_fault = policy, .threads = 2});
    std::uint64_t replaced = 0;
    while (const auto step = loader.next()) {
      const auto drawn = clean.next();
      const auto originals = step->original_names();
      EXPECT_EQ(originals, drawn->names());
      EXPECT_TRUE(std::ranges::equal(step->original_samples(), drawn->samples()));
      const auto names = step->names();
      std::size_t row = 0;
      for (const DeviceBatch& part : *step) {
        const auto own = part.names();
        const auto own_originals = part.original_names();
        ASSERT_EQ(own.size(), part.samples().size());
        for (std::size_t k = 0; k < own.size(); ++k, ++row) {
          EXPECT_EQ(own[k], names[row]);
          EXPECT_EQ(own_originals[k], originals[row]);
          EXPECT_EQ(own[k].key, "fake/" + std::to_string(part.samples()[k].number));
          replaced += own[k] != own_originals[k];
        }
      }
      EXPECT_EQ(row, names.size());
    }
    EXPECT_EQ(replaced, policy == OnFault::replace ? bad.size() : 0U);
  }
}

TEST_F(Names, OutliveTheLoaderAndPaddingHasNone) {
  std::optional<Step> step;
  {
    Loader loader = Dataset(fake(5)).batch(8, {.remainder = Remainder::pad}).loader();
    step = loader.next();
  }
  EXPECT_EQ((*step)[0].size(), 8U);
  EXPECT_THAT(keys_of((*step)[0].names()),
              ElementsAre("fake/0", "fake/1", "fake/2", "fake/3", "fake/4"));
}

}  // namespace
}  // namespace penstock::names_test
