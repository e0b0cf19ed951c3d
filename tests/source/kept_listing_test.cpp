// Listings of folders that are kept: the same files in the same order as without, never one that has changed.
#include "src/source/folder/kept_listing.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/images.hpp>

#include "src/storage/local/file_lock.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using source::FileList;
using source::ListOptions;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::vector<std::string> paths_of(const FileList& list) {
  std::vector<std::string> paths;
  for (std::uint64_t file = 0; file < list.size(); ++file) paths.push_back(list.path(file));
  return paths;
}

class KeptListing : public ::testing::Test {
 protected:
  KeptListing() {
    options_.endings = {".jpg"};
    options_.keep_from = 1;
    options_.cache = cache_.path();
    options_.settled_after = std::chrono::seconds(0);
  }

  // Lists; `has_listed_` says whether folders were listed for it.
  FileList list() {
    FileList list;
    has_listed_ = false;
    with_progress([&](const Progress&) { has_listed_ = true; },
                  [&] { list = source::list_files(data_.path(), options_, storage_); });
    return list;
  }
  // What would be listed now.
  std::vector<std::string> paths() {
    ListOptions options = options_;
    options.keep = false;
    return paths_of(source::list_files(data_.path(), options, storage_));
  }
  std::vector<fs::path> kept_files() const {
    std::vector<fs::path> files;
    if (!fs::exists(cache_ / "listings")) return files;
    for (const auto& entry : fs::directory_iterator(cache_ / "listings"))
      files.push_back(entry.path());
    return files;
  }

  TemporaryFolder data_;
  TemporaryFolder cache_;
  ListOptions options_;
  storage::Storage storage_;
  bool has_listed_ = false;
};

TEST_F(KeptListing, NumbersFilesByTheBytesOfTheirPathsInAnyFolders) {
  std::vector<std::string> expected;
  for (const char* folder : {"a/", "a/b/", "a/b.c/", "a-/", "b/c/d/", "b/"})
    for (int i = 0; i < 37; ++i) expected.push_back(fmt::format("{}{}.jpg", folder, i * 7919));
  for (const char* name : {"a/b", "a/\x80\xff", "a/\n", "a/b.", "b/c0", "b/z"})
    expected.push_back(std::string(name) + ".jpg");
  for (const std::string& path : expected) data_.write(path);
  std::ranges::sort(expected);

  const FileList first = list();
  EXPECT_TRUE(has_listed_);
  EXPECT_EQ(paths_of(first), expected);
  const FileList again = list();
  EXPECT_FALSE(has_listed_);
  EXPECT_EQ(paths_of(again), expected);
  EXPECT_EQ(again.hash(), first.hash());
  EXPECT_THAT(again.class_names(), ElementsAre("a", "a-", "b"));
  for (std::uint64_t file = 0; file < again.size(); ++file)
    EXPECT_EQ(*again[file].label, expected[file][0] == 'b' ? 2 : expected[file][1] == '-' ? 1 : 0);
}

TEST_F(KeptListing, HasTheHashOfTheNamesAndFoldersOfEachFile) {
  for (const char* path : {"a/1.jpg", "a/b/2.jpg", "a/c.jpg", "d/3.jpg"}) data_.write(path);
  const auto hash_of_numbers = [](const std::vector<std::uint32_t>& numbers) {
    return hash_text({reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4});
  };
  const auto zero_ended = [](std::string_view text) {
    std::string with_zeros(text);
    std::ranges::replace(with_zeros, '|', '\0');
    return with_zeros;
  };
  // As it was before listings were kept: plans and states have it.
  const std::string expected =
      hash_text(hash_text(zero_ended("|a/|a/b/|d/|")) +
                hash_text(zero_ended("1.jpg|2.jpg|c.jpg|3.jpg|")) + hash_of_numbers({1, 2, 1, 3}));
  EXPECT_EQ(list().hash(), expected);
  EXPECT_EQ(list().hash(), expected);
  const std::vector<std::string_view> paths{"a/1.jpg", "b/2.jpg", "a/c.jpg"};
  EXPECT_EQ(FileList(paths).hash(),
            hash_text(hash_text(zero_ended("a/|b/|")) +
                      hash_text(zero_ended("1.jpg|2.jpg|c.jpg|")) + hash_of_numbers({0, 1, 0})));
}

