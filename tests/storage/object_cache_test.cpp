#include "src/storage/object_cache.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <penstock/core/error.hpp>

#include "src/storage/cached_store.hpp"
#include "tests/source/shards.hpp"
#include "tests/variables.hpp"

namespace {
// What the next writes and reads of entries fail with; 0: they do not.
std::atomic<int> write_error{0};
std::atomic<int> read_error{0};

bool is_entry(int file) {
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  if (::readlink(link.c_str(), path, sizeof path - 1) <= 0) return false;
  const std::string_view text = path;
  return text.find(".tmp.") != text.npos || text.ends_with(".object");
}
}  // namespace

// In place of those of the C library, for this program.
extern "C" ssize_t pwrite(int file, const void* data, size_t bytes, off_t at) {
  static const auto kReal = reinterpret_cast<decltype(&::pwrite)>(::dlsym(RTLD_NEXT, "pwrite"));
  if (write_error != 0 && is_entry(file)) {
    errno = write_error;
    return -1;
  }
  return kReal(file, data, bytes, at);
}
extern "C" ssize_t pread(int file, void* data, size_t bytes, off_t at) {
  static const auto kReal = reinterpret_cast<decltype(&::pread)>(::dlsym(RTLD_NEXT, "pread"));
  if (read_error != 0 && is_entry(file)) {
    errno = read_error;
    return -1;
  }
  return kReal(file, data, bytes, at);
}

namespace penstock::storage {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::uint64_t kPlenty = 1 << 20;

CachedObject object(int number, std::int64_t version = 1, const std::string& folder = "data") {
  return {fmt::format("s3://bucket/{}/{}.tar", folder, number), {std::uint64_t{1} << 40, version}};
}

// Bytes that tell whose they are, and where.
std::byte byte_at(const CachedObject& object, std::uint64_t at) {
  const std::uint64_t mixed = (object.object ^ object.version ^ at) * 0x9E3779B97F4A7C15U;
  return static_cast<std::byte>(mixed >> 56);
}
std::vector<std::byte> contents(const CachedObject& object, std::uint64_t offset,
                                std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = byte_at(object, offset + i);
  return all;
}

void store(const ObjectCache& cache, const CachedObject& object, std::uint64_t offset,
           std::size_t bytes) {
  cache.store(object, offset, contents(object, offset, bytes));
}

// What is missing; what is there must be right.
std::vector<ByteSpan> missing(const ObjectCache& cache, const CachedObject& object,
                              std::uint64_t offset, std::size_t bytes) {
  std::vector<std::byte> into(bytes, std::byte{'?'});
  const std::vector<ByteSpan> gaps = cache.find(object, offset, into);
  const std::vector<std::byte> good = contents(object, offset, bytes);
  std::uint64_t at = offset;
  const auto compare = [&](std::uint64_t end) {
    for (; at < end; ++at)
      if (into[at - offset] != good[at - offset]) {
        ADD_FAILURE() << object.url << " has a wrong byte at " << at;
        return;
      }
  };
  for (const ByteSpan& gap : gaps) {
    compare(gap.begin);
    at = gap.end;
  }
  compare(offset + bytes);
  return gaps;
}
bool has(const ObjectCache& cache, const CachedObject& object, std::uint64_t offset,
         std::size_t bytes) {
  return missing(cache, object, offset, bytes).empty();
}

std::vector<fs::path> entries_in(const fs::path& folder, const std::string& part = ".object") {
  std::vector<fs::path> all;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder, ignored), end; it != end; it.increment(ignored))
    if (it->path().string().find(part) != std::string::npos) all.push_back(it->path());
  return all;
}
std::uint64_t taken_by(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (const std::string part : {".object", ".tmp."})
    for (const fs::path& path : entries_in(folder, part)) {
      const auto size = fs::file_size(path, ignored);
      if (!ignored) bytes += (size + 4095) / 4096 * 4096;
    }
  return bytes;
}

void set_time(const fs::path& path, std::int64_t seconds) {
  const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}
std::int64_t seconds_ago(std::int64_t seconds) { return ::time(nullptr) - seconds; }

// As if the last look through the full folder were long ago.
void make_look_due(const fs::path& folder) {
  std::array<std::uint64_t, 7> state{};
  std::fstream file(folder / ".ledger", std::ios::binary | std::ios::in | std::ios::out);
  ASSERT_TRUE(file.read(reinterpret_cast<char*>(state.data()), sizeof state));
  state[4] = 0;
  state[6] = XXH3_64bits(state.data(), 6 * sizeof state[0]);
  ASSERT_TRUE(file.seekp(0).write(reinterpret_cast<const char*>(state.data()), sizeof state));
}

