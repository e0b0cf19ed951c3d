// Where the project's own files are: what other tools wrote, pages of docs/. Only one object knows the folder, so that ccache has
// those of the tests for every checkout.
#pragma once

#include <string>
#include <string_view>

namespace penstock::test {

/// The path of a file or folder of the project, such as "tests/source/golden"; of its root for "".
[[nodiscard]] std::string project_path(std::string_view inside);

}  // namespace penstock::test
