// The examples of CONTRIBUTING.md, used.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contributing_examples.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Contributing, TheSourceAndTheTransformMakeBatches) {
  const fs::path path = fs::temp_directory_path() / "penstock-contributing-test.txt";
  std::ofstream(path) << "one\ntwo\nthree\n";
  Loader loader = Dataset(std::make_shared<Lines>(path.string()))
                      .map(std::make_shared<FixedLength>(4))
                      .batch(3)
                      .loader();
  const auto step = loader.next();
  ASSERT_TRUE(step);
  const auto* const text = (*step)[0]["text"].data<std::uint8_t>();
  EXPECT_EQ(std::string(text, text + 12), std::string("one\0two\0thre", 12));
  EXPECT_THROW(Lines("/nowhere/words.txt"), Error);
  fs::remove(path);
}

TEST(Contributing, TheOrderIsReversed) {
  const auto reversed = std::make_shared<order::Reversed>(order::skip(order::range(5), 1));
  const auto cursor = reversed->open();
  std::vector<SampleId> out(8);
  ASSERT_EQ(cursor->read(0, 0, 1, out), 4U);
  std::vector<std::uint64_t> numbers;
  for (std::size_t k = 0; k < 4; ++k) numbers.push_back(out[k].number);
  EXPECT_THAT(numbers, ElementsAre(4, 3, 2, 1));
  EXPECT_EQ(cursor->read(0, 1, 2, out), 2U);
  EXPECT_EQ(out[1].number, 1U);
}

}  // namespace
}  // namespace penstock
