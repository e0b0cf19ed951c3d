// Tar shards as people make them: unsorted, from macOS, with links, pax headers and sparse files, cut at a member's end.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/shards.hpp>

#include "src/source/webdataset/tar_notices.hpp"
#include "tests/source/shards.hpp"

namespace penstock {
namespace {

using test::describe_all;
using test::plain_tar;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class TarMembers : public ::testing::Test {
 protected:
  // Without an index, and then with the one that the first opening has left.
  template <class Check>
  void check(const std::string& tar, const Check& of_source) {
    const auto path = test::rewrite(folder_, "shard.tar", tar);
    std::filesystem::remove(folder_ / "shard.tar.penstock-index");
    of_source(*source::webdataset(path));
    ASSERT_TRUE(std::filesystem::exists(folder_ / "shard.tar.penstock-index"));
    of_source(*source::webdataset(path));
  }

  static std::string text_of_notices(const Source& source) {
    std::string text;
    for (const Notice& notice : source.notices())
      text += (notice.is_warning ? "warning: " : "") + notice.text + "\n";
    return text;
  }

  TemporaryFolder folder_;
};

std::string sample(std::string_view key, int label) {
  return tar_member(fmt::format("{}.jpg", key), fmt::format("image {}", label)) +
         tar_member(fmt::format("{}.cls", key), std::to_string(label));
}

TEST_F(TarMembers, OfASampleThatDoNotLieSideBySideAreNamedWithTheirOtherPlace) {
  const std::string tar = tar_member("000.jpg", "A") + tar_member("001.jpg", "B") +
                          tar_member("000.cls", "0") + tar_member("001.cls", "1") +
                          sample("002", 2) + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(
        describe_all(source),
        ElementsAre(AllOf(HasSubstr("no member for 'label': expected cls, found jpg"),
                          HasSubstr("the key 000 comes again at byte 2048"),
                          HasSubstr("side by side"), HasSubstr("tar --sort=name")),
                    HasSubstr("the key 001 comes again at byte 3072"),
                    AllOf(HasSubstr("no member for 'image'"), HasSubstr("found cls"),
                          HasSubstr("the key 000 came before, at byte 0")),
                    HasSubstr("the key 001 came before, at byte 1024"), "image=image 2;label=2 ;"));
    EXPECT_THAT(text_of_notices(source),
                AllOf(HasSubstr("warning: "), HasSubstr("shard.tar"), HasSubstr("4 of 5 samples"),
                      HasSubstr("000 comes again at byte 2048"), HasSubstr("tar --sort=name")));
  });
}

// Which options GNU tar has alone, and what does the same with bsdtar, macOS's tar.
TEST_F(TarMembers, AreFollowedByAdviceForAnyTar) {
  const std::string command = "find . -type f | LC_ALL=C sort | tar -cf ../shard.tar -T -";
  const std::string unsorted =
      tar_member("000.jpg", "A") + sample("001", 1) + tar_member("000.cls", "0") + tar_end();
  check(unsorted, [&](const Source& source) {
    const auto advice =
        AllOf(HasSubstr("tar --sort=name with GNU tar"), HasSubstr(command + " with any"));
    EXPECT_THAT(describe_all(source).at(0), advice);
    EXPECT_THAT(text_of_notices(source), advice);
  });
  const std::string hard = tar_member("a.jpg", "A") + tar_member("a.cls", "", '1') + tar_end();
  check(hard, [&](const Source& source) {
    const auto advice = AllOf(HasSubstr("--hard-dereference with GNU tar"), HasSubstr("cp -RL"));
    EXPECT_THAT(describe_all(source).at(0), advice);
    EXPECT_THAT(text_of_notices(source), AllOf(advice, HasSubstr("tar --dereference")));
  });
  check(plain_tar(1, "a") + plain_tar(1, "b"), [&](const Source& source) {
    EXPECT_THAT(describe_all(source).at(1),
                AllOf(HasSubstr("tar --concatenate"), HasSubstr("GNU tar"),
                      HasSubstr("@a.tar @b.tar with bsdtar")));
  });
  check(tar_member("a.jpg", "A", 'S') + tar_end(), [&](const Source& source) {
    EXPECT_THAT(describe_all(source).at(0), AllOf(HasSubstr("without --sparse with GNU tar"),
                                                  HasSubstr("with --no-read-sparse with bsdtar")));
  });

  const TemporaryFolder folder;
  for (const char* name : {"1", "10", "1-2", "2", "b/1", "b", "ab", "aB", "1_2"}) {
    std::filesystem::create_directories((folder / "data" / name).parent_path());
    for (const char* extension : {"jpg", "cls", "seg.png"})
      folder.write(fmt::format("data/{}.{}", name, extension), "7");
  }
  for (const std::string tar : {"tar", "bsdtar"}) {
    if (std::system((tar + " --version > /dev/null 2>&1").c_str()) != 0) continue;
    std::string with = command;
    with.replace(with.find("tar -cf"), 3, tar);
    ASSERT_EQ(std::system(fmt::format("cd '{}' && {}", (folder / "data").string(), with).c_str()),
              0);
    const SourcePtr source = source::webdataset(folder / "shard.tar");
    EXPECT_EQ(source->size(), 9U) << tar;
    EXPECT_THAT(source->notices(), IsEmpty()) << tar;
    std::filesystem::remove(folder / "shard.tar");
  }
}