TEST(ObjectCache, WritesToNoFileOfOthers) {
  const TemporaryFolder folder;
  const fs::path victim = folder.write("victim", std::string(100, 'v'));
  const ObjectCache cache(folder / "cache", kPlenty);
  store(cache, object(1), 0, 5000);
  fs::remove(folder / "cache" / ".ledger");
  fs::create_symlink(victim, folder / "cache" / ".ledger");
  store(cache, object(2), 0, 5000);
  EXPECT_EQ(test::read_text(victim), std::string(100, 'v'));
  EXPECT_THROW(ObjectCache(folder / "cache", kPlenty), Error);
}

TEST(ObjectCache, GivesBackWhatWasStoredAndNothingElse) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder / "cache", kPlenty);
  EXPECT_FALSE(has(cache, object(1), 0, 5000));
  store(cache, object(1), 0, 5000);
  EXPECT_TRUE(has(cache, object(1), 0, 5000));
  EXPECT_FALSE(has(cache, object(2), 0, 5000));
  EXPECT_FALSE(has(cache, object(1, 2), 0, 5000)) << "another version";
  EXPECT_FALSE(has(cache, object(1), 1, 5000)) << "its last byte is not there";
  EXPECT_TRUE(has(ObjectCache(folder / "cache", 0), object(1), 0, 5000)) << "another process, say";
}

TEST(ObjectCache, PartsOfARangeAreReadFromIt) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 8 * kPlenty);
  constexpr std::size_t kBytes = 300'000;  // several checksums
  store(cache, object(1), 1000, kBytes);
  const ObjectCache other(folder.path(), 0);
  for (const ObjectCache* each : {&cache, &other}) {
    EXPECT_TRUE(has(*each, object(1), 1000, 1));
    EXPECT_TRUE(has(*each, object(1), 1000 + kBytes - 1, 1));
    EXPECT_TRUE(has(*each, object(1), 66'000, 70'000));
    EXPECT_TRUE(has(*each, object(1), 1000 + 65'536, 65'536))
        << "just what has a checksum of its own";
    EXPECT_THAT(missing(*each, object(1), 900, 200), ElementsAre(ByteSpan{900, 1000}));
    EXPECT_THAT(missing(*each, object(1), 1000 + kBytes - 10, 20),
                ElementsAre(ByteSpan{1000 + kBytes, 1000 + kBytes + 10}));
    EXPECT_THAT(missing(*each, object(1), 0, kBytes + 2000),
                ElementsAre(ByteSpan{0, 1000}, ByteSpan{1000 + kBytes, kBytes + 2000}));
  }
  // What is added meanwhile is seen.
  store(cache, object(1), 900, 50);
  EXPECT_THAT(missing(cache, object(1), 800, 300),
              ElementsAre(ByteSpan{800, 900}, ByteSpan{950, 1000}));
}

TEST(ObjectCache, NoByteIsWrittenTwice) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 8 * kPlenty);
  store(cache, object(1), 10'000, 10'000);
  store(cache, object(1), 0, 40'000);
  EXPECT_TRUE(has(cache, object(1), 0, 40'000));
  std::uint64_t held = 0;
  for (const fs::path& path : entries_in(folder.path()))
    held += parse_cached_range(path.stem().string())->bytes;
  EXPECT_EQ(held, 40'000U);
  EXPECT_EQ(entries_in(folder.path()).size(), 3U);
  store(cache, object(1), 5'000, 30'000);
  EXPECT_EQ(entries_in(folder.path()).size(), 3U);
  // Nor where threads read the same at once.
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i)
        store(cache, object(2), static_cast<std::uint64_t>((i * 7 + thread) % 50) * 3000, 7000);
    });
  threads.clear();
  // On a busy machine a thread may have left out what it would have had to wait for.
  for (std::uint64_t i = 0; i < 50; ++i) store(cache, object(2), i * 3000, 7000);
  std::uint64_t second = 0;
  for (const fs::path& path : entries_in(folder.path())) {
    const auto range = parse_cached_range(path.stem().string());
    if (range->object == object(2).object) second += range->bytes;
  }
  EXPECT_EQ(second, 49U * 3000 + 7000);
  EXPECT_TRUE(has(cache, object(2), 0, 49U * 3000 + 7000));
}

