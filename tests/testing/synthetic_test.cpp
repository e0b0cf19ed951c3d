#include <atomic>
#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/testing/synthetic.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::text_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

// Every file of a set by its relative path.
std::map<std::string, std::string> contents(const fs::path& set) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(set)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), set).string()] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

// What lies in the cache beside finished sets and their locks.
std::vector<std::string> leftovers(const fs::path& cache) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(cache)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".tmp.") != std::string::npos) names.push_back(name);
  }
  return names;
}

TEST(Synthetic, IsTheSameSetForAnyNumberOfThreads) {
  const TemporaryFolder one;
  const TemporaryFolder other;
  const auto first = source::synthetic_image_folder(
      {.count = 12, .seed = 3, .classes = 4, .cache = one.path(), .threads = 1});
  const auto second = source::synthetic_image_folder(
      {.count = 12, .seed = 3, .classes = 4, .cache = other.path(), .threads = 5});
  const auto files = contents(first);
  EXPECT_EQ(files.size(), 13U) << "12 images and a manifest";
  EXPECT_TRUE(files == contents(second));
}

TEST(Synthetic, HasAnotherFolderFingerprintAndImagesForOtherParameters) {
  const TemporaryFolder cache;
  SyntheticImagesOptions options{.count = 4, .classes = 2, .cache = cache.path()};
  const SourcePtr zero = source::synthetic_images(options);
  options.seed = 1;
  const SourcePtr one = source::synthetic_images(options);
  EXPECT_NE(zero->fingerprint(), one->fingerprint());
  Record a;
  Record b;
  ASSERT_TRUE(zero->read(0, a));
  ASSERT_TRUE(one->read(0, b));
  EXPECT_NE(text_of(a[0]), text_of(b[0]));
  options.classes = 4;
  EXPECT_EQ(source::synthetic_images(options)->class_names().size(), 4U);
  EXPECT_EQ(zero->class_names().size(), 2U);
}

TEST(Synthetic, SpreadsItsImagesOverTheClassesInTurn) {
  const TemporaryFolder cache;
  const SourcePtr source =
      source::synthetic_images({.count = 7, .classes = 3, .cache = cache.path()});
  EXPECT_THAT(source->class_names(), ElementsAre("class_00", "class_01", "class_02"));
  std::vector<int> counts(3);
  Record record;
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    ASSERT_TRUE(source->read(i, record));
    ++counts[static_cast<std::size_t>(*record[1].data<std::int64_t>())];
  }
  EXPECT_THAT(counts, ElementsAre(3, 2, 2));
}

TEST(Synthetic, IsMadeOnceAndReportsProgressOnTheCallingThread) {
  const TemporaryFolder cache;
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  const auto caller = std::this_thread::get_id();
  SyntheticImagesOptions options{.count = 9, .classes = 2, .cache = cache.path()};
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_GE(done, last);
    last = done;
    total = all;
  };
  const fs::path set = source::synthetic_image_folder(options);
  EXPECT_EQ(last, 9U);
  EXPECT_EQ(total, 9U);
  const auto made = fs::last_write_time(set);
  options.progress = [](std::uint64_t, std::uint64_t) { FAIL() << "it is there already"; };
  EXPECT_EQ(source::synthetic_image_folder(options), set);
  EXPECT_EQ(fs::last_write_time(set), made);
}

TEST(Synthetic, EndsWithWhatProgressThrowsAndLeavesNothing) {
  const TemporaryFolder cache;
  SyntheticImagesOptions options{.count = 1000, .cache = cache.path(), .threads = 1};
  options.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); };
  EXPECT_THAT([&] { (void)source::synthetic_images(options); },
              ThrowsMessage<std::runtime_error>("enough"));
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
}

TEST(Synthetic, NeverUsesAndRemovesWhatAKilledProcessLeft) {
  const TemporaryFolder cache;
  SyntheticImagesOptions options{.count = 200, .classes = 2, .cache = cache.path(), .threads = 1};
  const pid_t child = ::fork();
  if (child == 0) {
    options.progress = [](std::uint64_t, std::uint64_t) { ::raise(SIGKILL); };
    (void)source::synthetic_image_folder(options);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "200 images were written in under 100 ms";
  ASSERT_EQ(leftovers(cache.path()).size(), 1U);

  options.threads = 0;
  const SourcePtr source = source::synthetic_images(options);
  EXPECT_EQ(source->size(), 200U);
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
}

TEST(Synthetic, EndsWellForProcessesThatRace) {
  const TemporaryFolder cache;
  const SyntheticImagesOptions options{
      .count = 10, .classes = 2, .cache = cache.path(), .threads = 1};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool right = false;
      try {
        right = source::synthetic_images(options)->size() == 10;
      } catch (const std::exception&) {
      }
      ::_exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
  EXPECT_EQ(contents(source::synthetic_image_folder(options)).size(), 11U);
}

TEST(Synthetic, EndsWellForThreadsThatRace) {
  const TemporaryFolder cache;
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        right += source::synthetic_images(
                     {.count = 10, .classes = 2, .cache = cache.path(), .threads = 1})
                     ->size() == 10;
      });
    }
  }
  EXPECT_EQ(right, 4);
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
}

