#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>

#include "tests/source/files.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using test::text_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

std::vector<std::string> locations(const SourcePtr& source, const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    names.push_back(source->location(i).substr(folder.path().string().size() + 1));
  }
  return names;
}

std::vector<std::int64_t> labels(const SourcePtr& source) {
  std::vector<std::int64_t> all;
  Record record;
  for (std::uint64_t i = 0; i < source->size(); ++i) {
    EXPECT_TRUE(source->read(i, record));
    all.push_back(*record[1].data<std::int64_t>());
  }
  return all;
}

Fault fault_of(const SourcePtr& source, std::uint64_t number = 0) {
  Record record;
  Result<void> result = source->read(number, record);
  EXPECT_FALSE(result) << "expected a fault";
  return result ? Fault{} : std::move(result.fault());
}

TEST(ImageFolder, MakesAClassOfEachSubFolder) {
  const TemporaryFolder folder;
  folder.write("dog/1.jpg", "a dog");
  folder.write("cat/b.JPEG", "a cat");
  folder.write("cat/deep/er/a.png", "another cat");
  std::filesystem::create_directory(folder / "cat/empty");
  const SourcePtr source = source::image_folder(folder.path());

  EXPECT_EQ(source->size(), 3U);
  EXPECT_THAT(source->class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(locations(source, folder),
              ElementsAre("cat/b.JPEG", "cat/deep/er/a.png", "dog/1.jpg"));
  EXPECT_THAT(labels(source), ElementsAre(0, 0, 1));
  EXPECT_THAT(source->fields(), ElementsAre(FieldSpec{"image", DType::u8, {kDynamic}},
                                            FieldSpec{"label", DType::i64, {}}));
}

TEST(ImageFolder, RefusesASubFolderWithoutAnImageWhichWouldMoveOtherLabels) {
  const TemporaryFolder folder;
  folder.write("ant/1.bmp");
  folder.write("ant/2.bmp");
  folder.write("ant/deep/readme.txt");
  folder.write("cat/1.jpg");
  std::filesystem::create_directory(folder / "dog");
  EXPECT_THAT([&] { (void)source::image_folder(folder.path()); },
              ThrowsMessage<Error>(AllOf(
                  HasSubstr("no images in 2 of the 3 class folders of " + folder.path().string()),
                  HasSubstr("ant (2 .bmp, 1 .txt), dog (empty)"), HasSubstr("option classes"))));
}

TEST(ImageFolder, NumbersClassesByTheListItIsGiven) {
  const TemporaryFolder training;
  for (const char* name : {"ant/1.jpg", "bee/1.jpg", "cat/1.jpg"}) training.write(name);
  const SourcePtr trained = source::image_folder(training.path());
  const std::vector<std::string> classes(trained->class_names().begin(),
                                         trained->class_names().end());
  const TemporaryFolder validation;
  validation.write("cat/1.jpg");
  std::filesystem::create_directory(validation / "bee");
  std::filesystem::create_directory(validation / "notes");
  const SourcePtr source = source::image_folder(validation.path(), {.classes = classes});
  EXPECT_THAT(labels(source), ElementsAre(2));
  EXPECT_THAT(source->class_names(), ElementsAre("ant", "bee", "cat"));
  EXPECT_EQ(source->info(0).label, 2);
  EXPECT_THAT(labels(source::image_folder(training.path(), {.classes = {"cat", "bee", "ant"}})),
              ElementsAre(2, 1, 0));

  validation.write("dog/1.jpg");
  EXPECT_THAT([&] { (void)source::image_folder(validation.path(), {.classes = classes}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("a folder 'dog' with images"),
                                         HasSubstr("none of the 3 classes: ant, bee, cat"))));
}

TEST(ImageFolder, RefusesClassesThatNumberNothing) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  const auto opening = [&](std::vector<std::string> classes) {
    return [&, classes] { (void)source::image_folder(folder.path(), {.classes = classes}); };
  };
  EXPECT_THAT(opening({"a", "b", "a"}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("'a' twice")));
  EXPECT_THAT(opening({"a", ""}), ThrowsMessage<std::invalid_argument>(HasSubstr("empty name")));
  const TemporaryFolder flat;
  flat.write("1.jpg");
  EXPECT_THAT([&] { (void)source::image_folder(flat.path(), {.classes = {"a"}}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("no labels")));
}

TEST(ImageFolder, SaysWhatItLeftOut) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "\xFF\xD8\xFF");
  EXPECT_TRUE(source::image_folder(folder.path())->notices().empty());
  folder.write("a/readme.txt", "text");
  folder.write("a/.DS_Store");
  const auto only_text = source::image_folder(folder.path())->notices();
  ASSERT_EQ(only_text.size(), 1U);
  EXPECT_EQ(only_text[0].text, folder.path().string() + ": left out 1 .txt, 1 hidden name");
  EXPECT_FALSE(only_text[0].is_warning);

  folder.write("a/2.bmp", std::string("BM\x10\0\0\0\0\0\0\0", 10));
  folder.write("a/3", "\xFF\xD8\xFF");
  folder.write("a/4.gif", "GIF89a");
  folder.write("a/5.psd", "8BPS");
  const auto notices = source::image_folder(folder.path())->notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(notices[0].is_warning);
  EXPECT_THAT(notices[0].text,
              AllOf(HasSubstr("1 .bmp"), HasSubstr("1 (no ending)"),
                    HasSubstr("of 5 files that were looked into, 4 are images by the first bytes: "
                              "1 BMP image, 1 GIF image, 1 JPEG image, 1 Photoshop image."),
                    HasSubstr("set the option sniff; convert the 1 of a kind")));
}

