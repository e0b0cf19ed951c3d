// Indexes of shards that were changed later, with the size and time of change that they had: what an index says is
// compared with what is read.
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/shards.hpp>
#include <penstock/source/tokens.hpp>

#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::is_fault;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Open = std::function<SourcePtr(const std::filesystem::path&)>;

class StaleIndex : public ::testing::Test {
 protected:
  // Writes `shard`, has it indexed, and writes `changed` in its place, as of the same time.
  SourcePtr open_changed(const std::string& name, const std::string& shard,
                         const std::string& changed, const Open& open) const {
    const auto path = test::rewrite(folder_, name, shard);
    const auto time = std::filesystem::last_write_time(path);
    std::filesystem::remove(path.string() + ".penstock-index");
    (void)open(path);
    EXPECT_TRUE(std::filesystem::exists(path.string() + ".penstock-index"));
    test::rewrite(folder_, name, changed);
    std::filesystem::last_write_time(path, time);
    return open(path);
  }

  // Each record is a fault; or, of the one whose bytes were changed, what a new index finds under its key; of others what
  // they were.
  void expect_no_old_values(const std::string& name, const std::string& shard,
                            const std::string& changed, std::uint64_t changed_record,
                            const Open& open) const {
    const auto values = [](const SourcePtr& source) {
      std::map<std::string, std::string> all;
      const auto texts = describe_all(source);
      for (std::uint64_t i = 0; i < source->size(); ++i) all[source->info(i).key] = texts[i];
      return all;
    };
    const TemporaryFolder fresh;
    const auto now = values(open(fresh.write(name, changed)));
    const auto before = values(open(test::rewrite(folder_, name, shard)));
    const SourcePtr stale = open_changed(name, shard, changed, open);
    const auto texts = describe_all(stale);
    for (std::uint64_t i = 0; i < stale->size(); ++i) {
      if (is_fault(texts[i])) continue;
      const auto& expected = i == changed_record ? now : before;
      const auto found = expected.find(stale->info(i).key);
      ASSERT_NE(found, expected.end()) << i << " is no record of the shard any more";
      EXPECT_EQ(texts[i], found->second) << i;
    }
  }

  const TemporaryFolder folder_;
};

std::string labelled_tar(int first_label) {
  std::string tar;
  for (int i = 0; i < 3; ++i)
    tar += test::tar_member(fmt::format("n{}.jpg", i), fmt::format("image {}", i)) +
           test::tar_member(fmt::format("n{}.cls", i), std::to_string(first_label + i));
  return tar + test::tar_end();
}

TEST_F(StaleIndex, OfATarWithOtherLabelsMakesFaults) {
  const Open open = [](const auto& path) { return source::webdataset(path); };
  const SourcePtr source = open_changed("a.tar", labelled_tar(1), labelled_tar(5), open);
  EXPECT_THAT(
      describe_all(source),
      ElementsAre(
          AllOf(HasSubstr("n0"), HasSubstr("'label' is 5 in the shard, and 1 in its index")),
          HasSubstr("'label' is 6 in the shard, and 2 in its index"),
          AllOf(HasSubstr("'label' is 7"), HasSubstr("remove its .penstock-index"))));
  // Also where nothing but the label is read.
  const Open labels = [](const auto& path) {
    return source::webdataset(path, {.fields = {{.name = "label",
                                                 .extensions = {"cls"},
                                                 .type = WebDatasetField::Type::integer}}});
  };
  EXPECT_THAT(describe_all(open_changed("a.tar", labelled_tar(1), labelled_tar(5), labels)),
              Each(HasSubstr("in its index")));
  std::filesystem::remove(folder_ / "a.tar.penstock-index");
  EXPECT_THAT(describe_all(labels(folder_ / "a.tar")),
              ElementsAre("label=5 ;", "label=6 ;", "label=7 ;"));
}

TEST_F(StaleIndex, OfATarWithOtherNamesMakesFaults) {
  const auto tar = [](const char* first, const char* second) {
    return test::tar_member(std::string(first) + ".jpg", "image one") +
           test::tar_member(std::string(first) + ".cls", "1") +
           test::tar_member(std::string(second) + ".jpg", "image two") +
           test::tar_member(std::string(second) + ".cls", "2") + test::tar_end();
  };
  EXPECT_THAT(describe_all(open_changed("a.tar", tar("cat", "dog"), tar("dog", "cat"),
                                        [](const auto& path) { return source::webdataset(path); })),
              Each(HasSubstr("no longer the one that was indexed")));
}

