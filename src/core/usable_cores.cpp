#include "src/core/usable_cores.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock::core {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

bool lists(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// A number of a control file; none for "max", for -1, and where there is no such file.
std::optional<double> number_of(const std::string& word) {
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string> words_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return words_of(line);
}

std::optional<double> first_number(const fs::path& file) {
  const std::vector<std::string> words = words_in(file);
  return words.empty() ? std::nullopt : number_of(words[0]);
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// A hierarchy of control groups, as /proc/self/mountinfo and /proc/self/cgroup describe it.
struct Hierarchy {
  fs::path mount;     // where it is mounted
  std::string group;  // the process's, below what is mounted
};

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// Blanks and backslashes are written in octal in mountinfo: "a\040b".
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 4], code, 8).ptr == &text[i + 4]) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct ControlGroups {
  fs::path root;
  std::vector<std::string> groups;
  std::vector<std::string> mounts;

  explicit ControlGroups(const fs::path& at)
      : root(at),
        groups(lines_of(at / "proc/self/cgroup")),
        mounts(lines_of(at / "proc/self/mountinfo")) {}

  [[nodiscard]] std::optional<Hierarchy> find(std::string_view controller, bool is_v2) const {
    std::optional<std::string> group;
    for (const std::string& line : groups) {  // "4:memory:/a/b"; of version 2 "0::/a/b"
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      if (first == line.npos || second == line.npos) continue;
      const std::string_view controllers =
          std::string_view(line).substr(first + 1, second - first - 1);
      if (is_v2 ? controllers.empty() : lists(controllers, controller))
        group = line.substr(second + 1);
    }
    if (!group) return std::nullopt;
    std::optional<Hierarchy> found;
    for (const std::string& line : mounts) {
      if (line.find(" - cgroup") == line.npos) continue;
      const std::vector<std::string> words = words_of(line);
      const auto dash = std::ranges::find(words, "-");
      if (words.size() < 6 || words.end() - dash < 4) continue;
      if (!(is_v2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && lists(dash[3], controller)))
        continue;
      const std::string top = unescaped(words[3]);  // the group that is mounted
      const bool is_above = top == "/" || *group == top || group->starts_with(top + "/");
      // Without one above it, a container sees its own group under another name.
      if (found && !is_above) continue;
      found = {root / unescaped(words[4]).substr(1), ""};
      if (is_above) found->group = top == "/" ? *group : group->substr(top.size());
      if (is_above) break;
    }
    return found;
  }
};

// Calls visit(folder) for the process's group and those above it, as far as they can be seen.
template <class Visit>
void for_each_group(const Hierarchy& all, Visit&& visit) {
  std::string group = all.group;
  if (group.starts_with("/..")) group.clear();  // outside what this namespace sees
  fs::path folder = all.mount;
  visit(folder);
  for (const fs::path& part : fs::path(group).relative_path()) visit(folder /= part);
}

std::optional<double> quota_in(const fs::path& folder, bool is_v2) {
  std::optional<double> quota;
  std::optional<double> period;
  if (is_v2) {
    const std::vector<std::string> words = words_in(folder / "cpu.max");
    if (words.size() == 2) quota = number_of(words[0]), period = number_of(words[1]);
  } else {
    quota = first_number(folder / "cpu.cfs_quota_us");
    period = first_number(folder / "cpu.cfs_period_us");
  }
  return quota && period && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

int count_affinity(pid_t process, cpu_set_t& set) {
  CPU_ZERO(&set);
  return ::sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

ControlGroupLimits control_group_limits(const fs::path& root) {
  // Where there is no limit, version 1 says a number near 2^63.
  constexpr double kNoLimit = 1ULL << 60;
  std::optional<double> cores;
  std::optional<double> memory;
  const ControlGroups groups(root);
  for (const bool is_v2 : {true, false}) {
    if (const auto found = groups.find("cpu", is_v2))
      for_each_group(
          *found, [&](const fs::path& folder) { cores = smaller(cores, quota_in(folder, is_v2)); });
    if (const auto found = groups.find("memory", is_v2))
      for_each_group(*found, [&](const fs::path& folder) {
        memory = smaller(memory,
                         first_number(folder / (is_v2 ? "memory.max" : "memory.limit_in_bytes")));
      });
  }
  ControlGroupLimits limits{.cores = cores, .memory_bytes = std::nullopt};
  if (memory && *memory < kNoLimit) limits.memory_bytes = static_cast<std::uint64_t>(*memory);
  return limits;
}

UsableCores usable_cores(const ControlGroupLimits& limits) {
  const int machine = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  UsableCores cores{.count = machine, .limit = CoreLimit::machine};
  cpu_set_t set;
  // More than 1,024 cores do not fit a cpu_set_t.
  const int affinity = count_affinity(0, set);
  if (affinity > 0 && affinity < cores.count) cores = {affinity, CoreLimit::affinity};
  if (limits.cores && *limits.cores < cores.count)
    cores = {std::max(1, static_cast<int>(std::ceil(*limits.cores))), CoreLimit::quota};
  return cores;
}

}  // namespace penstock::core

namespace penstock {

int default_threads() {
  int processes = 1;
  try {
    processes = static_cast<int>(std::max(Launch::from_environment().local_world, 1U));
  } catch (const Error&) {  // variables that contradict each other are the loader's to refuse
  }
  const core::UsableCores cores = core::usable_cores();
  // All processes of a control group share its quota.
  if (cores.limit == core::CoreLimit::quota || processes == 1)
    return std::max(1, cores.count / processes);
  // The launcher's cores are those of all its processes, which may have been given some of them each.
  cpu_set_t launcher;
  const int all = std::max(core::count_affinity(::getppid(), launcher), cores.count);
  return std::min(cores.count, std::max(1, all / processes));
}

}  // namespace penstock