TEST(ImageFolder, LooksIntoNothingThatWasLeftOutOnPurpose) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "\xFF\xD8\xFF");
  folder.write("a/1.png", "\x89PNG\r\n\x1A\n");
  const auto notices = source::image_folder(folder.path(), {.extensions = {".jpg"}})->notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_FALSE(notices[0].is_warning);
  EXPECT_EQ(notices[0].text, folder.path().string() + ": left out 1 .png");
}

TEST(ImageFolder, DoesNotLoseAClassThatIsALinkOrHasHiddenFilesOnly) {
  const auto refuses = [](const TemporaryFolder& folder, const char* why, bool follow = true) {
    EXPECT_THAT([&] { (void)source::image_folder(folder.path(), {.follow_symlinks = follow}); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("no images in 1 of the 3 class folders of"), HasSubstr(why))));
  };
  const auto with = [](const TemporaryFolder& folder) {
    folder.write("a/1.jpg");
    folder.write("c/1.jpg");
  };
  const TemporaryFolder hidden;
  with(hidden);
  hidden.write("b/.gitkeep");
  refuses(hidden, "b (1 hidden name)");
  const TemporaryFolder dangling;
  with(dangling);
  std::filesystem::create_symlink("/nowhere", dangling / "b");
  refuses(dangling, "b (1 unfollowed link)");
  const TemporaryFolder elsewhere;
  elsewhere.write("1.jpg");
  const TemporaryFolder linked;
  with(linked);
  std::filesystem::create_directory_symlink(elsewhere.path(), linked / "b");
  EXPECT_EQ(source::image_folder(linked.path())->class_names().size(), 3U);
  refuses(linked, "b (1 unfollowed link)", false);
  const TemporaryFolder inside;
  with(inside);
  std::filesystem::create_directory(inside / "b");
  std::filesystem::create_symlink(elsewhere / "1.jpg", inside / "b/1.jpg");
  refuses(inside, "b (1 unfollowed link)", false);
  // With its classes given, it is what it is in all of them.
  EXPECT_EQ(source::image_folder(dangling.path(), {.classes = {"a", "b", "c"}})->info(1).label, 2);
}