TEST_F(KeptListing, ListsFoldersThatHaveChangedAgain) {
  for (const char* path : {"a/1.jpg", "a/b/2.jpg", "c/3.jpg", "c/note.txt"}) data_.write(path);
  (void)list();
  const auto expect_now = [&] {
    const FileList now = list();
    EXPECT_TRUE(has_listed_);
    EXPECT_EQ(paths_of(now), paths());
    const FileList again = list();
    EXPECT_FALSE(has_listed_);
    EXPECT_EQ(paths_of(again), paths());
    EXPECT_EQ(again.left_out().counts.text(), now.left_out().counts.text());
  };
  data_.write("a/b/0.jpg");
  expect_now();
  fs::remove(data_ / "a/1.jpg");
  expect_now();
  fs::rename(data_ / "c/3.jpg", data_ / "c/4.jpg");
  expect_now();
  data_.write("c/deep/er/5.jpg");
  expect_now();
  data_.write("e/6.jpg");
  expect_now();
  EXPECT_THAT(list().class_names(), ElementsAre("a", "c", "e"));
  data_.write("a/b/other.txt");
  expect_now();
  EXPECT_EQ(list().left_out().counts.text(), "2 .txt");
  fs::remove_all(data_ / "a/b");
  data_.write("a/7.jpg");
  expect_now();
  // Other times, and the same names.
  data_.write("c/passing.jpg");
  fs::remove(data_ / "c/passing.jpg");
  expect_now();
  // With its old time of modification, as unpacking sets it.
  const auto before = fs::last_write_time(data_ / "c");
  data_.write("c/8.jpg");
  fs::last_write_time(data_ / "c", before);
  expect_now();
}

TEST_F(KeptListing, OfAFlatFolderThatGetsASubFolder) {
  for (int i = 0; i < 100; ++i) data_.write(fmt::format("{:03}.jpg", i));
  (void)list();
  fs::remove(data_ / "001.jpg");
  data_.write("001.jpg/in.jpg");
  EXPECT_THAT([&] { (void)list(); }, ThrowsMessage<Error>(::testing::HasSubstr(
                                         "images both directly in it (000.jpg) and in "
                                         "sub-folders (001.jpg/in.jpg)")));
}

TEST_F(KeptListing, DoesNotTrustAFolderThatWasChangedJustNow) {
  options_.settled_after.reset();
  data_.write("a/1.jpg");
  (void)list();
  EXPECT_THAT(kept_files(), IsEmpty());
  data_.write("a/2.jpg");
  EXPECT_THAT(paths_of(list()), ElementsAre("a/1.jpg", "a/2.jpg"));
}

TEST_F(KeptListing, IsNotKeptWhereALinkMayLeadElsewhereLater) {
  TemporaryFolder other;
  data_.write("a/1.jpg");
  fs::create_symlink(other / "later", data_ / "a/link");
  EXPECT_THAT(list(), SizeIs(1));
  fs::create_directory(other / "later");
  other.write("later/2.jpg");
  EXPECT_THAT(paths_of(list()), ElementsAre("a/1.jpg", "a/link/2.jpg"));
}

TEST_F(KeptListing, IsOfOneFolderAndItsOptions) {
  for (const char* path : {"a/1.jpg", "a/1.png", "b/2.jpg"}) data_.write(path);
  EXPECT_THAT(list(), SizeIs(2));
  options_.endings = {".jpg", ".png"};
  EXPECT_THAT(list(), SizeIs(3));
  options_.classes = {"b", "a"};
  EXPECT_EQ(*list()[0].label, 1);
  EXPECT_EQ(*list()[0].label, 1);
  EXPECT_FALSE(has_listed_);
  EXPECT_THAT(kept_files(), SizeIs(3));
  options_.sniff = true;
  EXPECT_THAT(list(), SizeIs(3));
  EXPECT_THAT(list(), SizeIs(3));
  EXPECT_TRUE(has_listed_);
  EXPECT_THAT(kept_files(), SizeIs(3));
}

TEST_F(KeptListing, IsOfLargeFoldersOnly) {
  data_.write("a/1.jpg");
  options_.keep_from = 2;
  (void)list();
  EXPECT_THAT(kept_files(), IsEmpty());
  data_.write("a/2.jpg");
  (void)list();
  EXPECT_THAT(kept_files(), SizeIs(1));
}

