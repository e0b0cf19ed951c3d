// The operations beside torchvision's and Pillow's, whose results golden/make.py wrote down.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "src/core/json_fields.hpp"
#include "tests/augment/pictures.hpp"
#include "tests/project_path.hpp"

namespace penstock::augment::test {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream file(penstock::test::project_path("tests/augment/golden/") + name,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Golden, EveryOperationIsThatOfTorchvisionWithinItsTolerance) {
  const core::Json golden = core::parse_json(read_file("cases.json"), "cases.json");
  const std::string pixels = read_file("pixels.bin");
  const int height = golden["height"];
  const int width = golden["width"];
  const ImageShape shapes[] = {{height, width, 3}, {height, width, 1}};
  std::size_t at = 0;
  const auto next = [&](const ImageShape& shape) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(pixels.data()) + at;
    at += shape.bytes();
    return Levels(begin, begin + shape.bytes());
  };
  const Levels images[] = {next(shapes[0]), next(shapes[1])};
  ASSERT_GT(golden["cases"].size(), 80U);
  for (const core::Json& one : golden["cases"]) {
    const Augmentation operation = Augmentation::from_json(one["operation"].dump());
    for (std::size_t k = 0; k < 2; ++k) {
      const Levels expected = next(shapes[k]);
      const Levels found = run_on(program_of({&operation, 1}, shapes[k]), images[k], shapes[k]);
      int most = 0;
      std::size_t differing = 0;
      for (std::size_t level = 0; level < found.size(); ++level) {
        const int difference = std::abs(found[level] - expected[level]);
        most = std::max(most, difference);
        differing += difference != 0;
      }
      const double share = static_cast<double>(differing) / static_cast<double>(found.size());
      EXPECT_LE(most, one["most"].get<int>())
          << operation.to_string() << " of " << shapes[k].channels << ": a share of " << share;
      EXPECT_LE(share, one["share"].get<double>())
          << operation.to_string() << " of " << shapes[k].channels;
    }
  }
  EXPECT_EQ(at, pixels.size());
}

}  // namespace
}  // namespace penstock::augment::test
