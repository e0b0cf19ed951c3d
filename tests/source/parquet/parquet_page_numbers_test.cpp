// Numbers of a few rows that are read without the rest of their page: from pages made by hand, of every kind, against the page when it
// is decoded as a whole.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/source/parquet/codec.hpp"
#include "src/source/parquet/page_numbers.hpp"
#include "src/source/parquet/table_file.hpp"
#include "tests/sanitized.hpp"
#include "tests/source/parquet/thrift_text.hpp"

namespace penstock {
namespace {

using source::IndexedLengths;
using source::IndexedPage;
using source::LabelState;
using source::PageNumbers;
using source::ParquetChunk;
using source::ParquetCodec;
using source::ParquetLeaf;
using source::ParquetValues;
using source::ShardIndex;
using test::fixed32;
using test::ThriftText;
using test::varint;
using ::testing::HasSubstr;

constexpr std::size_t kBlock = 65536;
constexpr std::int64_t kPlain = 0;
constexpr std::int64_t kDictionary = 8;
constexpr std::uint64_t kPageBegin = 1000;  // in its file

struct PageShape {
  bool is_packed = false;
  bool is_second = false;  // a DATA_PAGE_V2
  bool is_plain = false;
  bool has_lengths = false;  // of its rows, by the index; all rows have the same otherwise
  std::size_t width = 4;
  std::size_t most_groups = 63;  // of a bit-packed run, by 8 numbers
  unsigned index_bits = 13;
  std::size_t values = 300'000;  // about
};

// Literals, none of which is in two blocks: at once what compressors write of what they cannot compress.
std::string snappy_of(const std::string& raw) {
  std::string text = varint(raw.size());
  for (std::size_t at = 0; at < raw.size(); at += kBlock) {
    const std::string block = raw.substr(at, kBlock);
    const std::size_t last = block.size() - 1;
    text += static_cast<char>(61 << 2);  // two bytes have the length
    text += static_cast<char>(last);
    text += static_cast<char>(last >> 8);
    text += block;
  }
  return text;
}

// Runs of the numbers, each of one kind by chance.
std::string hybrid_of(const std::vector<std::uint32_t>& numbers, unsigned bits,
                      std::size_t most_groups, std::mt19937_64& random) {
  std::string out;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t same = 1;
    while (at + same < numbers.size() && numbers[at + same] == numbers[at]) ++same;
    if (same >= 8) {
      out += varint(same << 1);
      for (unsigned bit = 0; bit < bits; bit += 8) out += static_cast<char>(numbers[at] >> bit);
      at += same;
      continue;
    }
    const std::size_t left = (numbers.size() - at + 7) / 8;
    const std::size_t groups = std::min(left, 1 + random() % most_groups);
    out += varint(groups << 1 | 1);
    std::string packed(groups * bits, '\0');
    for (std::size_t k = 0; k < groups * 8 && at + k < numbers.size(); ++k)
      for (unsigned bit = 0; bit < bits; ++bit) {
        const std::size_t place = k * bits + bit;
        if ((numbers[at + k] >> bit & 1) != 0)
          packed[place / 8] = static_cast<char>(packed[place / 8] | 1 << place % 8);
      }
    out += packed;
    at += groups * 8;
  }
  return out;
}

// A page of lists in a file, the index of its rows' lengths, and what a reader has of it.
class Page {
 public:
  Page(const PageShape& shape, std::mt19937_64& random) : shape_(shape) {
    leaf_.path = "x.list.element";
    leaf_.type = shape.width == 4 ? source::ParquetType::int32 : source::ParquetType::float64;
    leaf_.max_definition = 3;  // 0: no list, 1: no elements, 2: a null
    leaf_.max_repetition = 1;
    chunk_.codec = shape.is_packed ? ParquetCodec::snappy : ParquetCodec::uncompressed;
    draw_rows(random);
    draw_values(random);
    write(random);
    index_ = ShardIndex::of_encoded(ShardIndex::encode(
        source::ShardKind::parquet, {}, contents_.labels[0].values.size(), contents_));
    rows_.emplace(*decode());
  }

