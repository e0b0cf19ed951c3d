#include "src/storage/object_cache.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "tests/source/shards.hpp"

namespace penstock::storage {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// Bytes that tell whose they are.
std::string contents(int number, std::size_t bytes) {
  std::string text = fmt::format("object {} ", number);
  while (text.size() < bytes) text += static_cast<char>('a' + (number + text.size()) % 26);
  text.resize(bytes);
  return text;
}
std::string key_of(int number) { return fmt::format("s3://bucket/{}\n1 2", number); }

void store(const ObjectCache& cache, int number, std::size_t bytes) {
  const std::string text = contents(number, bytes);
  cache.store(key_of(number), std::as_bytes(std::span(text)));
}

// -1: there is none; 0: there is one, and it is wrong.
int found(const ObjectCache& cache, int number, std::size_t bytes) {
  std::string text(bytes, '?');
  if (!cache.find(key_of(number), std::as_writable_bytes(std::span(text)))) return -1;
  return text == contents(number, bytes) ? 1 : 0;
}

std::uint64_t taken_by(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored)) {
    const auto size = it->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

TEST(ObjectCache, WritesToNoFileOfOthers) {
  const TemporaryFolder folder;
  const fs::path victim = folder.write("victim", std::string(100, 'v'));
  const ObjectCache cache(folder / "cache", 1 << 20);
  store(cache, 1, 5000);
  fs::remove(folder / "cache" / ".lock");
  fs::create_symlink(victim, folder / "cache" / ".lock");
  store(cache, 2, 5000);
  std::string held(100, '?');
  std::ifstream(victim).read(held.data(), 100);
  EXPECT_EQ(held, std::string(100, 'v'));
  EXPECT_THROW(ObjectCache(folder / "cache", 1 << 20), Error);
}

TEST(ObjectCache, GivesBackWhatWasStoredAndNothingElse) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder / "cache", 1 << 20);
  EXPECT_EQ(found(cache, 1, 5000), -1);
  store(cache, 1, 5000);
  store(cache, 2, 0);
  EXPECT_EQ(found(cache, 1, 5000), 1);
  EXPECT_EQ(found(cache, 2, 0), 1);
  EXPECT_EQ(found(cache, 3, 5000), -1);
  EXPECT_EQ(found(ObjectCache(folder / "cache", 1), 1, 5000), 1);  // another process, say
  EXPECT_EQ(found(cache, 1, 4999), -1);                            // is not what was stored
}

TEST(ObjectCache, ADamagedEntryIsNoneAndIsRemoved) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 1 << 20);
  store(cache, 1, 300);
  const fs::path path = cache.path_of(key_of(1));
  const std::string good = test::read_text(path);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 4;
    std::ofstream(path, std::ios::binary) << bad;
    ASSERT_EQ(found(cache, 1, 300), -1) << at;
    ASSERT_FALSE(fs::exists(path)) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{40}, good.size() - 1}) {
    std::ofstream(path, std::ios::binary) << good.substr(0, size);
    EXPECT_EQ(found(cache, 1, 300), -1);
  }
  store(cache, 1, 300);
  EXPECT_EQ(found(cache, 1, 300), 1);
}

TEST(ObjectCache, AnEntryUnderAnothersNameIsNone) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 1 << 20);
  store(cache, 1, 300);
  fs::create_directories(cache.path_of(key_of(2)).parent_path());
  fs::copy_file(cache.path_of(key_of(1)), cache.path_of(key_of(2)));
  EXPECT_EQ(found(cache, 2, 300), -1);
  EXPECT_EQ(found(cache, 1, 300), 1);
}