TEST(ObjectCache, ARangeOverTheEndOfARegionIsKeptInTwoEntries) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty);
  store(cache, object(1), 3 * kCacheRegion - 100, 300);
  EXPECT_EQ(entries_in(folder.path()).size(), 2U);
  EXPECT_TRUE(has(cache, object(1), 3 * kCacheRegion - 100, 300));
  EXPECT_TRUE(has(cache, object(1), 3 * kCacheRegion - 1, 2));
  EXPECT_THAT(missing(cache, object(1), 3 * kCacheRegion - 101, 302),
              ElementsAre(ByteSpan{3 * kCacheRegion - 101, 3 * kCacheRegion - 100},
                          ByteSpan{3 * kCacheRegion + 200, 3 * kCacheRegion + 201}));
}

TEST(ObjectCache, ADamagedEntryIsNoneAndIsRemoved) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty);
  const fs::path path = cache.path_of(object(1).range(0, 300));
  store(cache, object(1), 0, 300);
  const std::string good = test::read_text(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 4;
    std::ofstream(path, std::ios::binary) << bad;
    ASSERT_FALSE(has(cache, object(1), 0, 300)) << at;
    ASSERT_FALSE(fs::exists(path)) << at;
    std::ofstream(path, std::ios::binary) << bad;
    const ObjectCache other(folder.path(), 0);
    ASSERT_FALSE(has(other, object(1), 7, 200)) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, good.size() - 1}) {
    std::ofstream(path, std::ios::binary) << good.substr(0, size);
    EXPECT_FALSE(has(cache, object(1), 0, 300));
  }
  store(cache, object(1), 0, 300);
  EXPECT_TRUE(has(cache, object(1), 0, 300));
}

TEST(ObjectCache, DamageConcernsTheReadsOfItsOwn64KiB) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 8 * kPlenty);
  constexpr std::size_t kBytes = 200'000;
  store(cache, object(1), 0, kBytes);
  const fs::path path = cache.path_of(object(1).range(0, kBytes));
  std::string bad = test::read_text(path);
  bad[bad.size() - 1] ^= 1;
  std::ofstream(path, std::ios::binary) << bad;
  EXPECT_TRUE(has(cache, object(1), 10, 60'000));
  EXPECT_THAT(missing(cache, object(1), kBytes - 100, 50),
              ElementsAre(ByteSpan{kBytes - 100, kBytes - 50}));
  EXPECT_FALSE(fs::exists(path));
}

TEST(ObjectCache, AnEntryUnderAnothersNameIsNone) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty);
  store(cache, object(1), 0, 300);
  const fs::path other = cache.path_of(object(2).range(0, 300));
  fs::create_directories(other.parent_path());
  fs::copy_file(cache.path_of(object(1).range(0, 300)), other);
  EXPECT_FALSE(has(cache, object(2), 0, 300));
  EXPECT_TRUE(has(cache, object(1), 0, 300));
}

TEST(ObjectCache, AFullOneKeepsWhatItHas) {
  const TemporaryFolder folder;
  constexpr std::size_t kBytes = 3000;  // takes a block of 4096 with its head
  const ObjectCache cache(folder.path(), 10 * 4096);
  for (int i = 0; i < 10; ++i) store(cache, object(i), 0, kBytes);
  for (int i = 10; i < 30; ++i) store(cache, object(i), 0, kBytes);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(has(cache, object(i), 0, kBytes), i < 10) << i;
  EXPECT_EQ(taken_by(folder.path()), 10 * 4096U);
  const StorageTier tier = cache.tier();
  EXPECT_EQ(tier.entries, 10U);
  EXPECT_EQ(tier.held_bytes, 10 * 4096U);
  EXPECT_EQ(tier.budget_bytes, 10 * 4096U);
  EXPECT_EQ(tier.warning, "");
  // Nor does looking through it remove anything.
  make_look_due(folder.path());
  const ObjectCache other(folder.path(), 0);
  store(other, object(30), 0, kBytes);
  EXPECT_FALSE(has(other, object(30), 0, kBytes));
  EXPECT_EQ(entries_in(folder.path()).size(), 10U);
}