  [[nodiscard]] Result<source::ParquetPageRows> decode() const {
    return source::decode_indexed_page(leaf_, chunk_, page_, stored(), dictionary(), "a");
  }
  [[nodiscard]] IndexedLengths lengths() const {
    return {shape_.has_lengths ? index_->labels("lengths") : nullptr, kRowsBefore};
  }
  [[nodiscard]] std::shared_ptr<const PageNumbers> find(const IndexedLengths& lengths) const {
    return source::find_page_numbers(leaf_, chunk_, page_, std::as_bytes(std::span(file_)), *rows_,
                                     lengths);
  }
  [[nodiscard]] std::shared_ptr<const PageNumbers> find() const { return find(lengths()); }
  [[nodiscard]] Result<ParquetValues> read(const PageNumbers& numbers,
                                           const PageNumbers::Range& range,
                                           const std::string& file) const {
    return source::read_page_numbers(
        numbers, range, dictionary(),
        [&](std::uint64_t offset, std::span<std::byte> into) -> Result<void> {
          const std::size_t at = static_cast<std::size_t>(offset - kPageBegin);
          if (at > file.size() || into.size() > file.size() - at) return Fault{.reason = "the end"};
          std::memcpy(into.data(), file.data() + at, into.size());
          return {};
        },
        record_);
  }
  // The bytes of a row's values.
  [[nodiscard]] std::string row(std::size_t number) const {
    const source::ParquetPiece piece = rows_->row(number);
    const auto bytes = rows_->values().bytes.subspan(
        piece.first_value * shape_.width, (piece.last_value - piece.first_value) * shape_.width);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(rows_->rows()); }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::size_t bytes_read() const { return record_.bytes_read(); }

 private:
  static constexpr std::uint64_t kRowsBefore = 5;

  [[nodiscard]] std::shared_ptr<const std::byte[]> stored() const {
    auto bytes = std::make_shared<std::byte[]>(file_.size());
    std::memcpy(bytes.get(), file_.data(), file_.size());
    return bytes;
  }
  [[nodiscard]] const ParquetValues* dictionary() const {
    return shape_.is_plain ? nullptr : &dictionary_;
  }

  void draw_rows(std::mt19937_64& random) {
    const std::size_t same = 1 + random() % 900;
    contents_.labels = {{.name = "lengths", .states = {}, .values = {}}};
    auto& labels = contents_.labels[0];
    labels.states.assign(kRowsBefore, LabelState::known);
    labels.values.assign(kRowsBefore, 3);
    // The end of a list that began in the page before.
    if (!shape_.is_second) values_ = random() % 40;
    for (std::size_t k = 0; k < values_; ++k) levels_.push_back({1, 3});
    while (values_ < shape_.values) {
      std::size_t length = same;
      bool is_null = false;
      if (shape_.has_lengths) {
        length = random() % 5 == 0 ? 0 : random() % 1500;
        is_null = length == 0 && random() % 2 == 0;
      }
      labels.states.push_back(is_null ? LabelState::missing : LabelState::known);
      labels.values.push_back(static_cast<std::int64_t>(length));
      if (length == 0) levels_.push_back({0, is_null ? 0U : 1U});
      for (std::size_t k = 0; k < length; ++k) levels_.push_back({k > 0 ? 1U : 0U, 3});
      values_ += length;
      ++page_.rows;
    }
  }

  void draw_values(std::mt19937_64& random) {
    const std::size_t all = std::size_t{1} << std::min(shape_.index_bits, 16U);
    for (std::size_t k = 0; k < all * shape_.width; ++k)
      dictionary_text_ += static_cast<char>(random());
    dictionary_.count = all;
    dictionary_.width = static_cast<std::uint32_t>(shape_.width);
    dictionary_.bytes = std::as_bytes(std::span(dictionary_text_));
    while (indices_.size() < values_) {
      const auto index = static_cast<std::uint32_t>(random() % all);
      const std::size_t times = random() % 5000 == 0 ? random() % 3000 : 1;
      for (std::size_t k = 0; k < times && indices_.size() < values_; ++k)
        indices_.push_back(index);
    }
  }

