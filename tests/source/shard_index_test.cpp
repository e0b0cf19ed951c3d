#include "src/source/shards/shard_index.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/source/index_file.hpp"

namespace penstock::source {
namespace {

using ::testing::ElementsAre;

constexpr ShardStamp kStamp{1'000'000, -5};

ShardContents contents() {
  ShardContents all;
  all.keys = {"a", "", "folder/c"};
  all.first_member_ends = {2, 2, 3};
  all.members = {{512, 700, 0}, {2048, 1, 1}, {999'424, 576, 2, false}};
  all.extensions = {"jpg", "cls", "seg.png"};
  all.damages = {{1, 3000, 4000, DamageKind::bad_header}};
  all.labels = {{"cls",
                 {LabelState::known, LabelState::missing, LabelState::unreadable},
                 {INT64_MIN, 0, INT64_MAX}}};
  return all;
}

std::optional<ShardIndex> decode(std::span<const std::byte> file) {
  auto bytes = std::make_unique<std::byte[]>(file.size() + ShardIndex::kPadding);
  std::copy(file.begin(), file.end(), bytes.get());
  return ShardIndex::decode(std::move(bytes), file.size());
}

TEST(PackedColumn, HoldsNumbersInAsFewBytesAsTheyNeed) {
  const std::vector<std::vector<std::uint64_t>> columns = {
      {}, {7}, {5, 5, 5}, {0, 255}, {0, 256, 65'535}, {1'000'000, 1'000'255}, {0, UINT64_MAX, 1}};
  const std::vector<std::uint32_t> widths = {0, 0, 0, 1, 2, 1, 8};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto packing = PackedColumn::packing_of(columns[i]);
    EXPECT_EQ(packing.width, widths[i]) << i;
    std::vector<std::byte> bytes(columns[i].size() * packing.width + PackedColumn::kPadding);
    PackedColumn::pack(columns[i], packing, bytes.data());
    const PackedColumn column(bytes.data(), columns[i].size(), packing);
    for (std::size_t k = 0; k < columns[i].size(); ++k) EXPECT_EQ(column[k], columns[i][k]) << i;
  }
}

TEST(ShardIndex, GivesBackWhatItWasMadeOf) {
  const auto index = decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, contents()));
  ASSERT_TRUE(index);
  EXPECT_EQ(index->kind(), ShardKind::tar);
  EXPECT_EQ(index->stamp(), kStamp);
  EXPECT_EQ(index->records(), 3U);
  EXPECT_EQ(index->key(0), "a");
  EXPECT_EQ(index->key(1), "");
  EXPECT_EQ(index->key(2), "folder/c");
  EXPECT_EQ(index->members(1).first, index->members(1).last);
  EXPECT_EQ(index->members(2).first, 2U);
  const Member last = index->member(2);
  EXPECT_EQ(last.begin, 999'424U);
  EXPECT_EQ(last.bytes, 576U);
  EXPECT_FALSE(last.own_size);
  EXPECT_TRUE(index->member(0).own_size);
  EXPECT_EQ(index->extension(last.extension), "seg.png");
  EXPECT_FALSE(index->damage(0));
  ASSERT_TRUE(index->damage(1));
  EXPECT_EQ(index->damage(1)->end, 4000U);
  EXPECT_EQ(index->damage(1)->kind, DamageKind::bad_header);
  EXPECT_FALSE(index->damage(2));
  EXPECT_EQ(index->labels("jpg"), nullptr);
  EXPECT_THAT(index->label_names(), ElementsAre("cls"));
  const ShardIndex::Labels& labels = *index->labels("cls");
  EXPECT_EQ(labels.state(0), LabelState::known);
  EXPECT_EQ(labels.value(0), INT64_MIN);
  EXPECT_EQ(labels.state(1), LabelState::missing);
  EXPECT_EQ(labels.state(2), LabelState::unreadable);
  EXPECT_EQ(labels.value(2), INT64_MAX);
}

TEST(ShardIndex, HasAContentHashOfTheShardNotOfTheLabelsAskedFor) {
  ShardContents other = contents();
  other.labels.clear();
  const auto hash = [](const ShardContents& made) {
    return decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, made))->content_hash();
  };
  EXPECT_EQ(hash(contents()), hash(other));
  other.keys[1] = "b";
  EXPECT_NE(hash(contents()), hash(other));
}

TEST(ShardIndex, NoticesEveryFlippedBitAndEveryCut) {
  const std::vector<std::byte> good = ShardIndex::encode(ShardKind::tar, kStamp, 3, contents());
  ASSERT_TRUE(decode(good));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(decode(bad)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode(std::span(good).first(size))) << size << " bytes";
  }
  std::vector<std::byte> longer = good;
  longer.push_back({});
  EXPECT_FALSE(decode(longer));
}

// Numbers that fit together badly under good checksums, as a faulty or a malicious writer would
// leave them: nothing may be read that lies outside.
TEST(ShardIndex, NeverLeadsOutsideOfItself) {
  ShardContents wild = contents();
  wild.first_member_ends = {1, 1, 1000};
  wild.members[0] = {1'000'448, 1, 99};
  wild.members[1] = {512, UINT64_MAX, 0};
  const auto index = decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, wild));
  ASSERT_TRUE(index);
  EXPECT_EQ(index->members(2).last, 0U);
  EXPECT_EQ(index->member(0).bytes, 0U);
  EXPECT_EQ(index->member(1).bytes, 0U);
  EXPECT_EQ(index->extension(99), "");

  // Each record with all members, or the same hints again and again, would take for ever.
  wild.first_member_ends = {3, 1, 3};
  EXPECT_FALSE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, wild)));
  wild.first_member_ends = {3, 3, 3};
  wild.hints = {{1, 512, HintKind::hard_link}, {0, 512, HintKind::hard_link}};
  EXPECT_FALSE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, wild)));
  std::swap(wild.hints[0], wild.hints[1]);
  EXPECT_TRUE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, wild)));

  ShardContents uneven = contents();
  uneven.keys.pop_back();
  EXPECT_FALSE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, uneven)));
  uneven = contents();
  uneven.labels[0].values.pop_back();
  EXPECT_FALSE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 3, uneven)));
  EXPECT_FALSE(decode(ShardIndex::encode(ShardKind::tar, kStamp, 4, contents())));
}

