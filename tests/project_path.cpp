#include "tests/project_path.hpp"

namespace penstock::test {

std::string project_path(std::string_view inside) {
  std::string path(PENSTOCK_ROOT);
  if (!inside.empty()) path.append("/").append(inside);
  return path;
}

}  // namespace penstock::test
