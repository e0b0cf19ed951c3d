// An index changes nothing but the time that decoding takes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/decode_image.hpp>

#include "tests/jpeg/images.hpp"

namespace penstock {
namespace {

using namespace testing_images;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Decoded {
  std::vector<std::uint8_t> pixels;
  std::string fault;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

Decoded decode(const TransformPtr& transform, const Bytes& bytes, std::uint64_t number, int side) {
  Decoded result{std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3)), {}};
  const ConstTensorView in(bytes.data(), DType::u8, {std::ssize(bytes)});
  const std::vector<TensorView> out{
      {reinterpret_cast<std::byte*>(result.pixels.data()), DType::u8, {side, side, 3}}};
  Random random(RandomKey(3, 1), SampleId{.number = number});
  auto done = transform->apply(std::span(&in, 1), out, random);
  if (!done) {
    result.fault = done.fault().reason;
    result.pixels.clear();
  }
  return result;
}

constexpr int kSide = 24;

class Indexed {
 public:
  explicit Indexed(JpegDecoder decoder = JpegDecoder::fast,
                   std::shared_ptr<MemoryJpegIndex> index = std::make_shared<MemoryJpegIndex>())
      : index_(std::move(index)),
        transform_(decode_image({.crop = random_resized_crop(kSide),
                                 .decoder = decoder,
                                 .index = index_,
                                 .stats = stats_})) {}
  Decoded operator()(const Bytes& bytes, std::uint64_t number) {
    return decode(transform_, bytes, number, kSide);
  }
  MemoryJpegIndex& index() { return *index_; }
  [[nodiscard]] JpegCounts counts() const { return stats_->counts(); }

 private:
  std::shared_ptr<MemoryJpegIndex> index_;
  std::shared_ptr<JpegStats> stats_ = std::make_shared<JpegStats>();
  TransformPtr transform_;
};

Decoded without_index(const Bytes& bytes, std::uint64_t number,
                      JpegDecoder decoder = JpegDecoder::libjpeg) {
  static const auto make = [](JpegDecoder which) {
    return decode_image({.crop = random_resized_crop(kSide), .decoder = which});
  };
  static const TransformPtr kFast = make(JpegDecoder::fast);
  static const TransformPtr kReference = make(JpegDecoder::reference);
  static const TransformPtr kLibjpeg = make(JpegDecoder::libjpeg);
  return decode(decoder == JpegDecoder::fast        ? kFast
                : decoder == JpegDecoder::reference ? kReference
                                                    : kLibjpeg,
                bytes, number, kSide);
}

std::vector<Bytes> files() {
  std::vector<Bytes> all;
  const Pixels pixels = picture(403, 309);
  for (const int restart : {0, 4, 9, 500}) {
    for (const auto& luma : {std::array{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}})
      all.push_back(jpeg_of(pixels, {.sampling = {luma, {1, 1}, {1, 1}}, .restart = restart}));
    all.push_back(jpeg_of(picture(403, 309, 1), {.input = JCS_GRAYSCALE,
                                                 .stored = JCS_GRAYSCALE,
                                                 .sampling = {{2, 2}},
                                                 .restart = restart}));
  }
  return all;
}

class JpegIndexWith : public testing::TestWithParam<std::uint32_t> {
 protected:
  JpegIndexWith() { index_->set_options({.entry_bits = GetParam()}); }