TEST(ObjectCache, WhatWasUsedLongestAgoGoesFirst) {
  const TemporaryFolder folder;
  constexpr std::size_t kBytes = 3000;  // takes a block of 4096 with its head
  const ObjectCache cache(folder.path(), 10 * 4096);
  for (int i = 0; i < 10; ++i) {
    store(cache, i, kBytes);
    // Times that differ, on whatever clock the file system has.
    const struct timespec used[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ::utimensat(AT_FDCWD, cache.path_of(key_of(i)).c_str(), used, 0);
  }
  EXPECT_EQ(found(cache, 0, kBytes), 1);  // used now
  store(cache, 10, kBytes);
  EXPECT_EQ(found(cache, 0, kBytes), 1);
  EXPECT_EQ(found(cache, 1, kBytes), -1);
  EXPECT_EQ(found(cache, 9, kBytes), 1);
  EXPECT_EQ(found(cache, 10, kBytes), 1);
  store(cache, 11, 50'000);  // larger than all of it
  EXPECT_EQ(found(cache, 11, 50'000), -1);
  EXPECT_EQ(found(cache, 9, kBytes), 1);
}

TEST(ObjectCache, LeavesOthersFilesAloneAndTakesDeadProcessesAway) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 3 * 4096);
  folder.write("00/mine.txt", std::string(100'000, 'x'));
  folder.write("notes", "mine too");
  const fs::path dead = folder.write("00/" + std::string(32, 'a') + ".tmp.1.0", "half");
  const struct timespec old[2] = {{1000, 0}, {1000, 0}};
  ::utimensat(AT_FDCWD, dead.c_str(), old, 0);
  for (int i = 0; i < 10; ++i) store(cache, i, 3000);
  EXPECT_EQ(found(cache, 9, 3000), 1);
  EXPECT_TRUE(fs::exists(folder / "00/mine.txt"));
  EXPECT_TRUE(fs::exists(folder / "notes"));
  EXPECT_FALSE(fs::exists(dead));
}

TEST(ObjectCache, ADamagedLedgerIsCountedAnew) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path(), 8 * 4096);
  for (int i = 0; i < 8; ++i) store(cache, i, 3000);
  for (const char* text : {"", "x", "0123456789abcdef"}) {
    std::ofstream(folder / ".lock", std::ios::binary) << text;
    store(cache, 20 + text[0], 3000);
    EXPECT_EQ(found(cache, 20 + text[0], 3000), 1);
    EXPECT_LE(taken_by(folder.path()), 8 * 4096 + 16U);
  }
}

// Four processes, a cache that holds a quarter of what they use, and a limit that is looked at all
// the time.
TEST(ObjectCache, SeveralProcessesKeepToTheLimitAndNeverSeeAWrongByte) {
  const TemporaryFolder folder;
  constexpr std::uint64_t kMost = 40 * 4096;
  constexpr int kObjects = 100;
  constexpr int kRounds = 600;
  constexpr std::size_t kBytes = 3500;
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 4; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      const ObjectCache cache(folder.path(), kMost);
      unsigned draw = process + 1;
      bool wrong = false;
      int hits = 0;
      for (int i = 0; i < kRounds; ++i) {
        draw = draw * 1664525 + 1013904223;
        const int number = static_cast<int>(draw >> 16) % kObjects;
        const int state = found(cache, number, kBytes);
        wrong = wrong || state == 0;
        hits += state == 1 ? 1 : 0;
        if (state == -1) store(cache, number, kBytes);
      }
      ::_exit(wrong ? 1 : hits == 0 ? 2 : 0);
    }
    children.push_back(child);
  }
  std::uint64_t most = 0;
  std::size_t done = 0;
  while (done < children.size()) {
    most = std::max(most, taken_by(folder.path()));
    for (pid_t& child : children) {
      int status = 0;
      if (child == 0 || ::waitpid(child, &status, WNOHANG) == 0) continue;
      EXPECT_EQ(status, 0) << "1: a wrong byte; 2: never a hit";
      child = 0;
      ++done;
    }
  }
  // The walk itself takes a while, in which an entry may be counted that goes as another comes.
  EXPECT_LE(most, kMost + kMost / 10);
  EXPECT_GT(most, kMost / 2);
  EXPECT_LE(taken_by(folder.path()), kMost);
}

TEST(ObjectCache, AFolderThatCannotBeMadeIsAnErrorWithTheRemedy) {
  const TemporaryFolder folder;
  folder.write("file");
  EXPECT_THAT([&] { ObjectCache(folder / "file/cache", 1); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("PENSTOCK_OBJECT_CACHE")));
  EXPECT_THROW(ObjectCache(folder / "cache", 0), std::invalid_argument);
}

}  // namespace
}  // namespace penstock::storage
