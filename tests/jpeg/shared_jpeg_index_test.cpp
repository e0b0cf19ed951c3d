// Processes that share what they learn of JPEGs.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

JpegKey key_of(std::uint64_t number) {
  return {.size = 1000 + number, .hash = {number * 0x9E3779B97F4A7C15U, number}};
}
JpegIndex index_of(std::uint64_t number) {
  JpegIndex index{
      .width = 640, .height = 480, .mcus_per_row = 40, .scan_bytes = 100'000, .valid_mcus = 1200};
  for (std::uint32_t k = 0; k < 5 + number % 20; ++k)
    index.entries.push_back(
        {.mcu = 40 * k,
         .byte = k == 0 ? 0 : static_cast<std::uint32_t>(1000 * k + number % 997),
         .bit = static_cast<std::uint8_t>(k % 8),
         .dc = {1, 2, 3}});
  return index;
}

class SharedJpegIndexTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  /// A process of its own, by its body; it ends with 0 if that returns true.
  template <class F>
  static pid_t in_process(const F& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    return child;
  }
  static int status_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  void expect_right(const SharedJpegIndex& index, std::uint64_t count) const {
    for (std::uint64_t k = 0; k < count; ++k) {
      const auto found = index.find(key_of(k));
      ASSERT_NE(found, nullptr) << k;
      ASSERT_EQ(*found, index_of(k)) << k;
    }
  }

  fs::path path_ =
      fs::temp_directory_path() / ("penstock-shared-index-" + std::to_string(::getpid()));
};

TEST_F(SharedJpegIndexTest, KeepsIndicesForTheNextThatOpensIt) {
  {
    SharedJpegIndex index(path_);
    EXPECT_EQ(index.find(key_of(1)), nullptr);
    for (std::uint64_t k = 0; k < 500; ++k) index.put(key_of(k), index_of(k));
    index.put(key_of(7), index_of(8));  // replaces
    EXPECT_EQ(*index.find(key_of(7)), index_of(8));
    index.put(key_of(7), index_of(7));
    EXPECT_EQ(index.size(), 500U);
  }
  const SharedJpegIndex again(path_, 1 << 20);  // the file's own limit counts
  expect_right(again, 500);
  EXPECT_EQ(again.find(key_of(500)), nullptr);
  // Its table stands before; the rest of a GiB is not taken.
  EXPECT_LT(again.bytes(), std::size_t{80} << 20);
}

TEST_F(SharedJpegIndexTest, WhatOneProcessPutsAllFind) {
  constexpr std::uint64_t kEach = 400;
  std::vector<pid_t> children;
  for (std::uint64_t process = 0; process < 4; ++process)
    children.push_back(in_process([&] {
      SharedJpegIndex index(path_);  // all of them make it
      std::vector<std::jthread> threads;
      for (std::uint64_t thread = 0; thread < 2; ++thread)
        threads.emplace_back([&, thread] {
          // Each puts its own, and some that others put, too.
          for (std::uint64_t k = thread; k < kEach + 50; k += 2)
            index.put(key_of((process * kEach + k) % (4 * kEach)),
                      index_of((process * kEach + k) % (4 * kEach)));
        });
      return true;
    }));
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  const SharedJpegIndex index(path_);
  expect_right(index, 4 * kEach);
  EXPECT_EQ(index.size(), 4 * kEach);
}

TEST_F(SharedJpegIndexTest, KillingAProcessAtAnyMomentHarmsNobody) {
  SharedJpegIndex index(path_);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = in_process([&] {
      SharedJpegIndex own(path_);
      for (std::uint64_t k = 0;; k = (k + 1) % 300) own.put(key_of(k), index_of(k));
      return false;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 * (round % 10)));
    ::kill(child, SIGKILL);
    EXPECT_EQ(WTERMSIG(status_of(child)), SIGKILL);
    for (std::uint64_t k = 0; k < 300; ++k)
      if (const auto found = index.find(key_of(k))) {
        ASSERT_EQ(*found, index_of(k));
      }
  }
  for (std::uint64_t k = 0; k < 300; ++k) index.put(key_of(k), index_of(k));
  expect_right(index, 300);
}