TEST(Synthetic, NamesACacheThatCannotBeMadeAndTheRemedy) {
  const TemporaryFolder folder;
  const auto file = folder.write("file");
  EXPECT_THAT([&] { (void)source::synthetic_images({.count = 1, .cache = file / "below"}); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr((file / "below").string()), HasSubstr("set PENSTOCK_CACHE"))));
}

TEST(Synthetic, NamesACacheThatMayNotBeWrittenAndTheRemedy) {
  const TemporaryFolder cache;
  fs::permissions(cache.path(), fs::perms{0555});
  const auto said = test::without_root([&] {
    (void)source::synthetic_images({.count = 1, .cache = cache.path()});
    return std::string("made");
  });
  fs::permissions(cache.path(), fs::perms{0755});
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_THAT(*said, AllOf(HasSubstr(cache.path().string()), HasSubstr("Permission denied"),
                           HasSubstr("set PENSTOCK_CACHE")));
}

TEST(Synthetic, UsesASetInACacheThatMayNotBeWritten) {
  const TemporaryFolder cache;
  const SyntheticImagesOptions options{.count = 2, .classes = 1, .cache = cache.path()};
  (void)source::synthetic_images(options);
  fs::permissions(cache.path(), fs::perms{0555});
  const auto said = test::without_root(
      [&] { return std::to_string(source::synthetic_images(options)->size()) + " images"; });
  fs::permissions(cache.path(), fs::perms{0755});
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_EQ(*said, "2 images");
}

TEST(Synthetic, SaysThatADiskIsFullAndCleansUp) {
  const TemporaryFolder cache;
  fs::permissions(cache.path(), fs::perms{0777});
  // A limit on the size of files fails a write half-way, as a full disk does.
  const auto said = test::without_root([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    (void)source::synthetic_images({.count = 4, .cache = cache.path()});
    return std::string("made");
  });
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_THAT(*said, AllOf(StartsWith("cannot write " + cache.path().string()),
                           HasSubstr("File too large"), HasSubstr("set PENSTOCK_CACHE")));
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
}

TEST(Synthetic, SaysAtOnceThatThereIsNoRoom) {
  const TemporaryFolder cache;
  EXPECT_THAT(
      [&] { (void)source::synthetic_images({.count = 1'000'000'000'000, .cache = cache.path()}); },
      ThrowsMessage<Error>(AllOf(HasSubstr(cache.path().string()),
                                 HasSubstr("No space left on device"), HasSubstr("make room"))));
  EXPECT_THAT(leftovers(cache.path()), IsEmpty());
}

TEST(Synthetic, RefusesAFolderInTheWayOfASetBeforeItWritesAnything) {
  const TemporaryFolder cache;
  cache.write("images-1000-seed0-classes10-v1/manifest.txt", "something else");
  const SyntheticImagesOptions options{
      .cache = cache.path(),
      .progress = [](std::uint64_t, std::uint64_t) { ADD_FAILURE() << "images are written"; }};
  EXPECT_THAT(
      [&] { (void)source::synthetic_images(options); },
      ThrowsMessage<Error>(AllOf(HasSubstr((cache / "images-1000-seed0-classes10-v1").string()),
                                 HasSubstr("is in the way"), HasSubstr("delete the folder"))));
}

TEST(Synthetic, NoticesThatImagesWereRemoved) {
  const TemporaryFolder cache;
  const SyntheticImagesOptions options{.count = 3, .classes = 1, .cache = cache.path()};
  const SourcePtr source = source::synthetic_images(options);
  fs::remove(source->location(1));
  EXPECT_THAT([&] { (void)source::synthetic_images(options); },
              ThrowsMessage<Error>(HasSubstr("holds 2 images, expected 3")));
}

TEST(Synthetic, RefusesMisuse) {
  EXPECT_THROW((void)source::synthetic_images({.count = 0}), std::invalid_argument);
  EXPECT_THROW((void)source::synthetic_images({.classes = 0}), std::invalid_argument);
  EXPECT_THROW((void)source::synthetic_images({.threads = -1}), std::invalid_argument);
}

// In a child, since the environment belongs to the whole process.
TEST(Synthetic, KeepsSetsWhereTheEnvironmentSays) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms{0777});
  const auto place = [&](const std::map<std::string, std::string>& environment) {
    return test::without_root([&] {
      for (const char* name : {"PENSTOCK_CACHE", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      return source::synthetic_image_folder({.count = 1, .threads = 1}).string();
    });
  };
  const std::string own = (folder / "own").string();
  const std::string xdg = (folder / "xdg").string();
  const std::string home = (folder / "home").string();
  const auto first = place({{"PENSTOCK_CACHE", own}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}});
  if (!first) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_THAT(*first, StartsWith(own + "/images-1-seed0"));
  EXPECT_THAT(*place({{"XDG_CACHE_HOME", xdg}, {"HOME", home}}), StartsWith(xdg + "/penstock/"));
  EXPECT_THAT(*place({{"XDG_CACHE_HOME", "relative"}, {"HOME", home}}),
              StartsWith(home + "/.cache/penstock/"));
  EXPECT_THAT(*place({{"TMPDIR", folder.path().string()}}),
              StartsWith((folder / "penstock-").string()));
}

}  // namespace
}  // namespace penstock
