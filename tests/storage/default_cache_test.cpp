// Where what can be made again is kept, and where it must not be.
#include "src/storage/default_cache.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/source/files.hpp"
#include "tests/variables.hpp"

namespace penstock::storage {
namespace {

namespace fs = std::filesystem;

TEST(DefaultCache, InTheTemporaryFolderItIsThisUsersAloneOrNone) {
  const test::TemporaryFolder folder;
  const test::Variables variables({{"PENSTOCK_CACHE", std::nullopt},
                                   {"XDG_CACHE_HOME", std::nullopt},
                                   {"HOME", std::nullopt},
                                   {"TMPDIR", folder.path().string()}});
  const fs::path expected = folder.path() / fmt::format("penstock-{}", ::getuid());
  EXPECT_EQ(default_cache(), expected);
  EXPECT_EQ(fs::status(expected).permissions(), fs::perms(0700));
  EXPECT_EQ(default_cache(), expected) << "made a moment ago";

  fs::permissions(expected, fs::perms(0777));
  EXPECT_THROW((void)default_cache(), fs::filesystem_error) << "anybody could write to it";
  fs::remove(expected);
  fs::create_directory_symlink(folder.path(), expected);
  EXPECT_THROW((void)default_cache(), fs::filesystem_error) << "somebody's link";
  fs::remove(expected);
  if (::getuid() != 0) return;  // only root can make another's folder
  fs::create_directory(expected);
  ASSERT_EQ(::chown(expected.c_str(), 65534, 65534), 0);
  EXPECT_THROW((void)default_cache(), fs::filesystem_error) << "another user's";
}

}  // namespace
}  // namespace penstock::storage