TEST_F(StaleIndex, OfATarNeverGivesOldValuesWhicheverByteWasChanged) {
  const std::string good = labelled_tar(1);
  const Open open = [](const auto& path) { return source::webdataset(path); };
  const Open optional = [](const auto& path) {
    return source::webdataset(path, {.fields = {{.name = "image", .extensions = {"jpg"}},
                                                {.name = "label",
                                                 .extensions = {"cls"},
                                                 .type = WebDatasetField::Type::integer,
                                                 .required = false,
                                                 .default_value = -1}}});
  };
  for (std::size_t at = 0; at < good.size() - test::tar_end().size(); ++at) {
    SCOPED_TRACE(at);
    const bool in_header = at / 512 % 2 == 0;
    const std::size_t byte = at % 512;
    const bool is_used = in_header ? byte < 8 || (byte >= 124 && byte < 160) ||
                                         (byte >= 257 && byte < 265) || byte / 8 == 345 / 8
                                   : byte < 8;
    if (!is_used && at % 61 != 0) continue;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (at % 2 == 0 ? '\1' : '\2'));
    if (in_header) {
      std::string header = bad.substr(at / 512 * 512, 512);
      test::put_checksum(header);
      bad.replace(at / 512 * 512, 512, header);
    }
    ASSERT_NO_FATAL_FAILURE(
        expect_no_old_values("a.tar", good, bad, at / 2048, at % 3 == 0 ? optional : open));
  }
}

TEST_F(StaleIndex, OfATfRecordFileNeverGivesOldLabels) {
  const auto file = [](int first) {
    std::string all;
    for (int i = 0; i < 3; ++i) all += test::frame(test::plain_example("image", first + i));
    return all;
  };
  const Open open = [](const auto& path) { return source::tfrecord(path); };
  EXPECT_THAT(
      describe_all(open_changed("a.tfrecord", file(1), file(5), open)),
      Each(AllOf(HasSubstr("in the record, and"), HasSubstr("remove its .penstock-index"))));
  const std::string example = test::plain_example("image", 1);
  for (std::size_t at = 0; at < example.size(); ++at)
    for (const char change : {'\1', '\4'}) {
      SCOPED_TRACE(at);
      std::string bad = example;
      bad[at] = static_cast<char>(bad[at] ^ change);
      ASSERT_NO_FATAL_FAILURE(
          expect_no_old_values("a.tfrecord", test::frame(example), test::frame(bad), 0, open));
    }
}

// Of tokens it has where documents end.
TEST_F(StaleIndex, OfTokensGivesNoDocumentsThatAreNone) {
  const auto file = [](std::vector<std::uint16_t> tokens) {
    return std::string(reinterpret_cast<const char*>(tokens.data()),
                       tokens.size() * sizeof(std::uint16_t));
  };
  const Open open = [](const auto& path) { return source::token_files(path, {.document_end = 9}); };
  const std::string good = file({1, 2, 9, 3, 4, 5, 9, 6, 9});
  EXPECT_THAT(describe_all(open_changed("a.bin", good, file({1, 9, 2, 3, 4, 9, 5, 6, 9}), open)),
              Each(AllOf(HasSubstr("are no document, as its index says"),
                         HasSubstr("remove its .penstock-index"))));
  EXPECT_THAT(describe_all(open_changed("a.bin", good, file({1, 2, 9, 3, 4, 9, 5, 6, 9}), open)),
              ElementsAre(testing::Not(HasSubstr("no document")), HasSubstr("no document"),
                          HasSubstr("no document")));
  EXPECT_THAT(describe_all(open_changed("a.bin", good, good, open)),
              Each(testing::Not(HasSubstr("no document"))));
  // A last document without its token is one.
  const std::string open_end = file({1, 9, 2, 3});
  EXPECT_THAT(describe_all(open_changed("a.bin", open_end, open_end, open)),
              Each(testing::Not(HasSubstr("no document"))));
}

}  // namespace
}  // namespace penstock