TEST(ObjectCache, WithLruWhatWasUsedLongestAgoGoesFirst) {
  const TemporaryFolder folder;
  constexpr std::size_t kBytes = 3000;
  const ObjectCache cache(folder.path(), 10 * 4096, CachePolicy::lru);
  for (int i = 0; i < 10; ++i) {
    store(cache, object(i), 0, kBytes);
    // Times that differ, on whatever clock the file system has.
    set_time(cache.path_of(object(i).range(0, kBytes)), 1000 + i);
  }
  EXPECT_TRUE(has(cache, object(0), 0, kBytes));  // used now
  store(cache, object(10), 0, kBytes);
  EXPECT_TRUE(has(cache, object(0), 0, kBytes));
  EXPECT_FALSE(has(cache, object(1), 0, kBytes));
  EXPECT_TRUE(has(cache, object(9), 0, kBytes));
  EXPECT_TRUE(has(cache, object(10), 0, kBytes));
  store(cache, object(11), 0, 50'000);  // larger than all of it
  EXPECT_FALSE(has(cache, object(11), 0, 50'000));
  EXPECT_TRUE(has(cache, object(9), 0, kBytes));
}

// Reshuffled epochs: keep hits what fits, and LRU c + (1 - c) ln(1 - c).
TEST(ObjectCache, HitsAsTheFormulasSay) {
  constexpr int kObjects = 400;
  constexpr int kEpochs = 4;
  const auto hits = [&](CachePolicy policy, int fitting) {
    const TemporaryFolder folder;
    const ObjectCache cache(folder.path(), static_cast<std::uint64_t>(fitting) * 4096, policy);
    std::vector<int> order(kObjects);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(3);
    int found = 0;
    std::int64_t clock = 1000;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      std::ranges::shuffle(order, random);
      for (const int number : order) {
        const CachedRange range = object(number).range(0, 3000);
        if (has(cache, object(number), 0, 3000))
          found += epoch > 0 ? 1 : 0;
        else
          store(cache, object(number), 0, 3000);
        std::error_code ignored;
        if (fs::exists(cache.path_of(range), ignored)) set_time(cache.path_of(range), ++clock);
      }
    }
    return static_cast<double>(found) / ((kEpochs - 1) * kObjects);
  };
  for (const double share : {0.25, 0.5}) {
    const int fitting = static_cast<int>(share * kObjects);
    EXPECT_DOUBLE_EQ(hits(CachePolicy::keep, fitting), share);
    EXPECT_NEAR(hits(CachePolicy::lru, fitting), share + (1 - share) * std::log(1 - share), 0.04);
  }
}

TEST(ObjectCache, AnotherVersionTakesThePlaceOfTheOldOneWhereThereIsNoRoom) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 4 * 4096);  // full, and of the old version
  for (std::uint64_t i = 0; i < 4; ++i) store(cache, object(1), i * 3000, 3000);
  EXPECT_TRUE(has(cache, object(1), 0, 12'000));
  const ObjectCache other(folder.path(), 0);
  store(other, object(1, 2), 3000, 3000);
  EXPECT_TRUE(has(other, object(1, 2), 3000, 3000));
  EXPECT_FALSE(has(cache, object(1), 0, 3000));
  EXPECT_TRUE(has(cache, object(1), 3000, 3000));
  EXPECT_EQ(entries_in(folder.path()).size(), 4U);
  EXPECT_EQ(other.tier().held_bytes, 4 * 4096U);
  for (std::uint64_t i = 0; i < 4; ++i) store(other, object(1, 2), i * 3000, 3000);
  EXPECT_TRUE(has(other, object(1, 2), 0, 12'000));
  EXPECT_EQ(entries_in(folder.path()).size(), 4U);
}

// Processes may read different commits of one data set.
TEST(ObjectCache, TwoVersionsAreBothKeptWhereThereIsRoom) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty, CachePolicy::keep);
  for (int round = 0; round < 3; ++round)
    for (const std::int64_t version : {1, 2}) {
      const auto gaps = missing(cache, object(1, version), 0, 5000);
      EXPECT_EQ(gaps.empty(), round > 0);
      if (!gaps.empty()) store(cache, object(1, version), 0, 5000);
    }
}

// As a container's is after each start.
TEST(ObjectCache, WhatAProcessOfTheSameNumberLeftIsInNoOnesWay) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / ".readers");
  for (int number = 0; number < 200; ++number)
    std::ofstream(folder.path() / ".readers" / fmt::format("{:x}.{:x}", ::getpid(), number)) << 1;
  const ObjectCache cache(folder.path(), kPlenty, CachePolicy::keep);
  EXPECT_EQ(cache.tier().warning, "");
  store(cache, object(1), 0, 5000);
  EXPECT_TRUE(missing(cache, object(1), 0, 5000).empty());
}

TEST(ObjectCache, APipeInTheFolderIsNotWaitedFor) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / ".folders");
  const CachedObject of_pipe = object(1);
  for (const fs::path& pipe : {folder.path() / ".folders" / fmt::format("{:016x}", of_pipe.folder),
                               folder.path() / ".readers" / "1.1"}) {
    fs::create_directories(pipe.parent_path());
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  }
  const ObjectCache cache(folder.path(), kPlenty, CachePolicy::keep);
  store(cache, of_pipe, 0, 5000);
  EXPECT_TRUE(missing(cache, of_pipe, 0, 5000).empty());
}

