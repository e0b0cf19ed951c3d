// No two files define a type of one name, and the search for such pairs finds one.
#include "definitions.hpp"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planted_tree.hpp"
#include "tests/project_path.hpp"

namespace penstock::layering {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Definitions, EveryTypeOfTheTreeIsDefinedInOneFile) {
  EXPECT_THAT(types_defined_twice(test::project_path("")), IsEmpty());
}

TEST(Definitions, FindsTypesUnderTheirFullNames) {
  EXPECT_THAT(types_defined_in(R"(
    namespace a::b {
    enum class Colour : std::uint8_t { red };
    template <class T> class Box final : public Base<T> { struct Lid {}; class Later; };
    class Box2::Inner {};
    struct [[nodiscard]] Marked { int x = f(Marked{}); };
    template <> struct Hash<Box> {};
    }
    union Top { int i; };
  )"),
              ElementsAre("Top", "a::b::Box", "a::b::Box2::Inner", "a::b::Box::Lid", "a::b::Colour",
                          "a::b::Hash<Box>", "a::b::Marked"));
}

TEST(Definitions, LeavesOutWhatNoOtherFileCanMean) {
  EXPECT_THAT(types_defined_in(R"(
    // struct Comment {};
    #define MACRO struct Macro {};
    namespace { struct Hidden {}; namespace inner { struct AlsoHidden {}; } }
    class Declared;
    struct stat buffer;
    void f(struct Argument argument) { struct Local {}; }
    template <class T, class U = int> void g() {}
    const char* text = "struct Text {";
    using namespace std;
    namespace fs = std::filesystem;
  )"),
              IsEmpty());
}

TEST_F(PlantedTree, ATypeThatTwoFilesDefineIsFoundWithBoth) {
  plant("src/core/planted.hpp", "namespace penstock::core { struct Planted {}; }\n");
  plant("src/core/planted.cpp",
        "namespace penstock { namespace core { enum class Planted {}; } }\n");
  EXPECT_THAT(types_defined_twice(root_),
              ElementsAre("penstock::core::Planted: src/core/planted.cpp, src/core/planted.hpp"));
}

TEST_F(PlantedTree, ACopyOfAHeaderIsFound) {
  fs::copy(root_ / "include/penstock/core/random.hpp", root_ / "src/core/planted.hpp");
  EXPECT_THAT(types_defined_twice(root_), Contains(HasSubstr("penstock::Digest: ")));
}

TEST_F(PlantedTree, ANameMayStandInTwoRooms) {
  plant("src/core/planted.hpp", "namespace penstock::core { struct Planted {}; }\n");
  plant("src/jpeg/planted.hpp", "namespace penstock::jpeg { struct Planted {}; }\n");
  EXPECT_THAT(types_defined_twice(root_), IsEmpty());
}

}  // namespace
}  // namespace penstock::layering