TEST_F(TarMembers, OfAWholeSampleWithAKeyThatComesAgainAreReadAndSaid) {
  const std::string tar = sample("a", 1) + sample("b", 2) + sample("a", 3) + sample("a/x", 4) +
                          sample("a", 5) + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(
        describe_all(source),
        ElementsAre("image=image 1;label=1 ;", "image=image 2;label=2 ;", "image=image 3;label=3 ;",
                    "image=image 4;label=4 ;", "image=image 5;label=5 ;"));
    EXPECT_THAT(text_of_notices(source),
                AllOf(Not(HasSubstr("warning")), HasSubstr("a comes again at byte 4096")));
  });
}

TEST_F(TarMembers, OfMacOsAreLeftOutAndCounted) {
  const std::string tar =
      tar_member("._train", "x") + tar_member("train/", "", '5') +
      tar_member("train/._a.jpg", "x") + tar_member("train/a.jpg", "A") +
      tar_member("train/._a.cls", "x") + tar_member("train/a.cls", "1") +
      tar_member("__MACOSX/train/._a.jpg", "x") + tar_member("__MACOSX/train/b.jpg", "x") +
      tar_member("train/__MACOSX/b.jpg", "x") + tar_member("train/x__MACOSX.jpg", "X") +
      tar_member("train/x__MACOSX.cls", "2") + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(describe_all(source), ElementsAre("image=A;label=1 ;", "image=X;label=2 ;"));
    EXPECT_EQ(source.info(0).key, "train/a");
    EXPECT_THAT(text_of_notices(source),
                AllOf(Not(HasSubstr("warning")),
                      HasSubstr("left out 6 members of macOS (._* or __MACOSX/)")));
  });
}

// An AppleDouble file: magic, version, 16 zero bytes, and no entries.
std::string apple_double() { return std::string("\0\5\26\7\0\2\0\0", 8) + std::string(18, '\0'); }

TEST_F(TarMembers, OfMacOsAreLeftOutWhereTheyAreDamaged) {
  const std::string long_name(150, 'l');
  const std::string path = fmt::format("168 path={}/._b.jpg\n", long_name);
  const std::string pax = tar_member("PaxHeader/._b.jpg", path, 'x');
  const std::string apple = tar_member("._b.jpg", apple_double());
  const std::string below = tar_member("__MACOSX/b.jpg", "x");
  ASSERT_EQ(path.size(), 168U);
  struct Case {
    const char* what;
    std::string members;
    std::size_t damaged_at;
  };
  for (const auto& [what, members, damaged_at] :
       {Case{"header", apple, 110}, Case{"size", apple, 133}, Case{"below __MACOSX", below, 110},
        Case{"header behind a pax header", pax + apple, pax.size() + 110},
        Case{"pax header", pax + apple, 110}, Case{"pax records", pax + apple, 514}}) {
    SCOPED_TRACE(what);
    std::string damaged = members;
    damaged[damaged_at] = '7';
    ASSERT_NE(damaged, members);
    for (const bool among_samples : {true, false}) {
      const std::string first = tar_member("a.jpg", "image 1");
      const std::string second = tar_member("a.cls", "1");
      const std::string tar = among_samples ? first + second + damaged + sample("b", 2)
                                            : first + damaged + second + sample("b", 2);
      check(tar + tar_end(), [&](const Source& source) {
        EXPECT_THAT(describe_all(source),
                    ElementsAre("image=image 1;label=1 ;", "image=image 2;label=2 ;"));
        EXPECT_THAT(text_of_notices(source),
                    AllOf(Not(HasSubstr("warning")), HasSubstr("left out 1 member of macOS")));
      });
    }
  }
}