// Servers may say any size.
TEST(ObjectCache, TheEndOfTheLargestObjectIsReadAsAnyOther) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty, CachePolicy::keep);
  constexpr std::uint64_t kAt = UINT64_MAX - 5000;
  EXPECT_THAT(missing(cache, object(1), kAt, 5000), SizeIs(1));
  store(cache, object(1), kAt, 5000);
  EXPECT_TRUE(missing(cache, object(1), kAt, 5000).empty());
}

TEST(ObjectCache, AFolderHasOneBudgetWhichTheLastLoaderSet) {
  const TemporaryFolder folder;
  {
    const ObjectCache first(folder.path(), 4 * 4096);
    const ObjectCache second(folder.path(), 0);
    for (int i = 0; i < 8; ++i) store(i % 2 == 0 ? first : second, object(i), 0, 3000);
    EXPECT_EQ(taken_by(folder.path()), 4 * 4096U) << "both together";
    const ObjectCache third(folder.path(), 6 * 4096);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1100));  // a full folder is looked at once a second
    for (int i = 0; i < 8; ++i) store(first, object(i), 0, 3000);
    EXPECT_EQ(taken_by(folder.path()), 6 * 4096U);
    EXPECT_EQ(first.tier().budget_bytes, 6 * 4096U);
  }
  for (int i = 0; i < 8; ++i)
    if (const fs::path path = ObjectCache(folder.path(), 0).path_of(object(i).range(0, 3000));
        fs::exists(path))
      set_time(path, seconds_ago(100 - i));
  const ObjectCache smaller(folder.path(), 2 * 4096);
  EXPECT_EQ(taken_by(folder.path()), 2 * 4096U) << "what is too much goes at once";
  EXPECT_TRUE(has(smaller, object(5), 0, 3000)) << "what was used last stays";
}

// Another data set is not starved by one that is read no more, and takes nothing from one that is read.
TEST(ObjectCache, WhatNoLoaderReadsGivesWayAfterAnHour) {
  const TemporaryFolder folder;
  const auto old_data = [](int number) { return object(number, 1, "old"); };
  auto first = std::make_optional<ObjectCache>(folder.path(), 4 * 4096);
  for (int i = 0; i < 4; ++i) {
    store(*first, old_data(i), 0, 3000);
    EXPECT_TRUE(has(*first, old_data(i), 0, 3000));
  }
  const fs::path mark = folder / ".folders" / fmt::format("{:016x}", old_data(0).folder);
  const auto kept = [&] {
    int count = 0;
    for (int i = 0; i < 4; ++i)
      count +=
          fs::exists(ObjectCache(folder.path(), 0).path_of(old_data(i).range(0, 3000))) ? 1 : 0;
    return count;
  };
  const auto train_on_new_data = [&] {
    make_look_due(folder.path());
    const ObjectCache cache(folder.path(), 0);
    for (int i = 0; i < 4; ++i) store(cache, object(i, 1, "new"), 0, 3000);
    return static_cast<int>(entries_in(folder.path()).size()) - kept();
  };
  set_time(mark, seconds_ago(100'000));
  EXPECT_EQ(train_on_new_data(), 0) << "an open loader reads the old data";
  first.reset();
  EXPECT_EQ(train_on_new_data(), 0) << "one read them a moment ago";
  set_time(mark, seconds_ago(CacheFolder::kIdleS - 60));
  EXPECT_EQ(train_on_new_data(), 0);
  set_time(mark, seconds_ago(CacheFolder::kIdleS + 60));
  EXPECT_EQ(train_on_new_data(), 4);
  EXPECT_EQ(kept(), 0);
}

TEST(ObjectCache, AKilledReaderProtectsNothing) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const ObjectCache cache(folder.path(), 2 * 4096);
    for (int i = 0; i < 2; ++i) {
      store(cache, object(i, 1, "old"), 0, 3000);
      (void)has(cache, object(i, 1, "old"), 0, 3000);
    }
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(entries_in(folder.path()).size(), 2U);
  for (const fs::path& mark : entries_in(folder / ".folders", ""))
    set_time(mark, seconds_ago(4000));
  make_look_due(folder.path());
  const ObjectCache cache(folder.path(), 0);
  store(cache, object(7, 1, "new"), 0, 3000);
  EXPECT_TRUE(has(cache, object(7, 1, "new"), 0, 3000));
  EXPECT_EQ(entries_in(folder / ".readers", "").size(), 1U) << "its own";
}

TEST(ObjectCache, ADeadProcessGivesBackWhatItReserved) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const CacheFolder own(folder.path(), 4 * 4096, CachePolicy::keep);
    for (int i = 0; i < 4; ++i) (void)own.reserve(object(i).range(0, 3000), 3100, {});
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  const std::vector<fs::path> left = entries_in(folder.path(), ".tmp.");
  ASSERT_EQ(left.size(), 4U);
  const ObjectCache cache(folder.path(), 0);
  store(cache, object(9), 0, 3000);
  EXPECT_FALSE(has(cache, object(9), 0, 3000)) << "it may be writing still";
  for (const fs::path& path : left) set_time(path, seconds_ago(60));
  make_look_due(folder.path());
  const ObjectCache later(folder.path(), 0);
  for (int i = 0; i < 4; ++i) store(later, object(i), 0, 3000);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(has(later, object(i), 0, 3000)) << i;
  EXPECT_EQ(entries_in(folder.path(), ".tmp.").size(), 0U);
}

