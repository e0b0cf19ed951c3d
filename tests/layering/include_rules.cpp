#include "include_rules.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace penstock::layering {
namespace {

namespace fs = std::filesystem;

// DESIGN: the way of the data. A room may include itself and what stands here.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core", {}},
    {"order", {"core"}},
    {"storage", {"core"}},
    {"source", {"core", "storage"}},
    {"jpeg", {"core"}},
    {"transform", {"core", "jpeg"}},
    {"batch", {"core"}},
    {"staging", {"core"}},
    {"device", {"core", "staging"}},
    {"loader",
     {"core", "order", "storage", "source", "jpeg", "transform", "batch", "staging", "device"}},
    {"sync", {"core", "device"}},
};
const std::set<std::string> kOutside = {"pipelines", "bench", "python"};
const std::set<std::string> kExtensions = {".hpp", ".h", ".cpp", ".cu", ".cuh"};

// Where a file stands: a room or a program folder, and whether its users can see it.
struct Place {
  std::string name;  // a room, "pipelines" and so on, or "umbrella"
  bool is_public = false;
};

std::optional<Place> place_of(const fs::path& file) {
  const std::vector<std::string> parts(file.begin(), file.end());
  const std::string top = parts.empty() ? "" : parts[0];
  if (top == "include" && parts.size() >= 3 && parts[1] == "penstock") {
    return Place{parts.size() == 3 ? "umbrella" : parts[2], true};
  }
  if (top == "src" && parts.size() >= 3) return Place{parts[1], false};
  if (kOutside.contains(top)) return Place{top, false};
  return std::nullopt;
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no other room" : text;
}

struct Include {
  std::string path;
  bool quoted = false;
};

std::optional<Include> include_on(const std::string& line) {
  const auto skip = [&line](std::size_t at) { return line.find_first_not_of(" \t", at); };
  std::size_t at = skip(0);
  if (at == std::string::npos || line[at] != '#') return std::nullopt;
  at = skip(at + 1);
  constexpr std::string_view kWord = "include";
  if (at == std::string::npos || line.compare(at, kWord.size(), kWord) != 0) return std::nullopt;
  at = skip(at + kWord.size());
  if (at == std::string::npos || (line[at] != '<' && line[at] != '"')) return std::nullopt;
  const std::size_t end = line.find(line[at] == '<' ? '>' : '"', at + 1);
  if (end == std::string::npos) return std::nullopt;
  return Include{line.substr(at + 1, end - at - 1), line[at] == '"'};
}

// The file of the tree that an include names, or nothing for files of others.
std::optional<fs::path> target_of(const fs::path& root, const fs::path& from,
                                  const Include& include) {
  if (include.quoted) {
    const fs::path beside = (from.parent_path() / include.path).lexically_normal();
    if (fs::exists(root / beside)) return beside;
  }
  const fs::path path = fs::path(include.path).lexically_normal();
  if (include.path.starts_with("penstock/")) return "include" / path;
  if (place_of(path)) return path;
  return std::nullopt;
}

// What is wrong with `from` including `to`; nothing when it may.
std::optional<std::string> broken_rule(const fs::path& from, const fs::path& to) {
  const std::optional<Place> user = place_of(from);
  const std::optional<Place> used = place_of(to);
  if (!user || !used) return std::nullopt;
  if (kOutside.contains(user->name)) {
    if (used->name == user->name || used->is_public) return std::nullopt;
    return user->name + " includes " + to.string() + "; it may include only <penstock/...>";
  }
  if (user->is_public && !used->is_public) {
    return "a public header includes " + to.string() + ", which is not installed";
  }
  if (user->name == "umbrella" || user->name == used->name) return std::nullopt;
  const auto room = kMayInclude.find(user->name);
  if (room != kMayInclude.end() && room->second.contains(used->name)) return std::nullopt;
  return user->name + " includes " + used->name + " (" + to.string() + "); it may include " +
         (room == kMayInclude.end() ? "nothing: it is not in the rooms table" : join(room->second));
}

void scan_file(const fs::path& root, const fs::path& file, std::vector<Violation>& found) {
  std::ifstream text(root / file);
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::optional<Include> include = include_on(line);
    if (!include) continue;
    const std::optional<fs::path> target = target_of(root, file, *include);
    if (!target) continue;
    if (auto rule = broken_rule(file, *target)) found.push_back({file, number, *rule});
  }
}

}  // namespace

std::string Violation::to_string() const {
  return file.string() + ":" + std::to_string(line) + ": " + rule;
}

std::vector<Violation> scan(const fs::path& root) {
  std::vector<fs::path> files;
  for (const char* top : {"include", "src", "pipelines", "bench", "python"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.is_regular_file() && kExtensions.contains(entry.path().extension().string())) {
        files.push_back(entry.path().lexically_relative(root));
      }
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Violation> found;
  for (const fs::path& file : files) scan_file(root, file, found);
  return found;
}

}  // namespace penstock::layering
