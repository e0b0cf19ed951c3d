// The rooms table holds in this tree, and a file that breaks it is found.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "include_rules.hpp"

namespace penstock::layering {
namespace {

namespace fs = std::filesystem;
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

// A copy of the tree, in which a test may plant what it likes.
class PlantedTree : public ::testing::Test {
 protected:
  PlantedTree() {
    std::string name = (fs::temp_directory_path() / "penstock-layering-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    for (const char* top : {"include", "src"}) {
      fs::copy(fs::path(PENSTOCK_ROOT) / top, root_ / top, fs::copy_options::recursive);
    }
  }
  ~PlantedTree() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void plant(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST(Layering, EveryIncludeOfTheTreeFollowsTheRoomsTable) {
  EXPECT_THAT(findings(PENSTOCK_ROOT), IsEmpty());
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
  plant("bench/planted/planted.cpp",
        "#include <penstock/core/dtype.hpp>\n"
        "#include \"src/core/planted.hpp\"\n");
  EXPECT_THAT(findings(root_), ElementsAre(StartsWith("bench/planted/planted.cpp:2: ")));
}

TEST_F(PlantedTree, ARoomOutsideTheTableMayIncludeNothing) {
  plant("src/attic/planted.cpp", "#include <penstock/core/dtype.hpp>\n");
  EXPECT_THAT(findings(root_), ElementsAre(HasSubstr("not in the rooms table")));
}

TEST_F(PlantedTree, WhatTheTableAllowsIsLeftAlone) {
  plant("include/penstock/planted.hpp",
        "#include <penstock/core/dtype.hpp>\n"
        "#include <penstock/sync/planted.hpp>\n");
  plant("src/device/planted.cpp",
        "#include <vector>\n"
        "#include <penstock/staging/planted.hpp>\n"
        "#include \"src/core/planted.hpp\"\n"
        "#include \"src/device/planted.hpp\"\n");
  plant("pipelines/planted.cpp", "#include <penstock/sync/planted.hpp>\n");
  EXPECT_THAT(findings(root_), IsEmpty());
}

}  // namespace
}  // namespace penstock::layering