// A name may be what is damaged: its data tell.
TEST_F(TarMembers, OfASampleAreNotTakenForMacOssWhereTheirNamesAreDamaged) {
  std::string damaged = tar_member("n_b.jpg", "B");
  damaged[0] = '.';
  check(tar_member("a.jpg", "A") + damaged + tar_member("c.jpg", "C") + tar_end(),
        [&](const Source& source) { EXPECT_EQ(source.size(), 3U); });
  // A shard that is cut within one lacks what was behind it.
  const std::string cut = sample("a", 1) + tar_member("._b.jpg", apple_double());
  check(cut.substr(0, cut.size() - 100), [&](const Source& source) {
    EXPECT_THAT(describe_all(source), ElementsAre("image=image 1;label=1 ;", HasSubstr("cut off")));
  });
}

// A stretch may hold two damaged members: what makes no sample, and what makes one.
TEST_F(TarMembers, BehindOneThatIsLeftOutAreNotLeftOutWithIt) {
  const std::string pax = tar_member("PaxHeader/._b.jpg", "17 path=._b.jpg\n", 'x');
  for (const std::string& first :
       {tar_member("._b.jpg", apple_double()), tar_member("__MACOSX/b.jpg", "x"),
        tar_member("__notes__/b.jpg", "x"), pax + tar_member("._b.jpg", apple_double())})
    for (const std::size_t damaged_at : {110U, 133U}) {
      std::string both = first + tar_member("b.jpg", "B");
      both[damaged_at] = '7';
      both[first.size() + 110] = '7';
      check(tar_member("a.jpg", "A") + both + tar_member("c.jpg", "C") + tar_end(),
            [&](const Source& source) { EXPECT_EQ(source.size(), 3U) << damaged_at; });
    }
}

TEST_F(TarMembers, ThatMakeNoSampleMakeNoneWhereTheyAreDamaged) {
  for (std::string other : {tar_header("train/", 0, '5'), tar_header("__notes__/x.jpg", 0),
                            tar_header("__notes__", 0)}) {
    other[110] = '7';
    check(sample("a", 1) + other + sample("b", 2) + tar_end(), [&](const Source& source) {
      EXPECT_THAT(describe_all(source),
                  ElementsAre("image=image 1;label=1 ;", "image=image 2;label=2 ;"));
      EXPECT_THAT(source.notices(), IsEmpty());
    });
  }
  // In a shard that is larger than what is looked at at once.
  std::string early = tar_header("train/", 0, '5');
  early[110] = '7';
  check(sample("a", 1) + early + tar_member("b.jpg", std::string(400'000, 'B')) +
            tar_member("b.cls", "2") + sample("c", 3) + tar_end(),
        [&](const Source& source) { EXPECT_EQ(source.size(), 3U); });
  // A folder's header behind which another one is missing.
  std::string folder = tar_header("train/", 0, '5');
  folder[110] = '7';
  check(sample("a", 1) + folder + std::string(512, 'x') + sample("b", 2) + tar_end(),
        [&](const Source& source) { EXPECT_EQ(source.size(), 3U); });
}

TEST_F(TarMembers, ThatAreNoRegularFilesAreNamedInTheFault) {
  const std::string tar =
      sample("a", 1) + tar_member("b.jpg", "B") + tar_member("b.cls", "", '1') +
      tar_member("c.jpg", "", '2') + tar_member("c.cls", "3") + tar_member("d.jpg", "D") +
      tar_member("d.cls", "", '6') + tar_member("e.jpg", "", '2') + tar_member("e.cls", "", '2') +
      sample("f", 6) + tar_member("README", "", '2') + tar_member("f.txt", "", '2') + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(
        describe_all(source),
        ElementsAre("image=image 1;label=1 ;",
                    AllOf(HasSubstr("found jpg"), HasSubstr("a hard link at byte 3072"),
                          HasSubstr("tar --hard-dereference")),
                    AllOf(HasSubstr("found cls"), HasSubstr("a symbolic link at byte 3584"),
                          HasSubstr("tar --dereference")),
                    AllOf(HasSubstr("found jpg"), HasSubstr("a device or pipe at byte 6144")),
                    "image=image 6;label=6 ;"));
    EXPECT_THAT(text_of_notices(source),
                AllOf(HasSubstr("warning: "), HasSubstr("left out 4 symbolic links"),
                      HasSubstr("1 hard link"), HasSubstr("1 device or pipe")));
  });
}