TEST_F(SharedJpegIndexTest, TakesNoMoreThanItMay) {
  SharedJpegIndex index(path_, 64 << 10);
  for (std::uint64_t k = 0; k < 2000; ++k) index.put(key_of(k), index_of(k));
  EXPECT_LE(index.bytes(), std::size_t{64} << 10);  // a file system may take more in its head
  EXPECT_EQ(fs::file_size(path_), std::uintmax_t{64} << 10);
  EXPECT_GT(index.size(), 100U);
  expect_right(index, 100);
  EXPECT_THROW(SharedJpegIndex(path_, 100), std::invalid_argument);
}

TEST_F(SharedJpegIndexTest, DamagedRecordsAreNotFound) {
  {
    SharedJpegIndex index(path_, 1 << 20);
    for (std::uint64_t k = 0; k < 300; ++k) index.put(key_of(k), index_of(k));
  }
  {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    for (std::streamoff at = 4096; at < 1 << 20; at += 509) {
      file.seekp(at);
      file.put('\x55');
    }
  }
  const SharedJpegIndex index(path_);
  std::size_t found = 0;
  for (std::uint64_t k = 0; k < 300; ++k)
    if (const auto one = index.find(key_of(k))) {
      ++found;
      EXPECT_EQ(*one, index_of(k));
    }
  EXPECT_LT(found, 300U);
}

// Who may write to it could end this process, by cutting it, or worse.
TEST_F(SharedJpegIndexTest, WhatOthersMayWriteToIsRefused) {
  { const SharedJpegIndex index(path_, 64 << 10); }
  for (const int mode : {0666, 0664}) {
    fs::permissions(path_, fs::perms(mode));
    EXPECT_THAT([&] { SharedJpegIndex index(path_); },
                ThrowsMessage<Error>(AllOf(HasSubstr("others may write to it"),
                                           HasSubstr("chmod go-w " + path_.string()))));
  }
  fs::permissions(path_, fs::perms(0644));
  { const SharedJpegIndex index(path_); }
  if (::chown(path_.c_str(), ::geteuid() + 1, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "only root may give a file away";
  EXPECT_THAT(
      [&] { SharedJpegIndex index(path_); },
      ThrowsMessage<Error>(AllOf(HasSubstr("is another user's"), HasSubstr("name another"))));
}

TEST_F(SharedJpegIndexTest, AnotherVersionIsRefusedByName) {
  { const SharedJpegIndex index(path_, 64 << 10); }
  std::string mark(16, '\0');
  std::ifstream(path_, std::ios::binary).read(mark.data(), 16);
  const std::size_t at = mark.find('1');
  ASSERT_EQ(mark.substr(0, at + 2), "pnstk shared 1\n");
  mark[at] = '2';
  std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out) << mark;
  EXPECT_THAT([&] { SharedJpegIndex index(path_); },
              ThrowsMessage<Error>(AllOf(HasSubstr(path_.string()), HasSubstr("kind or version"))));
}

TEST_F(SharedJpegIndexTest, OtherFilesAreRefusedByName) {
  std::ofstream(path_) << "penstock jpeg index 1\n";
  EXPECT_THAT([&] { SharedJpegIndex index(path_); },
              ThrowsMessage<Error>(HasSubstr("of another kind or version")));
  EXPECT_THAT([] { SharedJpegIndex index("/nowhere/index"); },
              ThrowsMessage<Error>(HasSubstr("/nowhere/index: cannot be made: No such file")));
  EXPECT_THAT([] { SharedJpegIndex index("s3://bucket/index"); },
              ThrowsMessage<Error>(HasSubstr("expected a local file")));
  fs::remove(path_);
  { const SharedJpegIndex index(path_, 64 << 10); }
  fs::resize_file(path_, 60'000);  // cut
  EXPECT_THROW(SharedJpegIndex index(path_), Error);
}

}  // namespace
}  // namespace penstock