  const std::shared_ptr<MemoryJpegIndex> index_ = std::make_shared<MemoryJpegIndex>();
};

INSTANTIATE_TEST_SUITE_P(EntryBits, JpegIndexWith, testing::Values(0, 1, 300, 2048));

TEST_P(JpegIndexWith, ChangesNoPixel) {
  for (const JpegDecoder decoder : {JpegDecoder::fast, JpegDecoder::reference}) {
    const auto index = std::make_shared<MemoryJpegIndex>();
    index->set_options({.entry_bits = GetParam()});
    Indexed indexed(decoder, index);
    const auto all = files();
    constexpr std::uint64_t kEpochs = 12;
    for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
      for (const Bytes& file : all)
        ASSERT_EQ(indexed(file, epoch), without_index(file, epoch, decoder)) << epoch;
    EXPECT_EQ(indexed.index().size(), all.size());
    EXPECT_EQ(indexed.counts().own, kEpochs * all.size());
    EXPECT_EQ(indexed.counts().indexed, (kEpochs - 1) * all.size());
  }
}

TEST_P(JpegIndexWith, FindsTheSameFaults) {
  std::mt19937 random(21);
  Indexed indexed(JpegDecoder::fast, index_);
  int faults = 0;
  int indexed_faults = 0;
  for (const Bytes& file : files()) {
    for (int i = 0; i < 40; ++i) {
      Bytes bad = file;
      if (i % 3 == 0) {
        bad.resize(600 + random() % (bad.size() - 600));
      } else {
        for (std::uint32_t n = 1 + random() % 3; n > 0; --n)
          bad[600 + random() % (bad.size() - 600)] = static_cast<std::byte>(random());
      }
      for (std::uint64_t number = 0; number < 4; ++number) {
        const auto before = indexed.counts().indexed;
        const Decoded expected = without_index(bad, number);
        ASSERT_EQ(indexed(bad, number), expected) << i << " " << number;
        faults += !expected.fault.empty();
        indexed_faults += !expected.fault.empty() && indexed.counts().indexed != before;
      }
    }
  }
  EXPECT_GT(faults, 200);
  EXPECT_EQ(indexed_faults, 0);
  EXPECT_GT(indexed.counts().indexed, 200U) << "what is above the damage has an index";
}

TEST(JpegIndex, OfRestartIntervalsWithinRowsSaysLittleMoreThanThatAllIsInOrder) {
  for (const int restart : {0, 4, 9, 500}) {
    const Bytes file = jpeg_of(picture(403, 309), {.restart = restart});
    const auto index = build_jpeg_index(file);
    ASSERT_TRUE(index);
    EXPECT_EQ(index->valid_mcus, 51U * 39);
    if (restart == 4 || restart == 9) {
      EXPECT_EQ(index->entries.size(), 1U);
      EXPECT_LT(index->to_bytes().size(), 24U);
    } else {
      EXPECT_GT(index->entries.size(), 30U);
    }
  }
}

TEST(JpegIndex, HasEntriesAsDenseAsIsAskedFor) {
  for (const Bytes& file : files())
    for (const std::uint32_t bits : {300U, 2048U}) {
      const auto index = build_jpeg_index(file, {.entry_bits = bits});
      ASSERT_TRUE(index);
      EXPECT_EQ(JpegIndex::from_bytes(index->to_bytes()), index);
      const auto bit_of = [](const JpegIndex::Entry& entry) {
        return std::uint64_t{8} * entry.byte + entry.bit;
      };
      std::uint64_t far = 0;
      for (std::size_t i = 1; i < index->entries.size(); ++i) {
        const JpegIndex::Entry& entry = index->entries[i];
        const JpegIndex::Entry& before = index->entries[i - 1];
        ASSERT_GT(entry.mcu, before.mcu);
        // Bytes are those of the file, and MCUs are not all of a length.
        if (entry.mcu > before.mcu + 1 && bit_of(entry) - bit_of(before) > bits * 5 / 4) ++far;
      }
      EXPECT_GT(index->entries.size(), 400U);
      EXPECT_LT(far, index->entries.size() / 4);
    }
}

TEST_P(JpegIndexWith, LearnedBeforehandIsThatOfTheFirstDecoding) {
  for (const Bytes& file : files()) {
    Indexed indexed(JpegDecoder::fast, index_);
    (void)indexed(file, 0);
    const auto built = build_jpeg_index(file, {.entry_bits = GetParam()});
    ASSERT_TRUE(built);
    const auto kept = indexed.index().find(JpegKey::of(file));
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(*built, *kept);
  }
  const JpegIndexOptions options{.entry_bits = GetParam()};
  EXPECT_EQ(build_jpeg_index({}, options), std::nullopt);
  EXPECT_EQ(build_jpeg_index(jpeg_of(picture(403, 309), {.progressive = true}), options),
            std::nullopt);
  Bytes cut = jpeg_of(picture(403, 309), {.restart = 9});
  cut.resize(cut.size() / 2);
  const auto part = build_jpeg_index(cut, options);
  ASSERT_TRUE(part);
  EXPECT_GT(part->valid_mcus, 51U * 10);
  EXPECT_LT(part->valid_mcus, 51U * 30);
}

// Pixels may be wrong where an index lies about damage, never where the markers are out of order.
TEST(JpegIndex, IsRefusedWhereTheMarkersAreNotInOrder) {
  const Bytes file = jpeg_of(picture(403, 309), {.restart = 9});
  const auto index = build_jpeg_index(file);
  ASSERT_TRUE(index);
  int markers = 0;
  for (std::size_t i = 700; i + 1 < file.size(); ++i) {
    if (file[i] != std::byte{0xFF} || (file[i + 1] & std::byte{0xF8}) != std::byte{0xD0}) continue;
    if (++markers % 16 != 1) continue;
    for (const std::byte other : {std::byte{0xD9}, std::byte{0xFF}, file[i + 1] ^ std::byte{1}}) {
      Bytes bad = file;
      bad[i + 1] = other;
      Indexed indexed;
      indexed.index().put(JpegKey::of(bad), *index);
      for (std::uint64_t number = 0; number < 3; ++number)
        EXPECT_EQ(indexed(bad, number), without_index(bad, number)) << i;
    }
  }
  EXPECT_GT(markers, 200);
}

TEST(JpegIndex, IsNotTakenForOtherBytes) {
  Indexed indexed;
  Bytes file = jpeg_of(picture(403, 309), {});
  EXPECT_EQ(indexed(file, 1), without_index(file, 1));
  const Bytes other = jpeg_of(picture(403, 309, 3, 2), {});
  EXPECT_EQ(indexed(other, 1), without_index(other, 1));
  EXPECT_EQ(indexed.counts().indexed, 0U);
  EXPECT_EQ(indexed.index().size(), 2U);
}

TEST(JpegIndex, IsLearnedAnewWhereItIsAnotherImages) {
  const Bytes file = jpeg_of(picture(403, 309), {});
  const Bytes like = jpeg_of(picture(403, 309, 3, 9), {});
  const Bytes small = jpeg_of(picture(160, 150), {});
  for (const Bytes& other : {like, small}) {
    Indexed indexed;
    (void)indexed(other, 0);
    const auto wrong = indexed.index().find(JpegKey::of(other));
    ASSERT_NE(wrong, nullptr);
    indexed.index().put(JpegKey::of(file), *wrong);
    EXPECT_EQ(indexed(file, 2), without_index(file, 2));
    ASSERT_NE(*indexed.index().find(JpegKey::of(file)), *wrong);
    const auto before = indexed.counts().indexed;
    EXPECT_EQ(indexed(file, 3), without_index(file, 3));
    EXPECT_EQ(indexed.counts().indexed, before + 1);
  }
}

// Pixels may be wrong then: only a checksum guards against that. Memory is not.
TEST(JpegIndex, LeadsNowhereHoweverWrong) {
  std::mt19937 random(22);
  for (const Bytes& file : files()) {
    Indexed indexed;
    (void)indexed(file, 0);
    const JpegKey key = JpegKey::of(file);
    ASSERT_NE(indexed.index().find(key), nullptr);
    const JpegIndex right = *indexed.index().find(key);
    for (int i = 0; i < 40; ++i) {
      JpegIndex wrong = right;
      for (std::uint32_t n = 1 + random() % 5; n > 0; --n) {
        auto& entry = wrong.entries[random() % wrong.entries.size()];
        switch (random() % 5) {
          case 0:
            entry.mcu = random() % (2 * wrong.valid_mcus);
            break;
          case 1:
            entry.byte = random() % 4 == 0 ? random() : random() % wrong.scan_bytes;
            break;
          case 2:
            entry.bit = random() % 256;
            break;
          case 3:
            entry.dc[random() % 3] = static_cast<std::int16_t>(random());
            break;
          default:
            wrong.valid_mcus = random();
        }
      }
      indexed.index().put(key, wrong);
      EXPECT_EQ(indexed(file, random()).fault, "");
    }
  }
}

JpegIndex some_index(unsigned seed) {
  std::mt19937 random(seed);
  JpegIndex index{.width = 500,
                  .height = 400,
                  .mcus_per_row = 63,
                  .scan_bytes = 900000,
                  .valid_mcus = 3150,
                  .entries = {{}}};
  for (std::uint32_t row = 1; row < 50; ++row)
    index.entries.push_back({.mcu = row * 63 - static_cast<std::uint32_t>(random() % 8),
                             .byte = row * 15000 + static_cast<std::uint32_t>(random() % 9000),
                             .bit = static_cast<std::uint8_t>(random() % 8),
                             .dc = {static_cast<std::int16_t>(random() % 2000 - 1000),
                                    static_cast<std::int16_t>(random() % 200), -32768}});
  return index;
}

TEST(JpegIndex, ComesBackFromItsBytes) {
  const JpegIndex index = some_index(1);
  const auto bytes = index.to_bytes();
  EXPECT_LT(bytes.size(), 12 * index.entries.size());
  EXPECT_EQ(JpegIndex::from_bytes(bytes), index);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(JpegIndex::from_bytes(std::span(bytes).first(size)), std::nullopt) << size;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(JpegIndex::from_bytes(longer), std::nullopt);
}

TEST(JpegIndex, IsKeptOnADisk) {
  MemoryJpegIndex index;
  for (const char* file : {"s3://bucket/prepared", "s3:/bucket/prepared"}) {
    EXPECT_THAT([&] { (void)index.load(file); }, ThrowsMessage<Error>(HasSubstr("on a disk")));
    EXPECT_THAT([&] { index.save(file); }, ThrowsMessage<Error>(HasSubstr("on a disk")));
  }
}

TEST(JpegIndex, RefusesBytesThatCannotBeOne) {
  const auto bytes = some_index(2).to_bytes();
  std::mt19937 random(23);
  for (int i = 0; i < 20'000; ++i) {
    auto bad = bytes;
    for (std::uint32_t n = 1 + random() % 3; n > 0; --n)
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    const auto index = JpegIndex::from_bytes(bad);
    if (!index) continue;
    ASSERT_FALSE(index->entries.empty());
    ASSERT_EQ(index->entries.front().mcu, 0U);
    for (std::size_t k = 0; k < index->entries.size(); ++k) {
      ASSERT_TRUE(k == 0 || index->entries[k - 1].mcu < index->entries[k].mcu);
      ASSERT_LE(index->entries[k].mcu, index->valid_mcus);
      ASSERT_LE(index->entries[k].byte, index->scan_bytes);
      ASSERT_LT(index->entries[k].bit, 8);
    }
  }
}

TEST(MemoryJpegIndex, TakesNoMoreThanItMay) {
  MemoryJpegIndex index(10'000);
  for (unsigned i = 0; i < 100; ++i) {
    index.put({.size = i, .hash = {i, i}}, some_index(i));
    EXPECT_LE(index.bytes(), 10'000U);
  }
  EXPECT_GT(index.size(), 3U);
  EXPECT_LT(index.size(), 20U);
  const std::size_t full = index.bytes();
  index.put({.size = 0, .hash = {0, 0}}, some_index(0));
  EXPECT_EQ(index.bytes(), full) << "in the place of the one before";
}

class IndexFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("penstock_index_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    for (unsigned i = 0; i < 20; ++i) index_.put(key(i), some_index(i));
    index_.save(file());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static JpegKey key(unsigned i) { return {.size = i, .hash = {i * 77, i}}; }
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "index"; }

  std::string read() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const {
    std::ofstream(file(), std::ios::binary).write(text.data(), std::ssize(text));
  }

  std::filesystem::path folder_;
  MemoryJpegIndex index_;
};

TEST_F(IndexFile, KeepsEverything) {
  MemoryJpegIndex other;
  EXPECT_EQ(other.load(file()), 20U);
  for (unsigned i = 0; i < 20; ++i) {
    ASSERT_NE(other.find(key(i)), nullptr);
    EXPECT_EQ(*other.find(key(i)), some_index(i));
  }
  EXPECT_THAT([&] { (void)other.load(folder_ / "none"); },
              ThrowsMessage<Error>(HasSubstr("no such file or folder of JPEG indices")));
}

TEST_F(IndexFile, OfAFolderAreAllThatAreCalledSo) {
  MemoryJpegIndex more;
  for (unsigned i = 15; i < 30; ++i) more.put(key(i), some_index(i));
  more.save(folder_ / "b.jpegindex");
  index_.save(folder_ / "a.jpegindex");
  write("something else");
  MemoryJpegIndex all;
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { EXPECT_EQ(all.load(folder_), 35U); });
  EXPECT_EQ(all.size(), 30U);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().what, "reading the JPEG indices of " + folder_.string());
  EXPECT_EQ(told.back().done, 2U);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT([&] { interruptible(stop.get_token(), [&] { (void)all.load(folder_); }); },
              ThrowsMessage<Error>(HasSubstr("the work was stopped")));
  MemoryJpegIndex none;
  std::filesystem::create_directories(folder_ / "empty.jpegindex");
  EXPECT_THAT([&] { (void)none.load(folder_ / "empty.jpegindex"); },
              ThrowsMessage<Error>(HasSubstr("no *.jpegindex file in this folder")));
}