TEST_F(TarMembers, ThatAreManyLinksMakeNoLongFault) {
  const auto shard = [](int links) {
    std::string tar = tar_member("a.jpg", "A");
    for (int i = 0; i < links; ++i) tar += tar_member(fmt::format("a.{}.cls", i), "", '2');
    return tar + sample("b", 2) + tar_member("a.png", "A") + tar_end();
  };
  const auto fault_of = [&](int links) {
    const auto path = test::rewrite(folder_, "shard.tar", shard(links));
    std::filesystem::remove(folder_ / "shard.tar.penstock-index");
    return describe_all(source::webdataset(path)).at(0);
  };
  EXPECT_THAT(fault_of(2), AllOf(HasSubstr("comes again at byte 4096"), HasSubstr("at byte 1024"),
                                 HasSubstr("at byte 1536"), Not(HasSubstr("more"))));
  const std::string many = fault_of(5000);
  EXPECT_THAT(many,
              AllOf(HasSubstr("comes again"), HasSubstr("at byte 1024"), HasSubstr("at byte 1536"),
                    Not(HasSubstr("at byte 2048")), HasSubstr("; and 4998 more links")));
  EXPECT_LT(many.size(), 1500U);
}

TEST_F(TarMembers, ThatAreManyLinksAreLookedForOnceASample) {
  source::ShardContents contents;
  contents.keys = {"a", "b"};
  contents.extensions = {"jpg"};
  contents.members = {{.begin = 512, .bytes = 1}, {.begin = 1024, .bytes = 1}};
  contents.first_member_ends = {1, 2};
  contents.remarks.hard_links = 200;
  for (std::uint64_t i = 0; i < 200; ++i)
    contents.hints.push_back({i / 100, 512 * i, source::HintKind::hard_link});
  std::vector<source::ShardIndex> indexes;
  indexes.push_back(source::ShardIndex::of_encoded(
      source::ShardIndex::encode(source::ShardKind::tar, {1 << 20, 0}, 2, contents)));
  const source::ShardSet shards({"a.tar"}, std::move(indexes),
                                std::make_shared<const storage::Storage>());
  int calls = 0;
  const auto lacks = [&](std::size_t, std::uint64_t) {
    ++calls;
    return false;
  };
  EXPECT_THAT(source::tar_notices(shards, lacks, lacks), SizeIs(1));
  EXPECT_EQ(calls, 2);
}