TEST(ObjectCache, LeavesOthersFilesAloneAndRemovesThoseOfEarlierVersions) {
  const TemporaryFolder folder;
  folder.write("00/mine.txt", std::string(100'000, 'x'));
  folder.write("00/mine.object", "mine too");
  folder.write("notes", "mine too");
  const fs::path earlier = folder.write("00/" + std::string(32, 'a') + ".object", "old");
  const fs::path dead = folder.write("00/" + std::string(32, 'a') + ".tmp.1.0", "half");
  set_time(dead, 1000);
  const ObjectCache cache(folder.path(), 3 * 4096);
  for (int i = 0; i < 10; ++i) store(cache, object(i), 0, 3000);
  EXPECT_TRUE(has(cache, object(2), 0, 3000));
  EXPECT_TRUE(fs::exists(folder / "00/mine.txt"));
  EXPECT_TRUE(fs::exists(folder / "00/mine.object"));
  EXPECT_TRUE(fs::exists(folder / "notes"));
  EXPECT_FALSE(fs::exists(earlier));
  EXPECT_FALSE(fs::exists(dead));
}

TEST(ObjectCache, ADamagedLedgerIsCountedAnew) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 8 * 4096, CachePolicy::lru);
  for (int i = 0; i < 8; ++i) store(cache, object(i), 0, 3000);
  for (const char* text :
       {"", "x", "0123456789abcdef", "01234567890123456789012345678901234567890123456789012345"}) {
    std::ofstream(folder / ".ledger", std::ios::binary) << text;
    const CachedObject next = object(100 + static_cast<int>(std::string(text).size()));
    store(cache, next, 0, 3000);
    EXPECT_TRUE(has(cache, next, 0, 3000));
    EXPECT_LE(taken_by(folder.path()), 8 * 4096U);
  }
}

// Six processes, a cache that holds a part of what they use, and a limit that is looked at all the time. Two of them are
// killed at some moment.
class ObjectCacheOfProcesses : public ::testing::TestWithParam<CachePolicy> {};

TEST_P(ObjectCacheOfProcesses, KeepToTheLimitAndNeverSeeAWrongByte) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kMost = 40 * 4096;
  constexpr int kObjects = 100;
  constexpr int kRounds = 600;
  constexpr std::size_t kBytes = 3500;
  const auto start = [&](unsigned process) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const ObjectCache cache(folder.path(), kMost, GetParam());
    unsigned draw = process + 1;
    int hits = 0;
    for (int i = 0; i < kRounds; ++i) {
      draw = draw * 1664525 + 1013904223;
      const auto at = static_cast<std::uint64_t>(draw >> 16) % kObjects * 4000 + draw % 2 * 100;
      const bool is_there = has(cache, object(1), at, kBytes);
      hits += is_there ? 1 : 0;
      if (!is_there) store(cache, object(1), at, kBytes);
    }
    ::_exit(::testing::Test::HasFailure() ? 1 : hits == 0 ? 2 : 0);
  };
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 6; ++process) children.push_back(start(process));
  std::uint64_t most = 0;
  std::size_t done = 0;
  int looks = 0;
  while (done < children.size()) {
    most = std::max(most, taken_by(folder.path()));
    ++looks;
    if (const pid_t victim = children[static_cast<std::size_t>(looks) % 2];
        (looks == 2 || looks == 5) && victim > 0) {
      ::kill(victim, SIGKILL);
    }
    for (pid_t& child : children) {
      int status = 0;
      if (child == 0 || ::waitpid(child, &status, WNOHANG) == 0) continue;
      if (!WIFSIGNALED(status)) {
        EXPECT_EQ(status, 0) << "256: a wrong byte; 512: never a hit";
      }
      child = 0;
      ++done;
    }
  }
  // The walk itself takes a while, in which an entry may be counted that goes as another comes.
  EXPECT_LE(most, kMost + kMost / 10);
  EXPECT_GT(most, kMost / 2);
  EXPECT_LE(taken_by(folder.path()), kMost);
  const ObjectCache last(folder.path(), 0);
  EXPECT_GE(last.tier().held_bytes, taken_by(folder.path())) << "the ledger never says too little";
}
INSTANTIATE_TEST_SUITE_P(Policies, ObjectCacheOfProcesses,
                         ::testing::Values(CachePolicy::keep, CachePolicy::lru),
                         [](const auto& policy) { return name_of(policy.param); });