TEST_F(IndexFile, WhatIsNewIsTakenOnce) {
  EXPECT_THAT(index_.take_new(), testing::IsEmpty());
  for (unsigned i = 18; i < 25; ++i) index_.put(key(i), some_index(i));
  const std::vector<std::byte> taken = index_.take_new();
  MemoryJpegIndex other;
  EXPECT_EQ(other.load_bytes(taken, "taken"), 5U);  // the others were there
  for (unsigned i = 20; i < 25; ++i) {
    ASSERT_NE(other.find(key(i)), nullptr);
    EXPECT_EQ(*other.find(key(i)), some_index(i));
  }
  EXPECT_THAT(index_.take_new(), testing::IsEmpty());
  EXPECT_EQ(index_.size(), 25U);
  index_.put(key(1), some_index(2));
  EXPECT_EQ(other.load_bytes(index_.take_new(), "changed"), 1U);
  EXPECT_EQ(*other.find(key(1)), some_index(2));
}

TEST_F(IndexFile, GivesNothingThatIsDamaged) {
  const std::string good = read();
  std::mt19937 random(24);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    if (i % 4 == 0)
      bad.resize(22 + random() % (bad.size() - 22));
    else
      bad[22 + random() % (bad.size() - 22)] ^= static_cast<char>(1U << random() % 8);
    write(bad);
    MemoryJpegIndex other;
    const std::size_t loaded = other.load(file());
    EXPECT_LT(loaded, 20U);
    std::size_t right = 0;
    for (unsigned k = 0; k < 20; ++k) {
      const auto found = other.find(key(k));
      if (found == nullptr) continue;
      EXPECT_EQ(*found, some_index(k));
      ++right;
    }
    EXPECT_EQ(right, loaded);
  }
  write("");
  EXPECT_EQ(MemoryJpegIndex().load(file()), 0U);
}

