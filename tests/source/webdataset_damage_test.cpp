// Damaged tar shards: what is damaged is a fault, and nothing else moves.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/shards.hpp>

#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::is_fault;
using test::plain_tar;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// One shard, written again and again.
class DamagedTar : public ::testing::Test {
 protected:
  std::vector<std::string> scanned(const std::string& tar) {
    const auto path = test::rewrite(folder_, "shard.tar", tar);
    return describe_all(source::webdataset(path, {.index = {.location = IndexLocation::memory}}));
  }
  TemporaryFolder folder_;
};

// Header k of plain_tar() begins here; two for each sample.
std::vector<std::size_t> headers_of(const std::string& tar) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i + 512 <= tar.size(); i += 512) {
    if (tar.compare(i + 257, 5, "ustar") == 0) at.push_back(i);
  }
  return at;
}

TEST_F(DamagedTar, HeaderIsAFaultOfItsSampleAloneWhicheverByteItIs) {
  const std::string good = plain_tar(3);
  const std::vector<std::string> expected = scanned(good);
  const std::vector<std::size_t> headers = headers_of(good);
  ASSERT_THAT(headers, SizeIs(6));
  for (std::size_t k = 0; k < headers.size(); ++k) {
    for (std::size_t i = 0; i < 512; ++i) {
      std::string bad = good;
      bad[headers[k] + i] = static_cast<char>(bad[headers[k] + i] ^ (i % 2 == 0 ? 0x01 : 0x40));
      const std::vector<std::string> found = scanned(bad);
      ASSERT_EQ(found.size(), 3U) << "header " << k << " byte " << i;
      for (std::size_t sample = 0; sample < 3; ++sample) {
        const bool harmless = i == 154 || i == 155;  // what ends the checksum's digits
        if (sample == k / 2 && !harmless) {
          EXPECT_THAT(found[sample], AllOf(StartsWith("fault: "), HasSubstr("damaged tar header")))
              << "header " << k << " byte " << i;
        } else if (sample != k / 2) {
          EXPECT_EQ(found[sample], expected[sample]) << "header " << k << " byte " << i;
        }
      }
    }
  }
}

TEST_F(DamagedTar, HeadersOfAWholeSampleAreOneFaultWithItsNumber) {
  const std::string good = plain_tar(4);
  std::vector<std::string> expected = scanned(good);
  const std::vector<std::size_t> headers = headers_of(good);
  for (std::size_t sample = 0; sample < 4; ++sample) {
    std::string bad = good;
    bad.replace(headers[2 * sample], 512, std::string(512, '\xAB'));
    bad.replace(headers[2 * sample + 1], 512, std::string(512, '\xAB'));
    std::vector<std::string> found = scanned(bad);
    ASSERT_EQ(found.size(), 4U) << sample;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(is_fault(found[i]), i == sample) << found[i];
      if (i != sample) {
        EXPECT_EQ(found[i], expected[i]);
      }
    }
  }
}

TEST_F(DamagedTar, CutAnywhereKeepsAllSamplesBeforeTheCut) {
  const std::string good = plain_tar(3);
  const std::vector<std::string> expected = scanned(good);
  const std::vector<std::size_t> headers = headers_of(good);
  for (std::size_t size = 0; size < good.size() - 1024; ++size) {
    const std::vector<std::string> found = scanned(good.substr(0, size));
    std::size_t whole =
        0;  // samples that lie before the cut: the label is one block with its padding
    while (whole < 3 && headers[2 * whole + 1] + 1024 <= size) ++whole;
    // A header that is cut off does not say whether it continued the sample before it.
    ASSERT_LE(found.size(), whole + 2) << size;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(is_fault(found[i]), i >= whole) << size;
      if (i < whole) {
        EXPECT_EQ(found[i], expected[i]) << size;
      }
    }
    // Nothing is passed over in silence.
    const auto begun =
        static_cast<std::size_t>(std::ranges::lower_bound(headers, size) - headers.begin());
    EXPECT_GE(found.size(), (begun + 1) / 2) << size;
    EXPECT_GE(found.size(), 1U) << size;
  }
}