  void write(std::mt19937_64& random) {
    std::vector<std::uint32_t> repetitions;
    std::vector<std::uint32_t> definitions;
    for (const auto& [repetition, definition] : levels_) {
      repetitions.push_back(repetition);
      definitions.push_back(definition);
    }
    const std::string repeated = hybrid_of(repetitions, 1, 63, random);
    const std::string defined = hybrid_of(definitions, 2, 63, random);
    std::string encoded;
    if (shape_.is_plain) {
      for (const std::uint32_t index : indices_)
        encoded += dictionary_text_.substr(index * shape_.width, shape_.width);
    } else {
      encoded = static_cast<char>(shape_.index_bits) +
                hybrid_of(indices_, shape_.index_bits, shape_.most_groups, random);
    }
    const auto count = static_cast<std::int64_t>(levels_.size());
    const auto packed = [&](const std::string& raw) {
      return shape_.is_packed ? snappy_of(raw) : raw;
    };
    std::string body;
    std::string raw;
    ThriftText data;
    const std::int64_t encoding = shape_.is_plain ? kPlain : kDictionary;
    if (shape_.is_second) {
      body = repeated + defined + packed(encoded);
      raw = repeated + defined + encoded;
      data = ThriftText()
                 .integer(1, count)
                 .integer(2, count - static_cast<std::int64_t>(values_))
                 .integer(3, static_cast<std::int64_t>(page_.rows))
                 .integer(4, encoding)
                 .integer(5, static_cast<std::int64_t>(defined.size()))
                 .integer(6, static_cast<std::int64_t>(repeated.size()));
    } else {
      raw = fixed32(static_cast<std::uint32_t>(repeated.size())) + repeated +
            fixed32(static_cast<std::uint32_t>(defined.size())) + defined + encoded;
      body = packed(raw);
      data = ThriftText().integer(1, count).integer(2, encoding).integer(3, 3).integer(4, 3);
    }
    file_ = ThriftText()
                .integer(1, shape_.is_second ? 3 : 0)
                .integer(2, static_cast<std::int64_t>(raw.size()))
                .integer(3, static_cast<std::int64_t>(body.size()))
                .part(shape_.is_second ? 8 : 5, data)
                .end() +
            body;
    page_.begin = kPageBegin;
    page_.bytes = file_.size();
  }

  struct Level {
    std::uint32_t repetition;
    std::uint32_t definition;
  };
  PageShape shape_;
  ParquetLeaf leaf_;
  ParquetChunk chunk_;
  IndexedPage page_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
  std::vector<std::uint32_t> indices_;
  std::string dictionary_text_;
  ParquetValues dictionary_;
  source::ShardContents contents_;
  std::optional<ShardIndex> index_;
  std::string file_;
  std::optional<source::ParquetPageRows> rows_;
  mutable Record record_;
};

bool reads_snappy() {
  return std::ranges::count(source::parquet_codecs(), ParquetCodec::snappy) > 0;
}

std::vector<PageShape> shapes() {
  std::vector<PageShape> all;
  for (const bool is_packed : {false, true}) {
    if (is_packed && !reads_snappy()) continue;
    for (const bool is_second : {false, true})
      for (const bool has_lengths : {false, true})
        for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
          const PageShape shape{.is_packed = is_packed,
                                .is_second = is_second,
                                .is_plain = true,
                                .has_lengths = has_lengths,
                                .width = width};
          all.push_back(shape);
          for (const auto& [groups, bits] :
               {std::pair{std::size_t{63}, 13U}, std::pair{std::size_t{1} << 20, 16U},
                std::pair{std::size_t{5000}, 11U}, std::pair{std::size_t{63}, 32U}}) {
            all.push_back(shape);
            all.back().is_plain = false;
            all.back().most_groups = groups;
            all.back().index_bits = bits;
          }
        }
  }
  return all;
}

std::string text_of(const ParquetValues& values) {
  return {reinterpret_cast<const char*>(values.bytes.data()), values.bytes.size()};
}