TEST(ImageFolder, DoesNotTakeAFileThatCannotBeReadForNoImage) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  const auto file = folder.write("a/2", "\xFF\xD8\xFF");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const auto said = test::without_root([&] {
    try {
      return std::to_string(source::image_folder(folder.path(), {.sniff = true})->size());
    } catch (const Error& error) {
      return std::string(error.what());
    }
  });
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_THAT(*said, AllOf(HasSubstr("cannot tell whether " + file.string() + " is an image"),
                           HasSubstr("Permission denied")));
}

TEST(ImageFolder, TakesImagesWithAnyEndingWhenItSniffs) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "whatever");
  folder.write("a/2", "\xFF\xD8\xFF");
  folder.write("a/3.data", "\x89PNG\r\n\x1A\n");
  folder.write("a/4.txt", "text");
  folder.write("a/5.psd", "8BPS");
  folder.write("a/6", "");
  ASSERT_EQ(::mkfifo((folder / "a/7").c_str(), 0600), 0);
  const SourcePtr source = source::image_folder(folder.path(), {.sniff = true});
  EXPECT_THAT(locations(source, folder), ElementsAre("a/1.jpg", "a/2", "a/3.data"));
  const auto notices = source->notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_THAT(notices[0].text,
              AllOf(HasSubstr("left out 2 (no ending), 1 .psd, 1 .txt;"),
                    HasSubstr("1 Photoshop image. Convert"), Not(HasSubstr("sniff"))));
}