TEST_F(DamagedTar, CutShardDoesNotMoveTheSamplesBeforeIt) {
  const TemporaryFolder folder;
  folder.write("a.tar", plain_tar(2, "a"));
  folder.write("b.tar", plain_tar(2, "b").substr(0, 700));
  folder.write("c.tar", plain_tar(1, "c"));
  const auto found = describe_all(
      source::webdataset(folder.path(), {.index = {.location = IndexLocation::memory}}));
  ASSERT_THAT(found, SizeIs(4));
  EXPECT_THAT(found[2], AllOf(HasSubstr("b.tar: b0"),
                              HasSubstr("the shard is cut off: it ends at byte 700")));
  EXPECT_FALSE(is_fault(found[3]));
}

TEST_F(DamagedTar, SizeLargerThanTheFileIsACut) {
  const std::string tar = tar_member("a.jpg", "A") + tar_member("a.cls", "1") +
                          tar_header("b.jpg", 1'000'000) + test::padded("B") +
                          tar_member("b.cls", "2") + tar_end();
  const auto found = scanned(tar);
  EXPECT_THAT(found, ElementsAre("image=A;label=1 ;", HasSubstr("cut off")));
  std::string absurd = tar_header("a.jpg", 0);
  absurd.replace(124, 12, std::string("\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12));
  test::put_checksum(absurd);
  EXPECT_THAT(scanned(absurd + tar_end()), ElementsAre(HasSubstr("cut off")));
}

TEST_F(DamagedTar, EmptyShardIsAFault) {
  EXPECT_THAT(scanned(""), ElementsAre(HasSubstr("the shard is empty (0 bytes)")));
}

TEST_F(DamagedTar, ZerosInPlaceOfAHeaderDoNotEndTheShard) {
  const std::string good = plain_tar(3);
  const std::vector<std::string> expected = scanned(good);
  const std::vector<std::size_t> headers = headers_of(good);
  std::string bad = good;
  bad.replace(headers[2], 512, std::string(512, '\0'));
  EXPECT_THAT(scanned(bad),
              ElementsAre(expected[0], HasSubstr("zeros where a tar header"), expected[2]));
  bad.replace(headers[2], headers[4] - headers[2], std::string(headers[4] - headers[2], '\0'));
  EXPECT_THAT(scanned(bad),
              ElementsAre(expected[0], HasSubstr("zeros where a tar header"), expected[2]));
}

TEST_F(DamagedTar, JoinedFilesAreSaidToBe) {
  const auto found = scanned(plain_tar(2, "a") + plain_tar(2, "b"));
  ASSERT_THAT(found, SizeIs(5));
  EXPECT_THAT(found[2], HasSubstr("tar --concatenate"));
  EXPECT_FALSE(is_fault(found[4]));
}

TEST_F(DamagedTar, PaxRecordsThatMakeNoSenseAreAFaultOfTheirMember) {
  for (const char* records : {"x", "5", "5 a=", "99 path=b\n", "0 path=b\n", "10 path=b.x",
                              "8 path\n", "13 size=many\n", "18446744073709551615 path=b\n"}) {
    const std::string tar = tar_member("a.jpg", "A") + tar_member("a.cls", "1") +
                            tar_member("PaxHeader/b", records, 'x') + tar_member("b.jpg", "B") +
                            tar_member("b.cls", "2") + tar_member("c.jpg", "C") +
                            tar_member("c.cls", "3") + tar_end();
    EXPECT_THAT(scanned(tar), ElementsAre("image=A;label=1 ;", HasSubstr("damaged pax header"),
                                          "image=C;label=3 ;"))
        << records;
  }
}

// The header behind a damaged long name bears a shortened one, which must not be taken for the
// member's.
TEST_F(DamagedTar, LongNameTakesItsMemberWithIt) {
  const std::string long_name(150, 'b');
  for (const char type : {'L', 'x'}) {
    const std::string text =
        type == 'L' ? long_name + ".jpg" + '\0' : fmt::format("164 path={}.jpg\n", long_name);
    const auto make = [&](bool damaged) {
      std::string header =
          tar_header(type == 'L' ? "././@LongLink" : "./PaxHeaders/b", text.size(), type);
      if (damaged) header[140] = '7';
      return tar_member("a.jpg", "A") + tar_member("a.cls", "1") + header + test::padded(text) +
             tar_member(long_name.substr(0, 100), "B") + tar_member("c.jpg", "C") +
             tar_member("c.cls", "3") + tar_end();
    };
    const auto good = scanned(make(false));
    ASSERT_THAT(good,
                ElementsAre("image=A;label=1 ;", HasSubstr("expected cls"), "image=C;label=3 ;"));
    EXPECT_THAT(
        scanned(make(true)),
        ElementsAre("image=A;label=1 ;", HasSubstr("damaged tar header"), "image=C;label=3 ;"));
  }
}

TEST_F(DamagedTar, SparseFilesAreRefusedByName) {
  const std::string tar = tar_member("a.jpg", "A") + tar_member("a.cls", "1") +
                          tar_member("b.jpg", "B", 'S') + tar_member("b.cls", "2") + tar_end();
  EXPECT_THAT(scanned(tar), ElementsAre("image=A;label=1 ;", HasSubstr("sparse")));
}

// A tar file in a tar file, whose header is damaged: its own members are not the shard's, as long
// as the size of what holds them is known.
TEST_F(DamagedTar, TarInATarIsNotMistakenForSamples) {
  std::string tar = tar_member("a.jpg", "A") + tar_member("a.cls", "1");
  const std::size_t inner = tar.size();
  tar += tar_member("b.jpg", plain_tar(3, "inner")) + tar_member("b.cls", "2") +
         tar_member("c.jpg", "C") + tar_member("c.cls", "3") + tar_end();
  tar[inner + 110] = '7';  // the owner
  EXPECT_THAT(scanned(tar), ElementsAre("image=A;label=1 ;", HasSubstr("damaged tar header"),
                                        "image=C;label=3 ;"));
}

// Once there is an index, which is as good as the shard's size and time say, damage is found where
// it is read.
TEST_F(DamagedTar, HeaderIsNoticedBehindAnIndexToo) {
  const std::string good = plain_tar(3);
  const auto path = folder_.write("shard.tar", good);
  const std::vector<std::string> expected = describe_all(source::webdataset(path));
  const auto time = std::filesystem::last_write_time(path);
  const std::vector<std::size_t> headers = headers_of(good);
  for (std::size_t i = 0; i < 512; i += 7) {
    std::string bad = good;
    bad[headers[2] + i] = static_cast<char>(bad[headers[2] + i] ^ 0x10);
    test::rewrite(folder_, "shard.tar", bad);
    std::filesystem::last_write_time(path, time);
    const auto found = describe_all(source::webdataset(path));
    EXPECT_THAT(found, ElementsAre(expected[0], HasSubstr("no longer the one that was indexed"),
                                   expected[2]))
        << i;
  }
}

TEST_F(DamagedTar, ChangeOfTheFileWhileItIsReadIsAFault) {
  const auto path = folder_.write("shard.tar", plain_tar(3));
  const SourcePtr source = source::webdataset(path);
  folder_.write("shard.tar", plain_tar(4));  // before the first read
  EXPECT_THAT(describe_all(source), Each(HasSubstr("changed after it had been indexed")));
  const SourcePtr again = source::webdataset(path);
  ASSERT_THAT(describe_all(again), SizeIs(4));
  std::filesystem::resize_file(path, 600);  // while it is open
  EXPECT_THAT(describe_all(again), Each(HasSubstr("cut off after it had been indexed")));
  std::filesystem::remove(path);
  EXPECT_THAT(describe_all(source), Each(HasSubstr("cannot open: No such file")));
}

}  // namespace
}  // namespace penstock