TEST(ObjectCache, WritesThatFailEndTheAddingAndNothingElse) {
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS}) {
    const TemporaryFolder folder;
    const ObjectCache cache(folder.path(), kPlenty);
    store(cache, object(1), 0, 3000);
    write_error = error;
    store(cache, object(2), 0, 3000);
    write_error = 0;
    EXPECT_TRUE(has(cache, object(1), 0, 3000));
    EXPECT_FALSE(has(cache, object(2), 0, 3000));
    store(cache, object(3), 0, 3000);
    EXPECT_FALSE(has(cache, object(3), 0, 3000))
        << "not tried again until the data are opened again";
    EXPECT_THAT(cache.tier().warning, HasSubstr(errno_text(error)));
    EXPECT_THAT(cache.tier().warning, HasSubstr(folder.path().string()));
    EXPECT_EQ(cache.tier().held_bytes, 4096U) << "what was reserved is given back";
    EXPECT_EQ(entries_in(folder.path(), ".tmp.").size(), 0U);
    const ObjectCache again(folder.path(), 0);
    store(again, object(3), 0, 3000);
    EXPECT_TRUE(has(again, object(3), 0, 3000));
    EXPECT_EQ(again.tier().warning, "");
  }
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty);
  write_error = ENOMEM;
  store(cache, object(1), 0, 3000);
  write_error = 0;
  store(cache, object(1), 0, 3000);
  EXPECT_TRUE(has(cache, object(1), 0, 3000)) << "says nothing of the disk";
  EXPECT_EQ(cache.tier().warning, "");
}

TEST(ObjectCache, ReadsThatFailAreMissesAndSoonNotTriedAgain) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), kPlenty);
  for (int i = 0; i < 20; ++i) store(cache, object(i), 0, 3000);
  read_error = EIO;
  EXPECT_FALSE(has(cache, object(0), 0, 3000));
  read_error = 0;
  EXPECT_THAT(cache.tier().warning, HasSubstr(errno_text(EIO)));
  EXPECT_TRUE(has(cache, object(1), 0, 3000));
  read_error = EIO;
  for (int i = 2; i < 20; ++i) EXPECT_FALSE(has(cache, object(i), 0, 3000));
  read_error = 0;
  EXPECT_FALSE(has(cache, object(1), 0, 3000)) << "the disk is asked no more";
  EXPECT_TRUE(has(ObjectCache(folder.path(), 0), object(1), 0, 3000)) << "nothing was removed";
}

// A small disk of memory, which is really full.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path path) : path_(std::move(path)) {
    fs::create_directories(path_);
    is_mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool is_mounted() const { return is_mounted_; }
  [[nodiscard]] bool make_read_only() const {
    return ::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=256k") == 0;
  }

 private:
  fs::path path_;
  bool is_mounted_ = false;
};