TEST_F(TarMembers, WithLongNamesMakeNoLongFault) {
  const std::string name = std::string(5000, 'b') + "." + std::string(50'000, 'x');
  const std::string record = fmt::format(" path={}\n", name);
  const std::string tar =
      sample("a", 1) +
      tar_member("PaxHeaders/b", fmt::format("{}{}", record.size() + 5, record), 'x') +
      tar_member("b.x", "B") + tar_end();
  check(tar, [&](const Source& source) {
    const std::string fault = describe_all(source).at(1);
    EXPECT_THAT(fault, AllOf(HasSubstr("no member for 'image'"), HasSubstr("xxxx ...")));
    EXPECT_THAT(fault, HasSubstr("bbbb ..."));
    EXPECT_LT(fault.size(), 2000U);
  });
}

TEST_F(TarMembers, ThatAreLinksAreAWarningOnlyWhereSomethingIsMissing) {
  const std::string whole = sample("a", 1) + tar_member("a.txt", "", '2') +
                            tar_member("README.md", "", '2') + tar_member("b.pipe", "", '6') +
                            sample("b", 2) + tar_end();
  check(whole, [&](const Source& source) {
    EXPECT_THAT(text_of_notices(source),
                AllOf(Not(HasSubstr("warning")), HasSubstr("left out 2 symbolic links, 1 device"),
                      HasSubstr("no sample lacks a member")));
  });
  // Of a sample, a whole sample, and all samples.
  for (const std::string& tar :
       {sample("a", 1) + tar_member("b.jpg", "B") + tar_member("b.cls", "", '1') + tar_end(),
        sample("a", 1) + tar_member("b.jpg", "", '1') + tar_member("b.cls", "", '1') + tar_end(),
        sample("a", 1) + tar_member("c.JPG", "", '1') + sample("d", 1) + tar_end(),
        tar_member("b.jpg", "", '1') + tar_member("b.cls", "", '1') + tar_end()})
    check(tar, [&](const Source& source) {
      EXPECT_THAT(text_of_notices(source), AllOf(HasSubstr("warning: "), HasSubstr("hard link"),
                                                 HasSubstr("samples that lack members")));
    });
}

TEST_F(TarMembers, ThatAreLinksAreAWarningWhereAFieldHasItsDefaultBecauseOfThem) {
  const auto path = folder_.write(
      "shard.tar", tar_member("a.jpg", "A") + tar_member("a.cls", "", '2') + tar_end());
  const SourcePtr source =
      source::webdataset(path, {.fields = {{.name = "image", .extensions = {"jpg"}},
                                           {.name = "label",
                                            .extensions = {"cls"},
                                            .type = WebDatasetField::Type::integer,
                                            .required = false}}});
  EXPECT_THAT(text_of_notices(*source), HasSubstr("warning: "));
}

TEST_F(TarMembers, ThatAreLinksAreAWarningOfTheShardsThatLackSomething) {
  folder_.write("a.tar", sample("a", 1) + tar_member("a.txt", "", '2') + tar_end());
  folder_.write("b.tar", tar_member("b.jpg", "B") + tar_member("b.cls", "", '2') + tar_end());
  const SourcePtr source = source::webdataset(folder_.path());
  ASSERT_THAT(source->notices(), SizeIs(2));
  EXPECT_TRUE(source->notices()[0].is_warning);
  EXPECT_THAT(source->notices()[0].text, AllOf(HasSubstr("b.tar"), HasSubstr("1 symbolic link,")));
  EXPECT_FALSE(source->notices()[1].is_warning);
  EXPECT_THAT(source->notices()[1].text, AllOf(HasSubstr("a.tar"), HasSubstr("1 symbolic link,")));
}

TEST_F(TarMembers, HaveTheNamesAndSizesOfPaxHeaders) {
  // git archive's, and a global path, which a header's own replaces; an empty value takes one back.
  const std::string tar = tar_member("pax_global_header", "13 comment=x\n", 'g') + sample("a", 1) +
                          tar_member("pax_global_header", "14 path=b.jpg\n", 'g') +
                          tar_member("x.jpg", "B") +
                          tar_member("PaxHeaders/b.cls", "14 path=b.cls\n", 'x') +
                          tar_member("y", "2") + tar_member("pax_global_header", "8 path=\n", 'g') +
                          tar_member("PaxHeaders/c.jpg", "8 path=\n", 'x') +
                          tar_member("c.jpg", "C") + tar_member("c.cls", "3") + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(describe_all(source),
                ElementsAre("image=image 1;label=1 ;", "image=B;label=2 ;", "image=C;label=3 ;"));
    EXPECT_EQ(source.info(1).key, "b");
    EXPECT_THAT(source.notices(), IsEmpty());
  });
}