TEST_F(KeptListing, IsNotUsedWhenItIsDamaged) {
  for (int i = 0; i < 20; ++i) data_.write(fmt::format("a/{}.jpg", i));
  data_.write("a/x.txt");
  const std::vector<std::string> expected = paths_of(list());
  const fs::path file = kept_files().at(0);
  std::ifstream input(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(input), {}};
  const auto read = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return FileList::read(storage::map_file(file)).has_value();
  };
  EXPECT_TRUE(read(whole));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(read(damaged)) << at;
    EXPECT_FALSE(read(whole.substr(0, at))) << at;
  }
  EXPECT_FALSE(read(whole + std::string(8, '\0')));
  EXPECT_EQ(paths_of(list()), expected);
  EXPECT_TRUE(has_listed_);
  EXPECT_EQ(paths_of(list()), expected);
  EXPECT_FALSE(has_listed_);
}

TEST_F(KeptListing, StaysInMemoryWhereNothingCanBeWritten) {
  data_.write("a/1.jpg");
  cache_.write("listings", "no folder");
  EXPECT_THAT(paths_of(list()), ElementsAre("a/1.jpg"));
  EXPECT_THAT(paths_of(list()), ElementsAre("a/1.jpg"));
  EXPECT_TRUE(has_listed_);
}

TEST_F(KeptListing, WaitsForAProcessThatListsTheSameFolder) {
  data_.write("a/1.jpg");
  const std::vector<std::string> expected = paths_of(list());
  const fs::path file = kept_files().at(0);
  fs::rename(file, cache_ / "made by the other");
  const storage::FileDescriptor folder(::open(data_.path().c_str(), O_RDONLY | O_DIRECTORY));
  auto lock = std::make_optional<storage::FileLock>(folder.get());
  ASSERT_TRUE(lock->take());
  std::promise<void> has_begun;
  int ends = 0;
  auto listed = std::async(std::launch::async, [&] {
    FileList list;
    with_progress(
        [&](const Progress& progress) {
          if (progress.has_ended && ++ends == 1) has_begun.set_value();
        },
        [&] { list = source::list_files(data_.path(), options_, storage_); });
    return list;
  });
  has_begun.get_future().wait();
  EXPECT_EQ(listed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  fs::rename(cache_ / "made by the other", file);
  lock.reset();
  EXPECT_EQ(paths_of(listed.get()), expected);
  EXPECT_EQ(ends, 1) << "it was listed twice";
}

TEST_F(KeptListing, EndsWhenItIsWantedNoLonger) {
  for (int i = 0; i < 5000; ++i) data_.write(fmt::format("a/{}.jpg", i), "");
  std::stop_source stop;
  EXPECT_THAT(
      [&] {
        with_progress([&](const Progress&) { stop.request_stop(); },
                      [&] {
                        interruptible(stop.get_token(), [&] {
                          (void)source::list_files(data_.path(), options_, storage_);
                        });
                      });
      },
      ThrowsMessage<Error>("the work was stopped"));
  EXPECT_THAT(kept_files(), IsEmpty());
  EXPECT_THAT(list(), SizeIs(5000));
}

TEST_F(KeptListing, TellsHowFarItIs) {
  for (int i = 0; i < 3000; ++i) data_.write(fmt::format("a/{}.jpg", i), "");
  std::vector<Progress> told;
  with_progress([&](const Progress& progress) { told.push_back(progress); },
                [&] { (void)source::list_files(data_.path(), options_, storage_); });
  ASSERT_THAT(told, ::testing::Not(IsEmpty()));
  EXPECT_EQ(told.back().what, "listing " + data_.path().string());
  EXPECT_EQ(told.back().unit, "files");
  EXPECT_EQ(told.back().done, 3000U);
  EXPECT_TRUE(told.back().has_ended);
  EXPECT_THROW(with_progress([](const Progress&) { throw std::runtime_error("enough"); },
                             [&] {
                               options_.keep = false;
                               (void)source::list_files(data_.path(), options_, storage_);
                             }),
               std::runtime_error);
}

TEST_F(KeptListing, IsListedByManyThreadsAtOnce) {
  for (int i = 0; i < 200; ++i) data_.write(fmt::format("{}/{}/{}.jpg", i % 7, i % 31, i));
  const std::vector<std::string> expected = paths();
  std::vector<std::future<FileList>> lists;
  for (int i = 0; i < 8; ++i)
    lists.push_back(std::async(
        std::launch::async, [&] { return source::list_files(data_.path(), options_, storage_); }));
  for (auto& one : lists) EXPECT_EQ(paths_of(one.get()), expected);
}

}  // namespace
}  // namespace penstock