TEST(ImageFolder, ReadsTheWholeFileAndCountsItsBytes) {
  const TemporaryFolder folder;
  std::string bytes(100'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  folder.write("a/1.jpg", bytes);
  const SourcePtr source = source::image_folder(folder.path());
  Record record;
  ASSERT_TRUE(source->read(0, record));
  EXPECT_EQ(text_of(record[0]), bytes);
  EXPECT_EQ(record[0].shape(), Shape{100'000});
  EXPECT_EQ(record.bytes_read(), 100'000U);
}

TEST(ImageFolder, TellsKeyLabelAndBytesOfAnImageThatNobodyRead) {
  const TemporaryFolder folder;
  folder.write("cat/1.jpg", "12345");
  folder.write("dog/deep/2.jpg", "");
  const SourcePtr source = source::image_folder(folder.path());
  EXPECT_EQ(source->info(0).key, "cat/1.jpg");
  EXPECT_EQ(source->info(0).label, 0);
  EXPECT_EQ(source->info(0).bytes, 5U);
  EXPECT_EQ(source->info(1).key, "dog/deep/2.jpg");
  EXPECT_EQ(source->info(1).label, 1);
  EXPECT_EQ(source->info(1).bytes, 0U);
  std::filesystem::remove(folder / "cat/1.jpg");
  EXPECT_EQ(source->info(0).bytes, std::nullopt);
  EXPECT_EQ(source->files(), 2U);
  EXPECT_EQ(source->file_of(1), 1U);
}

TEST(ImageFolder, NumbersFilesByTheBytesOfTheirPathsHoweverTheyWereMade) {
  // Bytewise, "a-b/" comes before "a/" and "B" before "a", which no locale would do.
  std::vector<std::string> expected = {"B/1.jpg",  "a-b/1.jpg", "a/2.jpg", "a/2/1.jpg",
                                       "a/2a.jpg", "a/Z.jpg",   "a/z.jpg", "\xC3\xA4/1.jpg"};
  std::vector<std::string> made = expected;
  std::mt19937 shuffle(7);
  std::string fingerprint;
  for (int round = 0; round < 5; ++round) {
    std::shuffle(made.begin(), made.end(), shuffle);
    const TemporaryFolder folder;
    for (const std::string& name : made) folder.write(name);
    const SourcePtr source = source::image_folder(folder.path());
    EXPECT_EQ(locations(source, folder), expected);
    EXPECT_THAT(source->class_names(), ElementsAre("B", "a", "a-b", "\xC3\xA4"));
    EXPECT_THAT(labels(source), ElementsAre(0, 2, 1, 1, 1, 1, 1, 3));
    if (round == 0) fingerprint = source->fingerprint();
    EXPECT_EQ(source->fingerprint(), fingerprint);
  }
}

TEST(ImageFolder, HasAFingerprintOfNamesAndLabels) {
  const TemporaryFolder one;
  one.write("a/1.jpg");
  one.write("b/2.jpg");
  const TemporaryFolder other;
  other.write("a/1.jpg");
  other.write("a/2.jpg");
  const std::string first = source::image_folder(one.path())->fingerprint();
  EXPECT_THAT(first, StartsWith("image_folder(2 files, "));
  EXPECT_NE(first, source::image_folder(other.path())->fingerprint());
  one.write("b/3.jpg");
  EXPECT_NE(first, source::image_folder(one.path())->fingerprint());

  const TemporaryFolder flat;
  flat.write("1.jpg");
  flat.write("2.jpg");
  const auto labels_ab = flat.write("ab.txt", "1.jpg a\n2.jpg b\n");
  const auto labels_01 = flat.write("01.txt", "1.jpg 0\n2.jpg 1\n");
  const auto labels_10 = flat.write("10.txt", "1.jpg 1\n2.jpg 0\n");
  const std::string named = source::image_folder(flat.path(), {.labels = labels_ab})->fingerprint();
  const std::string numbered =
      source::image_folder(flat.path(), {.labels = labels_01})->fingerprint();
  EXPECT_NE(named, numbered);
  EXPECT_NE(numbered, source::image_folder(flat.path(), {.labels = labels_10})->fingerprint());
}

TEST(ImageFolder, LabelsEveryImageOfAFlatFolderZero) {
  const TemporaryFolder folder;
  folder.write("b.jpg");
  folder.write("a.webp");
  folder.write("sub/notes.txt");
  const SourcePtr source = source::image_folder(folder.path());
  EXPECT_THAT(locations(source, folder), ElementsAre("a.webp", "b.jpg"));
  EXPECT_THAT(labels(source), ElementsAre(0, 0));
  EXPECT_TRUE(source->class_names().empty());
}

TEST(ImageFolder, TakesTheExtensionsItIsGivenInAnyCase) {
  const TemporaryFolder folder;
  folder.write("a.JpG");
  folder.write("b.tif");
  folder.write("c.TIFF");
  folder.write("jpg");
  EXPECT_EQ(source::image_folder(folder.path())->size(), 1U);
  const SourcePtr tiffs = source::image_folder(folder.path(), {.extensions = {"TIF", ".tiff"}});
  EXPECT_THAT(locations(tiffs, folder), ElementsAre("b.tif", "c.TIFF"));
}

TEST(ImageFolder, PassesOverHiddenNames) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  folder.write("a/._1.jpg");
  folder.write(".ipynb_checkpoints/2.jpg");
  EXPECT_THAT(locations(source::image_folder(folder.path()), folder), ElementsAre("a/1.jpg"));
}

TEST(ImageFolder, FollowsLinksUnlessToldNotTo) {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  elsewhere.write("real.jpg", "real");
  folder.write("a/1.jpg");
  std::filesystem::create_symlink(elsewhere / "real.jpg", folder / "a/2.jpg");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "b");
  EXPECT_THAT(locations(source::image_folder(folder.path()), folder),
              ElementsAre("a/1.jpg", "a/2.jpg", "b/real.jpg"));
  EXPECT_THAT(locations(source::image_folder(folder.path(),
                                             {.classes = {"a", "b"}, .follow_symlinks = false}),
                        folder),
              ElementsAre("a/1.jpg"));
}

TEST(ImageFolder, RefusesALinkThatLeadsInCircles) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  std::filesystem::create_directory_symlink(folder.path(), folder / "a/loop");
  EXPECT_THAT([&] { (void)source::image_folder(folder.path()); },
              ThrowsMessage<Error>(AllOf(HasSubstr((folder / "a/loop").string()),
                                         HasSubstr("follow_symlinks = false"))));
}

TEST(ImageFolder, SaysWhatItExpectedWhereThereIsNoFolder) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.jpg");
  EXPECT_THAT([&] { (void)source::image_folder(folder / "none"); },
              ThrowsMessage<Error>(AllOf(HasSubstr((folder / "none").string()),
                                         HasSubstr("found nothing; check the path"))));
  EXPECT_THAT([&] { (void)source::image_folder(file); },
              ThrowsMessage<Error>(AllOf(HasSubstr(file.string()), HasSubstr("found a file"))));
}