TEST_F(TarMembers, ThatAreSparseAreAFaultOfTheirSampleInEachFormat) {
  for (const char* format :
       {"gnu", "pax --sparse-version=0.0", "pax --sparse-version=0.1", "pax"}) {
    const TemporaryFolder files;
    for (const char* key : {"a", "b", "c"}) {
      files.write(fmt::format("{}.cls", key), "7");
      std::ofstream sparse(files / fmt::format("{}.jpg", key), std::ios::binary);
      for (int piece = 0; piece < 40; ++piece) {  // more than a header has room for
        sparse.seekp(piece * 100'000);
        sparse << "piece " << piece;
      }
    }
    const auto shard = files / "shard.tar";
    const std::string command = fmt::format(
        "cd '{}' && tar --format={} --sparse -cf shard.tar a.jpg a.cls b.jpg b.cls c.jpg c.cls",
        files.path().string(), format);
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no GNU tar";
    const auto is_sparse = [](const char* key) {
      return AllOf(HasSubstr(fmt::format("shard.tar: {}", key)), HasSubstr("sparse"));
    };
    EXPECT_THAT(describe_all(source::webdataset(shard)),
                ElementsAre(is_sparse("a"), is_sparse("b"), is_sparse("c")))
        << format;
  }
}

TEST_F(TarMembers, AtWhoseEndAShardWasCutAreReadAndTheMissingMarkIsSaid) {
  const std::string whole = plain_tar(4);
  const std::string first = plain_tar(2).substr(0, plain_tar(2).size() - 1024);
  ASSERT_TRUE(whole.starts_with(first));
  check(first, [&](const Source& source) {
    EXPECT_THAT(describe_all(source), SizeIs(2));
    EXPECT_THAT(text_of_notices(source),
                AllOf(HasSubstr("warning: "), HasSubstr("shard.tar has no end-of-archive marker"),
                      HasSubstr("cut after its last member")));
  });
  for (const std::size_t zeros : {512U, 513U, 1024U, 10240U})
    check(first + std::string(zeros, '\0'),
          [&](const Source& source) { EXPECT_THAT(source.notices(), IsEmpty()) << zeros; });
}

// What GNU tar, bsdtar and Python's tarfile read without a complaint.
TEST_F(TarMembers, OfArchivesThatEndInAnotherValidWayAreAllThereIs) {
  const std::string whole = sample("a", 1);
  const std::string global = tar_member("pax_global_header", "13 comment=x\n", 'g');
  for (const std::string& tar : {
           whole + global + tar_end(),                     // a global header that nothing follows
           whole + tar_end() + std::string(9000, '\x55'),  // what a tape's block is filled with
           whole + tar_end() + "a trailer",                //
           whole + tar_member("b", "", '5') + tar_end(),   // a folder
           whole + tar_member("d/", "listed", 'D') + tar_end(),  // GNU tar's list of a folder
       })
    check(tar, [&](const Source& source) {
      EXPECT_THAT(describe_all(source), ElementsAre("image=image 1;label=1 ;"));
      EXPECT_THAT(text_of_notices(source), IsEmpty());
    });
  // git archive of an empty tree.
  check(global + std::string(9728, '\0'), [&](const Source& source) {
    EXPECT_EQ(source.size(), 0U);
    EXPECT_THAT(text_of_notices(source), IsEmpty());
  });
  check(whole + global, [&](const Source& source) {
    EXPECT_THAT(describe_all(source), SizeIs(1));
    EXPECT_THAT(text_of_notices(source), HasSubstr("no end-of-archive marker"));
  });
}

// POSIX lets a tar write its last record as its buffer is: behind the end mark lies what it wrote one record before.
TEST_F(TarMembers, ThatAreLeftOverBehindTheEndMarkAreNone) {
  constexpr std::size_t kRecord = 10240;
  std::string tar;
  for (int i = 0; i < 6; ++i) tar += sample(fmt::format("{}", i), i);
  tar += tar_end();
  ASSERT_GT(tar.size(), kRecord);
  const std::string left = tar.substr(tar.size() - kRecord, 2 * kRecord - tar.size());
  check(tar + left, [&](const Source& source) {
    EXPECT_THAT(describe_all(source), AllOf(SizeIs(6), Each(Not(HasSubstr("fault")))));
    EXPECT_THAT(text_of_notices(source), IsEmpty());
  });
  // Anything else is another file that was joined to it.
  std::string other = left;
  other[other.find("image")] = 'I';
  check(tar + other, [&](const Source& source) {
    EXPECT_THAT(describe_all(source).at(6), HasSubstr("zeros where a tar header is expected"));
  });
}

TEST_F(TarMembers, OfArchivesThatGnuTarHasChangedAreAllThereIs) {
  const TemporaryFolder files;
  for (const char* key : {"a", "b", "c", "d"}) {
    files.write(fmt::format("{}.jpg", key), key);
    files.write(fmt::format("{}.cls", key), "7");
  }
  const auto shard = files / "shard.tar";
  for (const int blocks : {1, 3, 20})
    for (const int other : {1, 20}) {
      const std::string command = fmt::format(
          "cd '{0}' && rm -f *.tar && tar -b{1} -cf shard.tar a.* b.* && "
          "tar -b{2} -cf other.tar c.* && tar -b{2} -Af shard.tar other.tar && "
          "tar -b{2} -rf shard.tar d.* && tar -b{1} --delete -f shard.tar b.cls b.jpg",
          files.path().string(), blocks, other);
      if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no GNU tar";
      const SourcePtr source = source::webdataset(shard);
      EXPECT_THAT(describe_all(source),
                  ElementsAre("image=a;label=7 ;", "image=c;label=7 ;", "image=d;label=7 ;"));
      EXPECT_THAT(text_of_notices(*source), IsEmpty()) << blocks << " " << other;
    }
}

TEST_F(TarMembers, WhoseLastHeaderIsDamagedLeaveTheEndMarkFound) {
  const std::string good = plain_tar(2);
  const std::size_t last = good.size() - 1024 - 1024;
  std::string bad = good;
  bad[last + 130] = '7';  // a size beyond the file's
  check(bad, [&](const Source& source) {
    EXPECT_THAT(describe_all(source),
                ElementsAre(Not(HasSubstr("fault")), HasSubstr("damaged tar")));
    EXPECT_THAT(text_of_notices(source), IsEmpty());
  });
  check(bad.substr(0, bad.size() - 1024), [&](const Source& source) {
    EXPECT_THAT(text_of_notices(source), HasSubstr("no end-of-archive marker"));
  });
  // Joined, and cut within the second: it has a mark, though not where it ends.
  check(good + good.substr(0, good.size() - 1024), [&](const Source& source) {
    EXPECT_THAT(text_of_notices(source), HasSubstr("no end-of-archive marker at its end"));
  });
}

TEST_F(TarMembers, WithoutTheirPaddingAreCutOff) {
  const std::string good = plain_tar(2);
  const std::string end = good.substr(0, good.size() - 1024);
  for (const std::size_t missing : {1U, 511U}) {
    check(end.substr(0, end.size() - missing), [&](const Source& source) {
      EXPECT_THAT(describe_all(source), ElementsAre(Not(HasSubstr("fault")),
                                                    AllOf(HasSubstr("n1"), HasSubstr("cut off"))));
      EXPECT_THAT(text_of_notices(source), HasSubstr("no end-of-archive marker"));
    });
  }
}

TEST_F(TarMembers, OfACutShardAreNotThoseOfAnIndexOfTheWholeOne) {
  const std::string whole = plain_tar(4);
  const auto path = folder_.write("shard.tar", whole);
  ASSERT_EQ(source::webdataset(path)->size(), 4U);
  const auto time = std::filesystem::last_write_time(path);
  std::filesystem::resize_file(path, plain_tar(2).size() - 1024);
  std::filesystem::last_write_time(path, time);
  for (int i = 0; i < 2; ++i) {
    const SourcePtr source = source::webdataset(path);
    EXPECT_EQ(source->size(), 2U);
    EXPECT_THAT(text_of_notices(*source), HasSubstr("no end-of-archive marker"));
  }
}

TEST_F(TarMembers, ThatAFieldCannotBeMadeOfAreShown) {
  const std::string tar = tar_member("a.jpg", "A") + tar_member("a.cls", "three\x1b") +
                          tar_member("b.png", "B") + tar_member("b.png", "B") +
                          tar_member("b.cls", "2") + tar_member("c.jpg", "C") +
                          tar_member("c.cls", std::string(5000, 'c')) + tar_end();
  check(tar, [&](const Source& source) {
    EXPECT_THAT(describe_all(source),
                ElementsAre(HasSubstr("found 'three\\x1b'"),
                            HasSubstr("two members for 'image', both .png"),
                            HasSubstr("found 5000 bytes that begin with 'cccc")));
  });
  check("<!DOCTYPE html><html>" + std::string(5000, ' '), [&](const Source& source) {
    EXPECT_THAT(describe_all(source), ElementsAre(HasSubstr("found an HTML page")));
  });
  check(std::string(5000, 'x'), [&](const Source& source) {
    EXPECT_THAT(describe_all(source), ElementsAre(HasSubstr("starts with 'xxxx'")));
  });
}

TEST_F(TarMembers, OfManyShardsAreSaidOnce) {
  for (int i = 0; i < 20; ++i)
    folder_.write(fmt::format("{:02}.tar", i), sample("a", 1) + tar_member("._a.jpg", "x"));
  const SourcePtr source = source::webdataset(folder_.path());
  EXPECT_THAT(source->notices(), SizeIs(2));
  EXPECT_THAT(text_of_notices(*source),
              AllOf(HasSubstr("20 shards, such as"), HasSubstr("00.tar"), Not(HasSubstr("01.tar")),
                    HasSubstr("left out 20 members of macOS")));
}

}  // namespace
}  // namespace penstock