TEST_F(IndexFile, RefusesAnotherVersionByName) {
  index_.save(file());
  std::ifstream in(file(), std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = bytes.find('1');
  ASSERT_EQ(bytes.substr(0, at + 2), "penstock jpeg index 1\n");
  for (const char version : {'0', '2', '9'}) {
    bytes[at] = version;
    write(bytes);
    MemoryJpegIndex other;
    EXPECT_THAT([&] { other.load(file()); },
                ThrowsMessage<Error>(AllOf(HasSubstr(file().string()),
                                           HasSubstr(std::string("version ") + version),
                                           HasSubstr("expected version 1"))));
    EXPECT_THAT([&] { other.load_bytes(std::as_bytes(std::span(bytes)), "taken"); },
                ThrowsMessage<Error>(HasSubstr("taken: ")));
    EXPECT_EQ(other.size(), 0U);
  }
}

TEST_F(IndexFile, RefusesAnotherFile) {
  write("something else, and long enough to be read");
  MemoryJpegIndex other;
  EXPECT_THAT([&] { other.load(file()); }, ThrowsMessage<Error>(HasSubstr("name another one")));
  EXPECT_THAT([&] { index_.save(folder_ / "no" / "such"); },
              ThrowsMessage<Error>(HasSubstr("cannot create")));
}

}  // namespace
}  // namespace penstock