TEST(ObjectCache, AFullDiskIsAWarning) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk");
  if (!disk.is_mounted()) GTEST_SKIP() << "no right to mount a small disk";
  const fs::path path = folder / "disk" / "cache";
  std::optional<ObjectCache> cache(std::in_place, path, 8 * kPlenty);
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    store(*cache, object(i), 0, 10'000);
    kept += has(*cache, object(i), 0, 10'000) ? 1 : 0;
  }
  EXPECT_GT(kept, 5);
  EXPECT_LT(kept, 25);
  EXPECT_THAT(cache->tier().warning, HasSubstr("No space left on device"));
  for (int i = 0; i < kept; ++i) EXPECT_TRUE(has(*cache, object(i), 0, 10'000)) << i;
  // A disk that can only be read is read from.
  cache.reset();
  ASSERT_TRUE(disk.make_read_only());
  const ObjectCache reading(path, 0);
  EXPECT_TRUE(has(reading, object(0), 0, 10'000));
  EXPECT_THAT(reading.tier().warning, HasSubstr("Read-only file system"));
  store(reading, object(99), 0, 10'000);
  EXPECT_FALSE(has(reading, object(99), 0, 10'000));
  EXPECT_THROW(ObjectCache(folder / "disk" / "other", 1), Error) << "nothing can be read there";
}

TEST(ObjectCache, AFolderThatIsRemovedMeanwhileIsAWarning) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder / "cache", kPlenty);
  store(cache, object(1), 0, 3000);
  fs::remove_all(folder / "cache");
  store(cache, object(2), 0, 3000);
  EXPECT_FALSE(has(cache, object(1), 0, 3000));
  EXPECT_FALSE(has(cache, object(2), 0, 3000));
  EXPECT_THAT(cache.tier().warning, HasSubstr("No such file or directory"));
}

TEST(ObjectCache, AFolderThatCannotBeMadeIsAnErrorWithTheRemedy) {
  const TemporaryFolder folder;
  folder.write("file");
  EXPECT_THAT([&] { ObjectCache(folder / "file/cache", 1); },
              ::testing::ThrowsMessage<Error>(HasSubstr("PENSTOCK_OBJECT_CACHE")));
}

TEST(ObjectCache, TheEnvironmentDescribesOne) {
  const TemporaryFolder folder;
  const auto open = [&](std::optional<std::string> megabytes, std::optional<std::string> policy) {
    const test::Variables variables({{"PENSTOCK_OBJECT_CACHE", folder.path().string()},
                                     {"PENSTOCK_OBJECT_CACHE_MB", megabytes},
                                     {"PENSTOCK_OBJECT_CACHE_POLICY", policy}});
    return open_cache({})->tier().budget_bytes;
  };
  EXPECT_EQ(open({}, {}), CacheFolder::kDefaultBytes);
  EXPECT_EQ(open("3", "lru"), 3U << 20);
  EXPECT_EQ(open({}, "keep"), 3U << 20) << "the folder's";
  EXPECT_THAT([&] { open("3", "LRU"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("'keep' or 'lru', found 'LRU'")));
  EXPECT_THAT([&] { open("-3", {}); },
              ::testing::ThrowsMessage<Error>(HasSubstr("PENSTOCK_OBJECT_CACHE_MB")));
  const test::Variables none({{"PENSTOCK_OBJECT_CACHE", std::nullopt}});
  EXPECT_EQ(open_cache({}), nullptr);
}

// Answers reads, and notes them.
class Bucket final : public ObjectStore {
 public:
  void list(const ObjectName&, bool, const std::function<bool(ListedObject&&)>&) const override {}
  Result<FileStamp> stat(const ObjectName&) const override { return FileStamp{}; }
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override {
    reads.push_back({offset, offset + into.size()});
    if (fails) return Fault{.reason = "away"};
    std::ranges::copy(contents({name.url(), stamp}, offset, into.size()), into.begin());
    return {};
  }
  mutable std::vector<ByteSpan> reads;
  bool fails = false;
};

TEST(CachedStore, AsksTheBucketForWhatIsMissingAndCounts) {
  const TemporaryFolder folder;
  const auto bucket = std::make_shared<Bucket>();
  const CachedStore cached(bucket, std::make_shared<const ObjectCache>(folder.path(), kPlenty));
  const ObjectName name{"bucket", "a.tar"};
  const FileStamp stamp{100'000, 3};
  const auto read = [&](std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> into(bytes);
    const bool is_read = static_cast<bool>(cached.read(name, stamp, offset, into));
    return is_read && into == contents({name.url(), stamp}, offset, bytes);
  };
  EXPECT_TRUE(read(1000, 500));
  EXPECT_TRUE(read(1000, 500));
  EXPECT_TRUE(read(2000, 500));
  EXPECT_TRUE(read(900, 1700));  // around both
  EXPECT_TRUE(read(900, 1700));
  EXPECT_TRUE(read(2200, 1000));
  EXPECT_THAT(bucket->reads, ElementsAre(ByteSpan{1000, 1500}, ByteSpan{2000, 2500},
                                         ByteSpan{900, 2600}, ByteSpan{2600, 3200}));
  const std::vector<StorageTier> tiers = cached.tiers();
  ASSERT_EQ(tiers.size(), 2U);
  EXPECT_EQ(tiers[0].name, "disk");
  EXPECT_EQ(tiers[0].reads, 2U);
  EXPECT_EQ(tiers[0].bytes, 500U + 1700 + 400);
  EXPECT_EQ(tiers[1].name, "bucket");
  EXPECT_EQ(tiers[1].reads, 4U);
  EXPECT_EQ(tiers[1].bytes, 500U + 500 + 1700 + 600);
  bucket->fails = true;
  EXPECT_FALSE(read(5000, 10));
  EXPECT_TRUE(read(900, 2300)) << "which needs no bucket";
}

}  // namespace
}  // namespace penstock::storage
