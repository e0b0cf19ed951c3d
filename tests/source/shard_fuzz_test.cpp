// Random damage to small shards: nothing crashes, and undamaged records stay what they were.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include <penstock/source/shards.hpp>

#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::is_fault;
using test::TemporaryFolder;

struct Shard {
  std::string bytes;
  std::vector<std::size_t> ends;  // one behind each record
};

// Changes a few bytes, a block or a bit, and says which records have it.
std::vector<bool> damage(Shard& shard, std::mt19937& draw) {
  std::vector<bool> hit(shard.ends.size() + 1, false);
  const auto change = [&](std::size_t at, char value) {
    if (at >= shard.bytes.size() || shard.bytes[at] == value) return;
    shard.bytes[at] = value;
    const auto record = std::ranges::upper_bound(shard.ends, at) - shard.ends.begin();
    hit[static_cast<std::size_t>(record)] = true;
  };
  for (auto left = 1 + draw() % 3; left > 0; --left) {
    const std::size_t at = draw() % shard.bytes.size();
    switch (draw() % 4) {
      case 0:
        change(at, static_cast<char>(shard.bytes[at] ^ (1 << draw() % 8)));
        break;
      case 1:
        change(at, static_cast<char>(draw()));
        break;
      case 2:
        for (std::size_t i = 0; i < 1 + draw() % 600; ++i)
          change(at + i, static_cast<char>(draw()));
        break;
      default:
        for (std::size_t i = 0; i < 512; ++i) change(at / 512 * 512 + i, '\0');
    }
  }
  return hit;
}

Shard tar_shard(std::mt19937& draw) {
  Shard shard;
  for (int i = 0; i < 8; ++i) {
    const std::string key = (draw() % 4 == 0 ? std::string(110, 'k') : "k") + std::to_string(i);
    const std::string image(draw() % 1200, static_cast<char>('a' + i));
    if (key.size() > 90) {
      const std::string text = fmt::format(" path={}.jpg\n", key);
      shard.bytes +=
          test::tar_member("./PaxHeaders/x", std::to_string(text.size() + 3) + text, 'x');
    }
    shard.bytes += test::tar_member(key.substr(0, 90) + ".jpg", image);
    if (key.size() > 90) {
      shard.bytes += test::tar_member("././@LongLink", key + ".cls" + '\0', 'L');
    }
    shard.bytes += test::tar_member(key.substr(0, 90) + ".cls", std::to_string(i));
    shard.ends.push_back(shard.bytes.size());
  }
  shard.bytes += test::tar_end();
  return shard;
}

Shard tfrecord_shard(std::mt19937& draw) {
  Shard shard;
  for (int i = 0; i < 8; ++i) {
    shard.bytes +=
        test::frame(test::plain_example(std::string(draw() % 1200, static_cast<char>('a' + i)), i));
    shard.ends.push_back(shard.bytes.size());
  }
  return shard;
}

// Lists of differing lengths, and feature lists.
Shard lists_shard(std::mt19937& draw) {
  using test::wire;
  const auto numbers = [&] {
    return wire(1, std::string(draw() % 5, static_cast<char>(draw() % 128)));
  };
  Shard shard;
  for (int i = 0; i < 8; ++i) {
    std::string texts;
    std::string steps;
    for (auto left = draw() % 6; left > 0; --left) {
      texts += wire(1, std::string(draw() % 300, static_cast<char>('a' + i)));
      steps += wire(1, wire(3, numbers()));
    }
    shard.bytes += test::frame(
        wire(1, test::feature("numbers", 3, numbers()) + test::feature("texts", 1, texts)) +
        wire(2, wire(1, wire(1, "steps") + wire(2, steps))));
    shard.ends.push_back(shard.bytes.size());
  }
  return shard;
}

struct Kind {
  const char* name;
  Shard (*make)(std::mt19937&);
  SourcePtr (*open)(const std::filesystem::path&, IndexLocation);
};

const Kind kTar{"tar", tar_shard, [](const std::filesystem::path& path, IndexLocation location) {
                  return source::webdataset(path, {.index = {.location = location}});
                }};
