// Files of formats that no source reads: each source names them at once, with what to do.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/tokens.hpp>

#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Open = std::function<SourcePtr(const std::filesystem::path&)>;

const std::vector<Open> kAll{
    [](const auto& path) { return source::images(path); },
    [](const auto& path) { return source::image_folder(path); },
    [](const auto& path) {
      return source::webdataset(path, {.index = {.location = IndexLocation::memory}});
    },
    [](const auto& path) {
      return source::tfrecord(path, {.index = {.location = IndexLocation::memory}});
    },
    [](const auto& path) { return source::token_files(path, {.dtype = DType::u16}); },
};

TEST(ForeignFiles, AreNamedByEverySourceWithWhatToDo) {
  const std::vector<std::array<const char*, 3>> cases{
      {"a.zip", "a zip archive", "image_folder()"},
  };
  for (const auto& [name, what, remedy] : cases) {
    const TemporaryFolder folder;
    const auto file = folder.write(name, "PK or something else");
    for (std::size_t i = 0; i < kAll.size(); ++i) {
      for (const auto& path : {file, folder.path()})
        EXPECT_THAT(
            [&] { (void)kAll[i](path); },
            ThrowsMessage<Error>(AllOf(HasSubstr(name), HasSubstr(what), HasSubstr(remedy))))
            << i << " " << path;
    }
  }
}

TEST(ForeignFiles, OfTablesHaveASource) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.PARQUET", "no table");
  EXPECT_THAT(
      [&] { (void)source::image_folder(folder.path()); },
      ThrowsMessage<Error>(HasSubstr("a.PARQUET is a Parquet file: read it with parquet()")));
  EXPECT_THAT([&] { (void)source::webdataset(file); },
              ThrowsMessage<Error>(HasSubstr("a Parquet file: read it with parquet()")));
  const TemporaryFolder other;
  EXPECT_THAT([&] { (void)source::webdataset(other.write("a.arrow", "no table")); },
              ThrowsMessage<Error>(HasSubstr("a.arrow is an Arrow file: read it with arrow()")));
  EXPECT_THAT([&] { (void)source::images(folder.path()); },
              ThrowsMessage<Error>(HasSubstr("a.PARQUET")));
}

TEST(ForeignFiles, OfMosaicsStreamingHaveASource) {
  const TemporaryFolder folder;
  const auto file = folder.write("shard.00000.mds", "no shard");
  EXPECT_THAT(
      [&] { (void)source::webdataset(file); },
      ThrowsMessage<Error>(HasSubstr("a shard of MosaicML's streaming: read the folder of its "
                                     "index.json with mds()")));
  EXPECT_THAT(
      [&] { (void)source::images(folder.path()); },
      ThrowsMessage<Error>(HasSubstr("expected a folder of an MDS data set, with an index.json")));
}

TEST(ForeignFiles, ThatAreCompressedAreToBeUnpacked) {
  const std::string gzip = "\x1F\x8B\x08 and so on";
  const std::vector<std::array<const char*, 4>> cases{
      {"a.tar.gz", "gzip", "gunzip", "webdataset()"},
      {"a.tgz", "gzip", "gunzip", "webdataset()"},
      {"a.tar.zst", "zstd", "unzstd", "webdataset()"},
      {"a.tar.bz2", "bzip2", "bunzip2", "webdataset()"},
      {"a.TAR.XZ", "xz", "unxz", "webdataset()"},
      {"a.tfrecord.gz", "gzip", "gunzip", "tfrecord()"},
      {"train-00000-of-00010.gz", "gzip", "gunzip", "tfrecord()"},
      {"a.bin.zst", "zstd", "unzstd", "random access"},
  };
  for (const auto& [name, kind, tool, reader] : cases) {
    const TemporaryFolder folder;
    const auto file = folder.write(name, gzip);
    for (std::size_t i = 0; i < kAll.size(); ++i) {
      EXPECT_THAT([&] { (void)kAll[i](folder.path()); },
                  ThrowsMessage<Error>(
                      AllOf(HasSubstr(name), HasSubstr(kind), HasSubstr(tool), HasSubstr(reader))))
          << i << " " << name;
      // Shards that are named go by what is in them, since a plain tar file may be called so.
      const bool by_content = i == 2 || i == 3;
      EXPECT_THAT([&] { (void)kAll[i](file); },
                  ThrowsMessage<Error>(AllOf(HasSubstr(name), HasSubstr("compressed with"),
                                             HasSubstr(by_content ? "unpack it" : tool))))
          << i << " " << name;
    }
  }
}

TEST(ForeignFiles, AreNotThoseThatAreOnlyCalledSo) {
  const TemporaryFolder folder;
  const auto path = folder.write("a.tar.gz", test::plain_tar(2));
  EXPECT_EQ(source::webdataset(path)->size(), 2U);
}

TEST(ForeignFiles, OfOtherSourcesAreSentThere) {
  const TemporaryFolder folder;
  const auto tar = folder.write("a.tar", test::plain_tar(1));
  EXPECT_THAT([&] { (void)source::image_folder(tar); },
              ThrowsMessage<Error>(HasSubstr("a.tar is a tar file: read it with webdataset()")));
  EXPECT_THAT([&] { (void)source::image_folder(folder.path()); },
              ThrowsMessage<Error>(HasSubstr("a.tar is a tar file: read it with webdataset()")));
  const auto records = folder.write("a.tfrecord");
  EXPECT_THAT([&] { (void)source::image_folder(records); },
              ThrowsMessage<Error>(HasSubstr("a TFRecord file: read it with tfrecord()")));
}

}  // namespace
}  // namespace penstock
