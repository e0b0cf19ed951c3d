#include "include_rules.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "source_files.hpp"

namespace penstock::layering {
namespace {

namespace fs = std::filesystem;

// The way of the data. A room may include itself and what stands here. The last ones are places for what is built next.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core", {}},
    {"jpeg", {"core"}},
    {"storage", {"core"}},
    {"order", {"core"}},
    {"source", {"core", "storage"}},
    {"transform", {"core", "jpeg", "augment"}},
    {"batch", {"core"}},
    {"staging", {"core"}},
    {"device", {"core", "staging", "augment"}},
    {"plan",
     {"core", "jpeg", "storage", "order", "source", "sequence", "transform", "augment", "batch",
      "device"}},
    {"loader",
     {"core", "jpeg", "order", "source", "sequence", "transform", "batch", "staging", "device",
      "gpu_jpeg", "plan"}},
    {"sync", {"core", "device"}},
    {"testing",
     {"core", "jpeg", "storage", "order", "source", "transform", "batch", "staging", "device",
      "plan", "loader"}},
    {"sequence", {"core", "order", "source"}},
    {"augment", {"core"}},
    {"prepare", {"core", "storage", "source", "jpeg", "transform"}},
    {"gpu_jpeg", {"core", "jpeg", "transform", "staging", "device"}},
    {"report", {"core", "jpeg", "device", "plan", "loader"}},
};
// Within a room, and beyond the rule that no two folders include each other: the direction.
const std::vector<std::pair<std::string, std::string>> kMayNotInclude = {
    {"src/jpeg/libjpeg", "src/jpeg/decoder"}, {"src/storage/local", "src/storage/http"},
    {"src/storage/http", "src/storage/s3"},   {"src/storage/http", "src/storage/hub"},
    {"src/storage/s3", "src/storage/hub"},    {"src/storage/hub", "src/storage/s3"},
};
// Programs are written as a user would write them, on the public headers. Benchmarks may look into the library: what
// costs time is often a part that users do not see.
const std::set<std::string> kOutside = {"pipelines", "bench", "python"};
const std::set<std::string> kMayLookInside = {"bench"};
const std::vector<std::string> kScanned = {"include",   "src",   "testing",
                                           "pipelines", "bench", "python"};

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
  if (top == "testing" && parts.size() >= 2) return Place{top, false};
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

bool is_within(const fs::path& file, const std::string& folder) {
  return file.generic_string().starts_with(folder + "/");
}

// What is wrong with `from` including `to`; nothing when it may.
std::optional<std::string> broken_rule(const fs::path& from, const fs::path& to) {
  const std::optional<Place> user = place_of(from);
  const std::optional<Place> used = place_of(to);
  if (!user || !used) return std::nullopt;
  if (kOutside.contains(user->name)) {
    if (used->name == user->name || used->is_public) return std::nullopt;
    if (kMayLookInside.contains(user->name) && !kOutside.contains(used->name)) return std::nullopt;
    return user->name + " includes " + to.string() + "; it may include only <penstock/...>";
  }
  if (user->is_public && !used->is_public) {
    return "a public header includes " + to.string() + ", which is not installed";
  }
  for (const auto& [folder, forbidden] : kMayNotInclude)
    if (is_within(from, folder) && is_within(to, forbidden))
      return folder + " includes " + forbidden + " (" + to.string() + "), which is built on it";
  if (user->name == "umbrella" || user->name == used->name) return std::nullopt;
  const auto room = kMayInclude.find(user->name);
  if (room != kMayInclude.end() && room->second.contains(used->name)) return std::nullopt;
  return user->name + " includes " + used->name + " (" + to.string() + "); it may include " +
         (room == kMayInclude.end() ? "nothing: it is not in the rooms table" : join(room->second));
}

struct Edge {
  int line = 0;
  fs::path to;
};

std::vector<Edge> includes_of(const fs::path& root, const fs::path& file) {
  std::vector<Edge> found;
  std::ifstream text(root / file);
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    const std::optional<Include> include = include_on(line);
    if (!include) continue;
    if (auto target = target_of(root, file, *include)) found.push_back({number, *target});
  }
  return found;
}

// Files or folders, and those that each includes.
using Graph = std::map<fs::path, std::vector<fs::path>>;

// Walks the includes in depth, and notes the way back to a node that it is still in.
class CycleFinder {
 public:
  explicit CycleFinder(const Graph& graph) : graph_(graph) {}

  void visit(const fs::path& node) {
    if (done_.contains(node)) return;
    if (const auto begin = std::ranges::find(way_, node); begin != way_.end()) {
      std::string circle;
      for (auto at = begin; at != way_.end(); ++at) circle += at->generic_string() + " -> ";
      found_.push_back(circle + node.generic_string());
      return;
    }
    way_.push_back(node);
    if (const auto next = graph_.find(node); next != graph_.end())
      for (const fs::path& included : next->second) visit(included);
    way_.pop_back();
    done_.insert(node);
  }

  [[nodiscard]] std::vector<std::string> take() { return std::move(found_); }

 private:
  const Graph& graph_;
  std::vector<fs::path> way_;
  std::set<fs::path> done_;
  std::vector<std::string> found_;
};

std::vector<std::string> cycles_of(const Graph& graph) {
  CycleFinder finder(graph);
  for (const auto& [node, included] : graph) finder.visit(node);
  return finder.take();
}

}  // namespace

std::string Violation::to_string() const {
  return file.string() + ":" + std::to_string(line) + ": " + rule;
}

std::vector<Violation> scan(const fs::path& root) {
  std::vector<Violation> found;
  for (const fs::path& file : source_files(root, kScanned))
    for (const Edge& edge : includes_of(root, file))
      if (auto rule = broken_rule(file, edge.to)) found.push_back({file, edge.line, *rule});
  return found;
}

std::vector<std::string> cycles(const fs::path& root) {
  Graph graph;
  for (const fs::path& file : source_files(root, kScanned)) {
    std::vector<fs::path>& included = graph[file];
    for (const Edge& edge : includes_of(root, file)) included.push_back(edge.to);
  }
  return cycles_of(graph);
}

std::vector<std::string> folder_cycles(const fs::path& root) {
  Graph graph;
  for (const fs::path& file : source_files(root, {"src"}))
    for (const Edge& edge : includes_of(root, file))
      if (const fs::path from = file.parent_path(), to = edge.to.parent_path();
          from != to && is_within(edge.to, "src"))
        graph[from].push_back(to);
  return cycles_of(graph);
}

}  // namespace penstock::layering