TEST(ImageFolder, SaysWhatItFoundInsteadOfImages) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { (void)source::image_folder(folder.path()); },
              ThrowsMessage<Error>(AllOf(HasSubstr(folder.path().string()),
                                         HasSubstr(".jpg .jpeg .jpe .jfif .png .webp"),
                                         HasSubstr("no files at all"))));
  folder.write("a/1.bmp");
  folder.write("a/2.bmp");
  folder.write("b/notes.txt");
  EXPECT_THAT(
      [&] { (void)source::image_folder(folder.path()); },
      ThrowsMessage<Error>(AllOf(HasSubstr("found 2 .bmp, 1 .txt"), HasSubstr("extensions"))));
}

TEST(ImageFolder, RefusesImagesBothAtTheTopAndInSubFolders) {
  const TemporaryFolder folder;
  folder.write("top.jpg");
  folder.write("a/below.jpg");
  EXPECT_THAT([&] { (void)source::image_folder(folder.path()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("(top.jpg)"), HasSubstr("(a/below.jpg)"))));
}

TEST(ImageFolder, RefusesMisuse) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  const auto list = folder.write("labels.txt", "1.jpg 0\n");
  EXPECT_THROW((void)source::image_folder(""), std::invalid_argument);
  EXPECT_THROW((void)source::image_folder(folder.path(), {.extensions = {}}),
               std::invalid_argument);
  EXPECT_THROW((void)source::image_folder(folder.path(), {.extensions = {""}}),
               std::invalid_argument);
  EXPECT_THROW((void)source::image_folder(folder.path(), {.max_file_bytes = 0}),
               std::invalid_argument);
  EXPECT_THAT([&] { (void)source::image_folder(folder.path(), {.labels = list}); },
              ThrowsMessage<Error>(HasSubstr("the path of an image relative to the folder")));
}

TEST(ImageFolder, NamesAFolderThatMayNotBeListed) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  folder.write("locked/2.jpg");
  std::filesystem::permissions(folder / "locked", std::filesystem::perms::none);
  const auto said = test::without_root(
      [&] { return std::to_string(source::image_folder(folder.path())->size()) + " listed"; });
  std::filesystem::permissions(folder / "locked", std::filesystem::perms::owner_all);
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_THAT(*said, AllOf(HasSubstr((folder / "locked").string()), HasSubstr("Permission denied"),
                           HasSubstr("chmod")));
}

TEST(ImageFolder, FaultsOnAFileThatMayNotBeRead) {
  const TemporaryFolder folder;
  const auto file = folder.write("a/1.jpg");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const auto said = test::without_root([&] {
    const Fault fault = fault_of(source::image_folder(folder.path()));
    return fault.file + ": " + fault.reason;
  });
  if (!said) GTEST_SKIP() << "cannot give up root's rights here";
  EXPECT_EQ(*said, file.string() + ": cannot open: Permission denied");
}

TEST(ImageFolder, FaultsOnAFileThatVanished) {
  const TemporaryFolder folder;
  const auto file = folder.write("a/1.jpg");
  const SourcePtr source = source::image_folder(folder.path());
  std::filesystem::remove(file);
  const Fault fault = fault_of(source);
  EXPECT_EQ(fault.file, file.string());
  EXPECT_EQ(fault.reason, "cannot open: No such file or directory");
}

