// Blocks of a stream of documents, against a vector that holds them all.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/sequence/texts.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing_support::random_texts;
using testing_support::read_record;
using testing_support::source_of;
using testing_support::Text;

Text all_of(const std::vector<Text>& texts) {
  Text all;
  for (const Text& text : texts) all.insert(all.end(), text.begin(), text.end());
  return all;
}

template <class Token>
void compare(std::mt19937_64& random) {
  const std::vector<Text> texts = random_texts(random, random() % 150, 20);
  const Text all = all_of(texts);
  const std::size_t length = 1 + random() % 40;
  BlockOptions options{.length = static_cast<std::int64_t>(length), .labels = random() % 2 == 0};
  if (random() % 2 == 0) options.stride = static_cast<std::int64_t>(1 + random() % (2 * length));
  options.dtype = random() % 3 == 0   ? dtype_of<Token>()
                  : random() % 2 == 0 ? DType::i32
                                      : DType::i64;
  const std::size_t stride = static_cast<std::size_t>(options.stride.value_or(options.length));
  const SourcePtr blocks = sequence::blocks(source_of<Token>(texts), options);
  std::size_t count = 0;
  for (std::size_t begin = 0; begin + length + (options.labels ? 1 : 0) <= all.size();
       begin += stride, ++count) {
    ASSERT_LT(count, blocks->size());
    const auto fields = read_record(*blocks, count);
    const auto part = [&](std::size_t from) {
      return Text(all.begin() + static_cast<long>(from),
                  all.begin() + static_cast<long>(from + length));
    };
    ASSERT_EQ(fields[0], part(begin));
    ASSERT_EQ(fields.size(), options.labels ? 2U : 1U);
    if (options.labels) {
      ASSERT_EQ(fields[1], part(begin + 1));
    }
  }
  ASSERT_EQ(blocks->size(), count);
}

TEST(Blocks, AreTheStreamCutUp) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    compare<std::uint16_t>(random);
    compare<std::int32_t>(random);
    compare<std::int64_t>(random);
  }
}

TEST(Blocks, LieWhereTheDocumentLies) {
  const std::vector<std::uint16_t> tokens{1, 2, 3, 4, 5, 6, 7};
  const SourcePtr blocks =
      sequence::blocks(source::documents(source::column<std::uint16_t>("tokens", tokens), {0, 7}),
                       {.length = 3, .dtype = DType::u16});
  Record record;
  ASSERT_TRUE(blocks->read(1, record));
  EXPECT_EQ(record[0].raw(), reinterpret_cast<const std::byte*>(&tokens[3]));
  EXPECT_EQ(record[1].raw(), reinterpret_cast<const std::byte*>(&tokens[4]));
  EXPECT_EQ(record.bytes_read(), 0U);  // nothing came from a storage
}

TEST(Blocks, RefuseWhatCannotBe) {
  const SourcePtr texts = source_of<std::uint16_t>({{1, 2, 3}});
  const auto refuse = [&](const BlockOptions& options, const char* why) {
    EXPECT_THAT([&] { (void)sequence::blocks(texts, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  };
  refuse({}, "a length from 1 to 2^40, found 0");
  refuse({.length = 2, .stride = 0}, "a stride of 1 or more, found 0");
  refuse({.length = 2, .dtype = DType::f32},
         "the type i32, i64 or u16, that of the source, found f32");
  refuse({.length = 2, .field = "text"},
         "a field 'text' of integers of shape [?], found tokens u16 [?]");
  EXPECT_THAT([] { (void)sequence::blocks(source::numbers(3), {.length = 2, .field = "number"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("found number u64 [2]")));
  EXPECT_EQ(sequence::blocks(texts, {.length = 3})->size(), 0U);
  EXPECT_EQ(sequence::blocks(texts, {.length = 3, .labels = false})->size(), 1U);
}

TEST(Blocks, ATokenThatTheTypeDoesNotHoldIsAFault) {
  const SourcePtr texts = source_of<std::uint32_t>({{1, 2, std::int64_t{1} << 31}});
  const SourcePtr blocks =
      sequence::blocks(texts, {.length = 1, .labels = false, .dtype = DType::i32});
  EXPECT_THAT(read_record(*blocks, 1), ElementsAre(Text{2}));
  Record record;
  const auto read = blocks->read(2, record);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.fault().reason, HasSubstr("2147483648 does not fit into i32"));
}

TEST(Blocks, ComeRightBehindTheSource) {
  const Dataset texts(source_of<std::uint16_t>({{1, 2, 3}}));
  EXPECT_EQ(texts.blocks({.length = 2}).size(), 1U);
  EXPECT_THAT(
      [&] { (void)texts.repeat(2).blocks({.length = 2}); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("right behind the source, before repeat")));
  EXPECT_THAT(
      [&] {
        (void)concatenate({texts, texts}).pack({.length = 2});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("pack each dataset before they are joined")));
}

}  // namespace
}  // namespace penstock
