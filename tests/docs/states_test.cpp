// docs/plans.md names every field of a state, and no others.
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <penstock/loader/loader.hpp>

#include "tests/project_path.hpp"

namespace penstock {
namespace {

using nlohmann::json;

// "faults.list[].row"; what is in a plan has its own page.
void add_names(const json& value, const std::string& path, std::set<std::string>& names) {
  if (value.is_object() && path != "plan") {
    for (const auto& [key, inner] : value.items())
      add_names(inner, path.empty() ? key : path + "." + key, names);
    return;
  }
  if (value.is_array() && !value.empty() && value[0].is_object() && path != "plan")
    add_names(value[0], path + "[]", names);
  names.insert(path);
}

TEST(States, ThePageNamesEveryField) {
  LoaderState state{.plan = R"([{"op": "read"}])", .world = "w", .weights = {{1, {0.5}}}};
  state.in_last_step_of_pass = true;
  state.image_libraries = {{.name = "libtiff", .version = "4.5.0"}};
  Fault fault{.reason = "r"};
  fault.sample = {.number = 1, .epoch = 1, .source = 1, .draw = 1};
  state.faults.push_back(fault);
  state.transformed_digest = {1, 1};
  std::set<std::string> written;
  add_names(json::parse(state.to_json()), "", written);

  std::ifstream file(test::project_path("docs/plans.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> told;
  const std::size_t begin = page.find("| `penstock_state` |");
  ASSERT_NE(begin, page.npos);
  const std::string table = page.substr(begin, page.find("\n\n", begin) - begin);
  std::string folder;
  for (std::size_t at = 0; at < table.size();
       at = std::min(table.find('\n', at), table.size() - 1) + 1) {
    const std::string cell = table.substr(at + 1, table.find('|', at + 1) - at - 1);
    static const std::regex kName("`([^`]+)`");
    for (std::sregex_iterator name(cell.begin(), cell.end(), kName), end; name != end; ++name) {
      const std::string text = (*name)[1];
      // ".epoch" stands beside "faults.list[].sample".
      if (text[0] != '.')
        folder = text.substr(0, text.rfind('.') == text.npos ? 0 : text.rfind('.'));
      told.insert(text[0] == '.' ? folder + text : text);
    }
  }
  written.insert("faults.list");
  written.insert("weights");
  written.insert("image_libraries");
  written.erase("weights[]");
  written.erase("image_libraries[]");
  written.erase("faults.list[]");
  EXPECT_EQ(told, written);
}

}  // namespace
}  // namespace penstock