TEST(ImageFolder, FaultsOnAnEmptyFile) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "");
  EXPECT_THAT(fault_of(source::image_folder(folder.path())).reason, HasSubstr("empty (0 bytes)"));
}

TEST(ImageFolder, FaultsOnAFolderThatTookAFilesPlace) {
  const TemporaryFolder folder;
  const auto file = folder.write("a/1.jpg");
  const SourcePtr source = source::image_folder(folder.path());
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_THAT(fault_of(source).reason, HasSubstr("found a folder"));
}

TEST(ImageFolder, FaultsOnAFileAboveTheLimitAndReadsOneAtIt) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", "12345");
  Record record;
  EXPECT_TRUE(source::image_folder(folder.path(), {.max_file_bytes = 5})->read(0, record));
  const Fault fault = fault_of(source::image_folder(folder.path(), {.max_file_bytes = 4}));
  EXPECT_EQ(fault.reason, "the file has 5 bytes, more than max_file_bytes = 4");
}

TEST(ImageFolder, FaultsOnAPipeWithoutWaitingForIt) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  ASSERT_EQ(::mkfifo((folder / "a/2.jpg").c_str(), 0600), 0);
  const SourcePtr source = source::image_folder(folder.path());
  ASSERT_EQ(source->size(), 2U);
  EXPECT_THAT(fault_of(source, 1).reason, HasSubstr("found a pipe"));
}

TEST(ImageFolder, FaultsOnALinkToNothing) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg");
  std::filesystem::create_symlink("nowhere", folder / "a/2.jpg");
  EXPECT_THAT(fault_of(source::image_folder(folder.path()), 1).reason,
              HasSubstr("No such file or directory"));
}

TEST(ImageFolder, RecordsAreReusedWithoutTakingMoreMemory) {
  const TemporaryFolder folder;
  folder.write("a/1.jpg", std::string(5000, 'b'));
  folder.write("a/2.jpg", "small");
  const SourcePtr source = source::image_folder(folder.path());
  Record record;
  ASSERT_TRUE(source->read(0, record));
  const std::size_t held = record.memory_bytes();
  const std::byte* const memory = record[0].raw();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(source->read(1, record));
    EXPECT_EQ(text_of(record[0]), "small");
    EXPECT_EQ(record.bytes_read(), 5U);
    ASSERT_TRUE(source->read(0, record));
  }
  EXPECT_EQ(record.memory_bytes(), held);
  EXPECT_EQ(record[0].raw(), memory);
}

TEST(ImageFolder, StaysReadableAfterAChangeOfTheWorkingFolder) {
  const TemporaryFolder folder;
  folder.write("set/a/1.jpg", "bytes");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const SourcePtr source = source::image_folder("set");
  std::filesystem::current_path(before);
  Record record;
  EXPECT_TRUE(source->read(0, record));
}

TEST(ImageFolder, ManyThreadsReadAtOnce) {
  const TemporaryFolder folder;
  constexpr int kFiles = 64;
  for (int i = 0; i < kFiles; ++i) {
    folder.write(
        fmt::format("c{}/{}.jpg", i % 4, 100 + i),
        std::string(static_cast<std::size_t>(1 + i * 100), static_cast<char>('A' + i % 26)));
  }
  const SourcePtr source = source::image_folder(folder.path());
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        Record record;
        for (int k = 0; k < 20 * kFiles; ++k) {
          const auto i = static_cast<std::uint64_t>((k * 7 + t) % kFiles);
          if (!source->read(i, record)) {
            ++wrong;
            continue;
          }
          const std::string name = source->location(i);
          const int number = std::stoi(name.substr(name.rfind('/') + 1)) - 100;
          const std::string_view text = text_of(record[0]);
          if (text.size() != static_cast<std::size_t>(1 + number * 100) ||
              text.back() != static_cast<char>('A' + number % 26) ||
              *record[1].data<std::int64_t>() != number % 4) {
            ++wrong;
          }
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace penstock
