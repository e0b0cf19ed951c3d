// Files of other writers, compared with what pyarrow reads in them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/project_path.hpp"
#include "tests/source/arrow/read_file.hpp"

namespace penstock {
namespace {

using source::ArrowColumns;
using test::ArrowFileInMemory;
using ::testing::HasSubstr;

std::filesystem::path arrow_fixture(const std::string& name) {
  return test::project_path("tests/source/arrow/files/" + name);
}

std::vector<std::string> arrow_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(arrow_fixture("")))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

bool has_zstd() {
  const auto known = source::parquet_codecs();
  return std::ranges::find(known, source::ParquetCodec::zstd) != known.end();
}

class ArrowFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(ArrowFiles, HaveTheValuesThatPyarrowReads) {
  if (GetParam().find("zstd") != std::string::npos && !has_zstd())
    GTEST_SKIP() << "this build has no libzstd";
  std::ifstream stream(arrow_fixture(GetParam() + ".txt"));
  const std::string expected{std::istreambuf_iterator<char>(stream), {}};
  ArrowFileInMemory file(arrow_fixture(GetParam() + ".arrow"));
  EXPECT_EQ(test::describe_arrow_file(file), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ArrowFiles, ::testing::ValuesIn(arrow_fixtures()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace penstock