// An index of columns of equal numbers, which take no room whatever their count, under good checksums.
std::vector<std::byte> made_of(ShardKind kind, std::uint64_t records,
                               std::span<const test::IndexSection> sections) {
  return test::index_file(kind, kStamp, records, sections);
}

// Columns of no width have any count: what a shard of a megabyte cannot hold must not be gone through.
TEST(ShardIndex, IsRefusedWhereItHasMoreOfAnythingThanItCanHold) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 40;
  const auto refused = [](ShardKind kind, std::uint64_t records,
                          const std::vector<test::IndexSection>& sections) {
    return !decode(made_of(kind, records, sections));
  };
  enum : std::uint32_t { key_ends = 2, member_ends, begins, sizes, kinds, flags };
  const auto members = [](std::uint64_t count) {
    return std::vector<test::IndexSection>{
        {begins, 0, count, 1}, {sizes, 0, count, 1}, {kinds, 0, count, 0}, {flags, 0, count, 0}};
  };
  const auto with = [](std::vector<test::IndexSection> sections,
                       std::initializer_list<test::IndexSection> more) {
    sections.insert(sections.end(), more);
    return sections;
  };
  for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{1000}, kMany}) {
    SCOPED_TRACE(count);
    EXPECT_TRUE(refused(ShardKind::tfrecord, count, members(count)));
    EXPECT_TRUE(refused(ShardKind::tar, 1, with(members(count), {{member_ends, 0, 1, count}})));
    EXPECT_TRUE(refused(ShardKind::tar, count, {{member_ends, 0, count, 0}}));
    EXPECT_TRUE(refused(ShardKind::tar, count, with(members(1), {{member_ends, 0, count, 1}})));
    // Damages, hints and extensions.
    EXPECT_TRUE(refused(ShardKind::tar, 1,
                        with(members(1), {{member_ends, 0, 1, 1},
                                          {20, 0, count, 0},
                                          {21, 0, count, 0},
                                          {22, 0, count, 0},
                                          {23, 0, count, 1}})));
    EXPECT_TRUE(refused(
        ShardKind::tar, 1,
        with(members(1),
             {{member_ends, 0, 1, 1}, {24, 0, count, 0}, {25, 0, count, 0}, {26, 0, count, 1}})));
    EXPECT_TRUE(
        refused(ShardKind::tar, 1, with(members(1), {{member_ends, 0, 1, 1}, {9, 0, count, 0}})));
    EXPECT_TRUE(refused(ShardKind::tokens, count, {{50, 0, count, 7}}));
    // Pages of tables.
    EXPECT_TRUE(refused(ShardKind::parquet, 1,
                        {{61, 0, count, 0},
                         {62, 0, count, 0},
                         {63, 0, count, 0},
                         {64, 0, count, 4},
                         {65, 0, count, 9},
                         {66, 0, count, 0},
                         {67, 0, count, 1}}));
  }
  // One of each is none too many.
  EXPECT_FALSE(refused(ShardKind::tfrecord, 1, members(1)));
  EXPECT_FALSE(refused(ShardKind::tokens, 1, {{50, 0, 1, 7}}));
  // Rows of tables may have no members, or the first all of them.
  EXPECT_FALSE(refused(ShardKind::parquet, 1000, {}));
  EXPECT_FALSE(refused(ShardKind::parquet, 1000, with(members(1), {{member_ends, 0, 1000, 1}})));
  EXPECT_FALSE(refused(ShardKind::parquet, 1,
                       {{61, 0, 1, 0},
                        {62, 0, 1, 0},
                        {63, 0, 1, 0},
                        {64, 0, 1, 4},
                        {65, 0, 1, 9},
                        {66, 0, 1, 0},
                        {67, 0, 1, 1}}));
  EXPECT_FALSE(refused(
      ShardKind::tar, 1,
      with(members(1), {{member_ends, 0, 1, 1}, {24, 0, 1, 0}, {25, 0, 1, 0}, {26, 0, 1, 1}})));
}

TEST(ShardIndex, TakesAboutSevenBytesForATfRecord) {
  ShardContents records;
  std::mt19937 draw(1);
  std::uint64_t at = 12;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bytes = 80'000 + draw() % 60'000;
    records.members.push_back({at, bytes});
    at += bytes + 16;
  }
  const std::size_t size = ShardIndex::encode(ShardKind::tfrecord, {at, 0}, 10'000, records).size();
  EXPECT_LT(size, 10'000 * 7 + 1000);
}

}  // namespace
}  // namespace penstock::source
