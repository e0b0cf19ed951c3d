// The rooms table holds in this tree, and a file that breaks it is found.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include_rules.hpp"
#include "planted_tree.hpp"

namespace penstock::layering {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> findings(const fs::path& root) {
  std::vector<std::string> lines;
  for (const Violation& violation : scan(root)) lines.push_back(violation.to_string());
  return lines;
}

TEST(Layering, EveryIncludeOfTheTreeFollowsTheRoomsTable) {
  EXPECT_THAT(findings(test::project_path("")), IsEmpty());
}

TEST_F(PlantedTree, AnArrowAgainstTheTableIsFoundWithFileLineAndRule) {
  plant("src/core/planted.cpp", "// a comment\n#include <penstock/order/order.hpp>\n");
  EXPECT_THAT(findings(root_),
              ElementsAre(AllOf(StartsWith("src/core/planted.cpp:2: core includes order"),
                                HasSubstr("it may include no other room"))));
}

TEST_F(PlantedTree, TransformMayNotIncludeSource) {
  plant("include/penstock/transform/planted.hpp", "  #  include <penstock/source/source.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("transform includes source")));
}

TEST_F(PlantedTree, LoaderMayNotIncludeSyncNorSyncLoader) {
  plant("src/loader/planted.cpp", "#include \"src/sync/planted.hpp\"\n");
  plant("src/sync/planted.hpp", "#include <penstock/loader/loader.hpp>\n");
  EXPECT_THAT(findings(root_),
              ElementsAre(HasSubstr("loader includes sync"), HasSubstr("sync includes loader")));
}

TEST_F(PlantedTree, AWayRoundByDotsIsFound) {
  plant("src/order/planted.hpp", "");
  plant("src/batch/planted.cpp", "#include \"../order/planted.hpp\"\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("batch includes order")));
}

TEST_F(PlantedTree, ARoomMayNotIncludeTheUmbrella) {
  plant("src/loader/planted.cpp", "#include <penstock/penstock.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("loader includes umbrella")));
}

TEST_F(PlantedTree, APublicHeaderMayNotIncludeAPrivateOne) {
  plant("src/core/planted.hpp", "");
  plant("include/penstock/core/planted.hpp", "#include \"src/core/planted.hpp\"\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("which is not installed")));
}

TEST_F(PlantedTree, ProgramsMayIncludePublicHeadersOnly) {
  plant("src/core/planted.hpp", "");
  for (const char* folder : {"pipelines", "python"}) {
    plant(fs::path(folder) / "planted/planted.cpp",
          "#include <penstock/core/tensor.hpp>\n"
          "#include \"src/core/planted.hpp\"\n");
  }
  EXPECT_THAT(findings(root_), ElementsAre(StartsWith("pipelines/planted/planted.cpp:2: "),
                                           StartsWith("python/planted/planted.cpp:2: ")));
}

TEST_F(PlantedTree, BenchmarksMayLookIntoTheLibraryButNotIntoPrograms) {
  plant("src/core/planted.hpp", "");
  plant("pipelines/planted.hpp", "");
  plant("bench/planted.cpp",
        "#include \"src/core/planted.hpp\"\n"
        "#include \"pipelines/planted.hpp\"\n");
  EXPECT_THAT(findings(root_), ElementsAre(StartsWith("bench/planted.cpp:2: ")));
}

TEST_F(PlantedTree, TheLoaderMayNotIncludeWhatOnlyTestsNeed) {
  plant("testing/planted.hpp", "#include <penstock/loader/loader.hpp>\n");
  plant("src/loader/planted.cpp",
        "#include \"testing/planted.hpp\"\n"
        "#include <penstock/testing/planted.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("planted.cpp:1: loader includes testing"),
                                           HasSubstr("planted.cpp:2: loader includes testing")));
}

TEST_F(PlantedTree, TestingMayNotIncludeSync) {
  plant("testing/planted.cpp", "#include <penstock/sync/planted.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("testing includes sync")));
}

TEST_F(PlantedTree, APlanMayNotIncludeWhatRunsIt) {
  plant("src/plan/planted.cpp", "#include \"src/loader/planted.hpp\"\n");
  plant("src/loader/planted.cpp", "#include \"src/plan/planted.hpp\"\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("plan includes loader")));
}

TEST_F(PlantedTree, ARoomOutsideTheTableMayIncludeNothing) {
  plant("src/attic/planted.cpp", "#include <penstock/core/tensor.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("not in the rooms table")));
}

TEST_F(PlantedTree, WhatTheTableAllowsIsLeftAlone) {
  plant("include/penstock/planted.hpp",
        "#include <penstock/core/tensor.hpp>\n"
        "#include <penstock/sync/planted.hpp>\n");
  plant("src/device/planted.cpp",
        "#include <vector>\n"
        "#include <penstock/staging/planted.hpp>\n"
        "#include \"src/core/planted.hpp\"\n"
        "#include \"src/device/planted.hpp\"\n");
  plant("pipelines/planted.cpp", "#include <penstock/sync/planted.hpp>\n");
  EXPECT_THAT(findings(root_), IsEmpty());
}

TEST(Cycles, NoFileOfTheTreeIncludesItselfByAWayRound) {
  EXPECT_THAT(cycles(test::project_path("")), IsEmpty());
}

TEST(Cycles, NoTwoFoldersOfTheLibraryIncludeEachOther) {
  EXPECT_THAT(folder_cycles(test::project_path("")), IsEmpty());
}

TEST_F(PlantedTree, ACircleOfFoldersIsFoundThoughTheirFilesAreNone) {
  plant("src/core/one.cpp", "#include \"src/core/inside/two.hpp\"\n");
  plant("src/core/inside/two.hpp", "");
  plant("src/core/inside/three.hpp", "#include \"src/core/four.hpp\"\n");
  plant("src/core/four.hpp", "");
  EXPECT_THAT(cycles(root_), IsEmpty());
  EXPECT_THAT(folder_cycles(root_), ElementsAre("src/core -> src/core/inside -> src/core"));
}

TEST_F(PlantedTree, ACircleOfIncludesIsFoundWithItsWholeWay) {
  plant("include/penstock/core/one.hpp", "#include <penstock/core/two.hpp>\n");
  plant("include/penstock/core/two.hpp", "#include <penstock/core/three.hpp>\n");
  plant("include/penstock/core/three.hpp", "#include <penstock/core/two.hpp>\n");

#include "tests/project_path.hpp"
  EXPECT_THAT(cycles(root_), ElementsAre("include/penstock/core/two.hpp -> "
                                         "include/penstock/core/three.hpp -> "
                                         "include/penstock/core/two.hpp"));
}

TEST_F(PlantedTree, OneFileIncludedByTwoWaysIsNoCircle) {
  plant("src/core/one.hpp", "#include \"src/core/two.hpp\"\n#include \"src/core/three.hpp\"\n");
  plant("src/core/two.hpp", "#include \"src/core/three.hpp\"\n");
  plant("src/core/three.hpp", "");
  EXPECT_THAT(cycles(root_), IsEmpty());
}

}  // namespace
}  // namespace penstock::layering