const Kind kTfRecord{"tfrecord", tfrecord_shard,
                     [](const std::filesystem::path& path, IndexLocation location) {
                       return source::tfrecord(path, {.index = {.location = location}});
                     }};

const Kind kLists{
    "lists", lists_shard, [](const std::filesystem::path& path, IndexLocation location) {
      return source::tfrecord(
          path,
          {.fields =
               {{.name = "n", .features = {"numbers"}, .dtype = DType::i64, .shape = {kDynamic}},
                {.name = "t", .features = {"texts"}, .lengths = "t_lengths"},
                {.name = "s",
                 .features = {"steps"},
                 .dtype = DType::i64,
                 .shape = {kDynamic},
                 .lengths = "s_lengths",
                 .sequence = true}},
           .index = {.location = location}});
    }};

class ShardFuzz : public ::testing::TestWithParam<Kind> {};

TEST_P(ShardFuzz, DamageBehindAnIndexChangesNoOtherRecord) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 draw(seed);
    Shard shard = GetParam().make(draw);
    const auto path = test::rewrite(folder, "shard", shard.bytes);
    const auto expected = describe_all(GetParam().open(path, IndexLocation::next_to_data));
    ASSERT_EQ(expected.size(), 8U);
    const auto time = std::filesystem::last_write_time(path);
    const std::vector<bool> hit = damage(shard, draw);
    test::rewrite(folder, "shard", shard.bytes);
    std::filesystem::last_write_time(path, time);
    const auto found = describe_all(GetParam().open(path, IndexLocation::next_to_data));
    ASSERT_EQ(found.size(), 8U) << "seed " << seed;
    for (std::size_t i = 0; i < 8; ++i) {
      if (!hit[i]) {
        EXPECT_EQ(found[i], expected[i]) << "seed " << seed << " record " << i;
      }
    }
  }
}

TEST_P(ShardFuzz, ScanOfADamagedShardFindsAllThatIsUndamaged) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 draw(seed);
    Shard shard = GetParam().make(draw);
    const auto whole = test::rewrite(folder, "shard", shard.bytes);
    const auto expected = describe_all(GetParam().open(whole, IndexLocation::memory));
    ASSERT_EQ(expected.size(), 8U);
    const std::vector<bool> hit = damage(shard, draw);
    const auto path = test::rewrite(folder, "shard", shard.bytes);
    const auto found = describe_all(GetParam().open(path, IndexLocation::memory));
    // In the same order, and as good as ever.
    auto from = found.begin();
    for (std::size_t i = 0; i < 8; ++i) {
      ASSERT_FALSE(is_fault(expected[i]));
      if (hit[i]) continue;
      const auto at = std::find(from, found.end(), expected[i]);
      EXPECT_NE(at, found.end()) << "seed " << seed << " record " << i;
      if (at != found.end()) from = at + 1;
    }
  }
}

TEST_P(ShardFuzz, OneDamagedByteMovesNoRecord) {
  const TemporaryFolder folder;
  int moved = 0;
  constexpr unsigned kSeeds = 600;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 draw(seed);
    Shard shard = GetParam().make(draw);
    const auto whole = test::rewrite(folder, "shard", shard.bytes);
    const auto expected = describe_all(GetParam().open(whole, IndexLocation::memory));
    const std::size_t at = draw() % shard.ends.back();
    shard.bytes[at] = static_cast<char>(shard.bytes[at] ^ (1 << draw() % 8));
    const auto hit =
        static_cast<std::size_t>(std::ranges::upper_bound(shard.ends, at) - shard.ends.begin());
    const auto path = test::rewrite(folder, "shard", shard.bytes);
    const auto found = describe_all(GetParam().open(path, IndexLocation::memory));
    bool same = found.size() == expected.size();
    for (std::size_t i = 0; same && i < expected.size(); ++i)
      same = i == hit || found[i] == expected[i];
    if (!same) ++moved;
  }
  RecordProperty("moved", moved);
  // A long name has no checksum: a wrong letter in it makes a key of its own, and a sample more.
  EXPECT_LE(moved, GetParam().make == tar_shard ? static_cast<int>(kSeeds / 20) : 0);
}

INSTANTIATE_TEST_SUITE_P(, ShardFuzz, ::testing::Values(kTar, kTfRecord, kLists),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace penstock
