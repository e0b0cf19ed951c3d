// Files that are replaced whole, and those that must not be replaced.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class WriteFile : public testing::Test {
 protected:
  WriteFile() {
    std::string name = (fs::temp_directory_path() / "penstock_write_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~WriteFile() override { fs::remove_all(folder_); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};

TEST_F(WriteFile, ReplacesAFileAndKeepsItsPermissions) {
  const fs::path file = folder_ / "state";
  write_file(file, "first");
  EXPECT_EQ(text_of(file), "first");
  fs::permissions(file, fs::perms(0600));
  write_file(file, std::string(3'000'000, 'x'));
  EXPECT_EQ(text_of(file), std::string(3'000'000, 'x'));
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0600));
  write_file(file, "");
  EXPECT_EQ(fs::file_size(file), 0U);
  EXPECT_EQ(files(), 1U);
}

// Whoever writes may not give the new file to the old one's owner, and shows it to nobody else.
TEST_F(WriteFile, AFileOfAnotherUserStaysAsPrivateAsItWas) {
  fs::permissions(folder_, fs::perms(0777));
  for (const auto& [before, after] : {std::pair{0600, 0600}, {0640, 0600}, {0664, 0644}}) {
    const fs::path file = folder_ / "state";
    write_file(file, "old");
    (void)!::chown(file.c_str(), ::geteuid(), 12345);  // of a group that the child is not in
    fs::permissions(file, fs::perms(before));
    const auto said = test::without_root([&] {
      write_file(file, "new");
      return std::string("written");
    });
    if (!said || ::geteuid() != 0) GTEST_SKIP() << "needs root, and a child without its rights";
    ASSERT_EQ(*said, "written");
    EXPECT_EQ(fs::status(file).permissions(), fs::perms(after)) << std::oct << before;
    fs::remove(file);
  }
}

TEST_F(WriteFile, FollowsLinks) {
  fs::create_directory(folder_ / "far");
  const fs::path target = folder_ / "far" / "state";
  fs::create_symlink("far/state", folder_ / "near");
  fs::create_symlink(folder_ / "near", folder_ / "nearer");
  write_file(folder_ / "nearer", "made behind two links");
  EXPECT_TRUE(fs::is_symlink(folder_ / "nearer") && fs::is_symlink(folder_ / "near"));
  EXPECT_EQ(text_of(target), "made behind two links");
  write_file(folder_ / "near", "replaced");
  EXPECT_EQ(text_of(target), "replaced");
  EXPECT_TRUE(fs::is_symlink(folder_ / "near"));

  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_THAT([&] { write_file(folder_ / "circle", "text"); },
              ThrowsMessage<Error>(HasSubstr("symbolic links")));
}

TEST_F(WriteFile, WritesToPipesAndDevicesInsteadOfReplacingThem) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = text_of(pipe); });
  write_file(pipe, "through a pipe");
  reader.join();
  EXPECT_EQ(read, "through a pipe");
  EXPECT_TRUE(fs::is_fifo(pipe));

  EXPECT_THAT([] { write_file("/dev/full", "text"); },
              ThrowsMessage<Error>(HasSubstr("cannot write /dev/full: No space left on device")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  const fs::path null = folder_ / "null";
  if (::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0)
    GTEST_SKIP() << "only root may make a device";
  fs::create_symlink("null", folder_ / "link");
  for (const fs::path& device : {null, folder_ / "link"}) {
    try {
      write_file(device, "text");
    } catch (const Error&) {  // a mount without devices refuses to open it
    }
    EXPECT_TRUE(fs::is_character_file(device));
  }
  EXPECT_EQ(files(), 3U);
}

// The standard output may be a regular file: what a program prints later follows.
TEST_F(WriteFile, TheStandardOutputIsWrittenTo) {
  const fs::path out = folder_ / "out";
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    ::dup2(file, STDOUT_FILENO);
    bool written = ::write(STDOUT_FILENO, "before\n", 7) == 7;
    write_file("/dev/stdout", "between\n");
    written = written && ::write(STDOUT_FILENO, "after\n", 6) == 6;
    ::_exit(written ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text_of(out), "before\nbetween\nafter\n");
}

TEST_F(WriteFile, WhatCannotBeWrittenLeavesTheOldAndNothingBeside) {
  const fs::path file = folder_ / "state";
  write_file(file, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit least{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &least);
    try {
      write_file(file, std::string(1'000'000, 'x'));
    } catch (const Error&) {
      ::_exit(7);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(text_of(file), "old");
  EXPECT_EQ(files(), 1U);
  EXPECT_THAT([&] { write_file(folder_, "text"); },
              ThrowsMessage<Error>(HasSubstr("Is a directory")));
  EXPECT_THAT([&] { write_file(folder_ / "none" / "state", "text"); },
              ThrowsMessage<Error>(HasSubstr("No such file or directory; check its folder")));
  EXPECT_THAT([&] { write_file("", "text"); }, testing::Throws<Error>());
}

}  // namespace
}  // namespace penstock