TEST(ParquetPageNumbers, OfARowAreThoseOfTheWholePage) {
  std::mt19937_64 random(1);
  for (const PageShape& shape : shapes()) {
    const Page page(shape, random);
    const auto numbers = page.find();
    ASSERT_NE(numbers, nullptr);
    EXPECT_LT(numbers->memory_bytes(), page.file().size() / 200);
    std::size_t wrong = 0;
    std::size_t unknown = 0;
    // The last row may go on in another page.
    for (std::size_t row = 0; row + 1 < page.rows();
         row += 1 + random() % (test::kSanitized ? 99 : 9)) {
      const auto range = numbers->find(row, page.lengths());
      const std::string expected = page.row(row);
      if (!range) {
        unknown += expected.empty() ? 0 : 1;
        continue;
      }
      const auto found = page.read(*numbers, *range, page.file());
      wrong += found && !expected.empty() && text_of(*found) == expected ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(unknown, 0U);
  }
}

TEST(ParquetPageNumbers, OfARowReadTheBlocksThatItIsIn) {
  std::mt19937_64 random(2);
  for (const std::size_t groups : {std::size_t{63}, std::size_t{1} << 20}) {
    const Page page({.is_packed = reads_snappy(), .most_groups = groups, .index_bits = 16}, random);
    const auto numbers = page.find();
    ASSERT_NE(numbers, nullptr);
    ASSERT_TRUE(page.read(*numbers, *numbers->find(page.rows() - 2, page.lengths()), page.file()));
    EXPECT_LE(page.bytes_read(), 4 * (kBlock + 8));
    EXPECT_GT(page.file().size(), 5 * kBlock);
  }
}

// Whatever the bytes became, nothing else is read, and it is a fault or as many numbers.
TEST(ParquetPageNumbers, OfADamagedPageAreAFaultOrNumbers) {
  std::mt19937_64 random(3);
  for (const PageShape& shape : shapes()) {
    if (shape.width == 8 || shape.has_lengths) continue;
    const Page page(shape, random);
    const auto numbers = page.find();
    ASSERT_NE(numbers, nullptr);
    for (int round = 0; round < (test::kSanitized ? 10 : 40); ++round) {
      std::string file = page.file();
      const std::size_t flips = 1 + random() % 3000;
      for (std::size_t k = 0; k < flips; ++k)
        file[random() % file.size()] ^= static_cast<char>(1 << random() % 8);
      if (round % 4 == 3) file.resize(random() % file.size());
      const auto range = numbers->find(random() % (page.rows() - 1), page.lengths());
      const auto found = page.read(*numbers, *range, file);
      EXPECT_TRUE(!found || found->bytes.size() == range->count * shape.width);
    }
  }
}

TEST(ParquetPageNumbers, ThatLeadOutsideOfTheDictionaryAreAFault) {
  std::mt19937_64 random(4);
  const Page page({.index_bits = 32}, random);  // of which 16 have a value
  const auto numbers = page.find();
  ASSERT_NE(numbers, nullptr);
  const auto found = page.read(*numbers, *numbers->find(3, page.lengths()),
                               std::string(page.file().size(), '\x7F'));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.fault().reason, HasSubstr("damaged"));
}

TEST(ParquetPageNumbers, AreNotKeptOfSmallPages) {
  std::mt19937_64 random(5);
  EXPECT_EQ(Page({.is_plain = true, .values = 3 * kBlock / 4}, random).find(), nullptr);
}

TEST(ParquetPageNumbers, AreNotKeptWhereTheIndexSaysOtherLengths) {
  std::mt19937_64 random(6);
  const Page page({.is_plain = true, .has_lengths = true}, random);
  const Page other({.is_plain = true, .has_lengths = true}, random);
  EXPECT_NE(page.find(), nullptr);
  EXPECT_EQ(page.find(other.lengths()), nullptr);
  EXPECT_EQ(page.find({}), nullptr);
}

TEST(ParquetPageNumbers, PagesThatAreReadOftenAreDecodedAsAWhole) {
  std::mt19937_64 random(7);
  const Page page({.is_plain = true}, random);
  const auto bytes = std::uint64_t{4} * 300'000;
  // Rows that are far from each other.
  const auto reads_until_whole = [&](std::uint64_t reads_between, std::uint64_t room,
                                     bool is_remote = false) {
    const auto numbers = page.find();
    std::uint64_t read = 0;
    for (std::uint64_t k = 1; k <= 2000; ++k, read += reads_between)
      if (numbers->count_read({100 * (k % 7), read, room, is_remote})) return k;
    return std::uint64_t{0};
  };
  EXPECT_GT(reads_until_whole(1, 10 * bytes), 10U);
  EXPECT_LT(reads_until_whole(1, 10 * bytes), 60U);
  EXPECT_LT(reads_until_whole(1, 10 * bytes, true), 6U);
  // As often as each of 5 pages, and there is room for 10.
  EXPECT_GT(reads_until_whole(5, 10 * bytes), 10U);
  // Of 40 pages, and room for 10.
  EXPECT_EQ(reads_until_whole(40, 10 * bytes), 0U);
  EXPECT_EQ(reads_until_whole(40, 10 * bytes, true), 0U);
  EXPECT_EQ(reads_until_whole(UINT64_MAX / 3, UINT64_MAX), 0U);
}

TEST(ParquetPageNumbers, PagesWhoseRowsComeInOrderAreDecodedAsAWhole) {
  std::mt19937_64 random(8);
  const Page page({.is_plain = true}, random);
  const auto numbers = page.find();
  std::vector<bool> whole;
  for (const std::uint64_t row : {200U, 201U, 202U, 203U, 204U, 230U, 231U, 300U, 500U, 501U})
    whole.push_back(numbers->count_read({.row = row, .number = 100'000 * row, .room = 1}));
  EXPECT_THAT(whole, ::testing::ElementsAre(false, false, false, true, false, false, false, false,
                                            false, false));
}

}  // namespace
}  // namespace penstock
