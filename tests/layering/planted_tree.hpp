// A copy of the tree, in which a test may plant what it likes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/project_path.hpp"

namespace penstock::layering {

namespace fs = std::filesystem;

class PlantedTree : public ::testing::Test {
 protected:
  PlantedTree() {
    std::string name = (fs::temp_directory_path() / "penstock-layering-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    for (const char* top : {"include", "src", "testing"})
      fs::copy(fs::path(test::project_path(top)), root_ / top, fs::copy_options::recursive);
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

}  // namespace penstock::layering
