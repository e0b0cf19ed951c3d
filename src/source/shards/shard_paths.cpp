#include "src/source/shards/shard_paths.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/core/printable.hpp"
#include "src/source/shards/foreign_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/stem.hpp"

namespace penstock::source {

namespace {

using Texts = std::vector<std::string>;

[[noreturn]] void throw_too_many(std::string_view pattern) {
  throw std::invalid_argument(
      fmt::format("the pattern {} stands for more than {} paths", pattern, kMaxExpansions));
}

// The brace that closes the one at `open`; npos if none does.
std::size_t closing_brace(std::string_view text, std::size_t open) noexcept {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return text.npos;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}') {
      --depth;
    }
  }
  return parts;
}

std::optional<std::int64_t> integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

bool is_padded(std::string_view number) noexcept {
  if (number.starts_with('-')) number.remove_prefix(1);
  return number.size() > 1 && number.front() == '0';
}

// {first..last} and {first..last..step}, of integers or single letters; nothing for other texts.
std::optional<Texts> expand_range(std::string_view inside, std::string_view pattern) {
  const std::size_t dots = inside.find("..");
  if (dots == inside.npos) return std::nullopt;
  const std::string_view from = inside.substr(0, dots);
  std::string_view to = inside.substr(dots + 2);
  std::int64_t step = 1;
  if (const std::size_t more = to.find(".."); more != to.npos) {
    const auto given = integer(to.substr(more + 2));
    if (!given || *given == INT64_MIN) return std::nullopt;
    step = *given < 0 ? -*given : *given;
    if (step == 0) step = 1;
    to = to.substr(0, more);
  }
  const auto is_letter = [](std::string_view text) {
    return text.size() == 1 &&
           ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  };
  const bool letters = is_letter(from) && is_letter(to);
  const std::optional<std::int64_t> first = letters ? from[0] : integer(from);
  const std::optional<std::int64_t> last = letters ? to[0] : integer(to);
  if (!first || !last) return std::nullopt;
  const bool up = *first <= *last;
  const std::uint64_t distance =
      up ? static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(*first)
         : static_cast<std::uint64_t>(*first) - static_cast<std::uint64_t>(*last);
  const std::uint64_t steps = distance / static_cast<std::uint64_t>(step);
  if (steps >= kMaxExpansions) throw_too_many(pattern);
  const std::size_t digits =
      is_padded(from) || is_padded(to) ? std::max(from.size(), to.size()) : 0;
  Texts texts;
  for (std::uint64_t i = 0; i <= steps; ++i) {
    // Unsigned, since the way from the first to the last may be longer than a signed number.
    const std::uint64_t moved = i * static_cast<std::uint64_t>(step);
    const auto from_first = static_cast<std::uint64_t>(*first);
    const auto value = static_cast<std::int64_t>(up ? from_first + moved : from_first - moved);
    texts.push_back(letters ? std::string(1, static_cast<char>(value))
                            : fmt::format("{:0{}}", value, digits));
  }
  return texts;
}

Texts expand(std::string_view text, std::string_view pattern);

// What the braces stand for; nothing if they stand for themselves.
std::optional<Texts> expand_inside(std::string_view inside, std::string_view pattern) {
  const std::vector<std::string_view> parts = split_at_commas(inside);
  if (parts.size() == 1) return expand_range(inside, pattern);
  Texts texts;
  for (const std::string_view part : parts) {
    for (std::string& each : expand(part, pattern)) texts.push_back(std::move(each));
    if (texts.size() > kMaxExpansions) throw_too_many(pattern);
  }
  return texts;
}

Texts expand(std::string_view text, std::string_view pattern) {
  Texts all{""};
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::size_t close = open == text.npos ? text.npos : closing_brace(text, open);
    Texts middle{""};
    std::size_t plain = text.size();
    std::size_t used = text.size();
    if (open != text.npos) {
      plain = used = open + 1;
      if (close != text.npos) {
        if (auto inside = expand_inside(text.substr(open + 1, close - open - 1), pattern)) {
          plain = open;
          used = close + 1;
          middle = std::move(*inside);
        }
      }
    }
    if (all.size() * middle.size() > kMaxExpansions) throw_too_many(pattern);
    Texts longer;
    longer.reserve(all.size() * middle.size());
    for (const std::string& begin : all) {
      for (const std::string& end : middle) {
        longer.push_back(begin + std::string(text.substr(0, plain)) + end);
      }
    }
    all = std::move(longer);
    text.remove_prefix(used);
  }
  return all;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The paths that a pattern with * ? [] fits, by their bytes: glob() itself sorts by the locale.
Texts matches(const std::string& pattern) {
  struct Matches : ::glob_t {
    Matches() : ::glob_t{} {}
    Matches(const Matches&) = delete;
    Matches& operator=(const Matches&) = delete;
    ~Matches() { ::globfree(this); }
  } found;
  const int error = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (error != 0 && error != GLOB_NOMATCH) {
    throw Error(
        fmt::format("cannot look for {}: out of memory, or a folder cannot be read", pattern));
  }
  Texts paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

constexpr std::size_t kShownOfName = 1000;  // bytes in a message: as long as names are

// A pattern for the files of the split that a name says.
std::string pattern_of_split(std::string_view name, const SplitName& split) {
  if (auto numbered = numbered_name(name)) return std::move(numbered->pattern);
  return fmt::format("*{}*{}", split.word, name.substr(std::min(name.rfind('.'), name.size())));
}

// As one data set, what is to be measured would be trained on.
void require_one_split(const std::string& folder, std::span<const std::string> paths) {
  std::map<std::string_view, std::string_view> splits;  // with a name of each
  for (const std::string& path : paths)
    if (const auto split = split_of_name(without_folder(path)))
      splits.emplace(split->split, without_folder(path));
  if (splits.size() < 2) return;
  std::vector<std::string> texts;
  for (const auto& [split, name] : splits)
    texts.push_back(fmt::format("{} ({})", split, core::printable(name, kShownOfName)));
  const auto train = splits.find("train");
  const std::string_view name = (train == splits.end() ? splits.begin() : train)->second;
  throw Error(fmt::format(
      "{} has files of several splits, {}: give a pattern for one of them, such as '{}', or a list "
      "of paths for all as one data set",
      folder, fmt::join(texts, ", "),
      path_below(folder,
                 core::printable(pattern_of_split(name, *split_of_name(name)), kShownOfName))));
}

// Names such as train-00001-of-00005.parquet say how many there are.
void require_all_numbers(const std::string& folder, std::span<const std::string> paths) {
  std::map<std::string, std::pair<std::uint64_t, std::set<std::uint64_t>>> sets;
  for (const std::string& path : paths) {
    if (const auto name = numbered_name(without_folder(path))) {
      auto& [count, numbers] = sets[name->pattern];
      count = name->count;
      numbers.insert(name->number);
    }
  }
  for (const auto& [pattern, set] : sets) {
    const auto& [count, numbers] = set;
    if (numbers.size() >= count) continue;
    std::uint64_t missing = 0;
    while (numbers.contains(missing)) ++missing;
    const std::string shown = core::printable(pattern, kShownOfName);
    throw Error(fmt::format(
        "{} has {} of {} files {}{}: a copy of them may have ended early; give a pattern, '{}', to "
        "read those that are there",
        folder, numbers.size(), count, shown,
        missing == 0 ? std::string() : fmt::format(", number {} is missing", missing),
        path_below(folder, shown)));
  }
}

constexpr std::size_t kMostOthers = 1000;  // enough to describe a folder; bounds the memory

class Finder {
 public:
  Finder(const std::function<bool(std::string_view)>& is_shard, std::string_view what,
         const storage::Storage& storage)
      : is_shard_(is_shard), what_(what), storage_(storage) {}

  void add(const std::string& given) {
    if (given.empty()) throw std::invalid_argument("the path of a shard is empty");
    storage::require_readable_scheme(given);
    if (storage::is_web_url(given)) return add_web_files(given);
    if (storage::is_object_url(given)) return add_objects(given);
    if (exists(given)) return add_existing(given);
    for (const std::string& path : expand_braces(given)) {
      if (exists(path)) {
        add_existing(path);
      } else if (path.find_first_of("*?[") != path.npos) {
        add_matches(path);
      } else {
        throw Error(fmt::format("expected a shard at {}, found nothing; check the path{}", path,
                                path == given ? "" : fmt::format(", which {} stands for", given)));
      }
    }
  }

  FoundShards result() {
    std::map<std::string, Texts> missing;  // by their folder
    for (const auto& [folder, name] : folders_left_out_) {
      const std::string below = path_below(path_below(folder, name), "");
      // It may have been given by itself.
      if (std::ranges::none_of(shards_,
                               [&](const std::string& shard) { return shard.starts_with(below); }))
        missing[folder].push_back(name);
    }
    for (const auto& [folder, names] : missing)
      notices_.push_back({.text = fmt::format(
                              "{0}: left out folders with {1}: {2}; to read them, too, give a list "
                              "of folders: '{0}', '{3}' and so on",
                              core::printable(folder), what_, listed(names),
                              core::printable(path_below(folder, names.front()))),
                          .is_warning = true});
    return {.paths = std::move(shards_), .notices = std::move(notices_)};
  }

 private:
  void add_existing(const std::string& path) {
    if (!is_folder(path)) return add_file(path);
    Texts found;
    Texts others;
    Texts folders;
    std::error_code error;
    std::filesystem::directory_iterator entries(path, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      std::error_code ignored;
      if (name.starts_with('.')) continue;
      if (entries->is_directory(ignored)) {
        if (folders.size() < kMostOthers) folders.push_back(name);
      } else if (is_shard_(name))
        found.push_back(entries->path().string());
      else if (others.size() < kMostOthers)
        others.push_back(name);
    }
    if (error) {
      throw Error(fmt::format("cannot list {}: {}; make the folder readable (chmod u+rx)", path,
                              error.message()));
    }
    if (found.empty()) throw Error(describe_none(path, others));
    note_left_out(path, found, others, std::move(folders),
                  [&](const std::string& name) { return has_shards(path_below(path, name)); });
    add_folder(path, std::move(found));
  }

  // By the first names in it.
  bool has_shards(const std::string& folder) const {
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    for (std::size_t seen = 0;
         seen < kMostOthers && !error && entries != std::filesystem::directory_iterator();
         ++seen, entries.increment(error))
      if (const std::string name = entries->path().filename().string();
          !name.starts_with('.') && is_shard_(name))
        return true;
    return false;
  }

  // Shards in sub-folders, and compressed ones, look as if they belonged to the data set; but not those of another split, and
  // what programs keep for themselves ("_delta_log").
  void note_left_out(const std::string& folder, const Texts& found, const Texts& others,
                     Texts folders, const std::function<bool(const std::string&)>& has) {
    std::erase_if(folders, [](const std::string& name) {
      return name.starts_with('_') || split_of_name(name).has_value();
    });
    std::ranges::sort(folders);
    folders.resize(std::min(kMostFoldersLookedInto, folders.size()));
    for (const std::string& name : folders)
      if (has(name)) folders_left_out_.emplace_back(folder, name);
    const std::set<std::string_view> names = [&] {
      std::set<std::string_view> all;
      for (const std::string& path : found) all.insert(without_folder(path));
      return all;
    }();
    Texts compressed;
    for (const std::string& name : others)
      if (const auto inside = unpacked_name(name);
          inside && is_shard_(*inside) && !names.contains(*inside))
        compressed.push_back(name);
    if (compressed.empty()) return;
    std::ranges::sort(compressed);
    notices_.push_back(
        {.text = fmt::format("{}: left out {}, {}", core::printable(folder), listed(compressed),
                             *describe_foreign(compressed.front())),
         .is_warning = true});
  }

  // "'a', 'b' and others".
  static std::string listed(const Texts& names) {
    Texts shown;
    for (const std::string& name : std::span(names).first(std::min(kShown, names.size())))
      shown.push_back("'" + core::printable(name, kShownOfName) + "'");
    return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? " and others" : "");
  }

  void add_folder(const std::string& folder, Texts found) {
    std::sort(found.begin(), found.end());
    require_one_split(folder, found);
    require_all_numbers(folder, found);
    shards_.insert(shards_.end(), found.begin(), found.end());
  }

  // A name that looks compressed may be that of a plain file, which the source finds out.
  void add_file(const std::string& path) {
    const std::string_view name = without_folder(path);
    if (const auto foreign = describe_foreign(path);
        foreign && !unpacked_name(path) && !is_shard_(name))
      throw Error(fmt::format("{} is {}", path, *foreign));
    shards_.push_back(path);
  }

  std::string describe_none(const std::string& folder, const Texts& others,
                            const Texts& folders = {}) const {
    std::string text = fmt::format("no shards in {}: expected {}; ", folder, what_);
    for (const std::string& name : others)
      if (const auto foreign = describe_foreign(name))
        return text + fmt::format("{} is {}", name, *foreign);
    if (!folders.empty())
      text +=
          fmt::format("it has the folder{} {}{}; ", folders.size() == 1 ? "" : "s",
                      fmt::join(std::span(folders).first(std::min(kShown, folders.size())), ", "),
                      folders.size() > kShown ? " and others" : "");
    return text + "check the path, or give a pattern";
  }

  void add_matches(const std::string& pattern) {
    const Texts found = matches(pattern);
    for (const std::string& path : found) {
      if (!is_folder(path) && !path.ends_with(kIndexEnding)) add_file(path);
    }
    if (found.empty()) {
      throw Error(fmt::format("no shard fits {}; check the pattern", pattern));
    }
  }

  void add_objects(const std::string& given) {
    constexpr std::string_view kSpecial = "*?[{";
    // One request more for patterns alone, which are rare as names.
    if (given.find_first_of(kSpecial) != given.npos && storage_.stat(given)) {
      shards_.push_back(given);
      return;
    }
    for (const std::string& url : expand_braces(given)) {
      const std::string_view name = without_folder(url);
      if (url.find_first_of("*?[") != url.npos) {
        add_matching_objects(url);
      } else if (is_shard_(name)) {
        shards_.push_back(url);
      } else {
        add_object_folder(url);
      }
    }
  }

  // Which are not listed: each is named. The query is one for all of them, and no pattern.
  void add_web_files(const std::string& given) {
    const storage::WebUrl url = storage::split_web_url(given);
    for (const std::string& plain : expand_braces(url.plain)) {
      const storage::ObjectName name = storage::parse_object_url(plain);
      if (name.key.find('*') != name.key.npos || name.folder_prefix() == name.key)
        storage_.objects(name).list(name, false, [](const auto&) { return true; });
      add_file(storage_.name_of(plain + std::string(url.query)));
    }
  }

  void add_object_folder(const std::string& url) {
    storage::ObjectName folder = storage::parse_object_url(url);
    const storage::ObjectName given = folder;
    folder.key = folder.folder_prefix();
    Texts found;
    Texts others;
    Texts folders;
    storage_.objects(folder).list(folder, false, [&](storage::ListedObject&& object) {
      std::string_view name = std::string_view(object.key).substr(folder.key.size());
      if (name.starts_with('.')) return true;
      if (object.is_folder) {
        name.remove_suffix(name.ends_with('/') ? 1 : 0);
        if (folders.size() < kMostOthers) folders.emplace_back(name);
        return true;
      }
      if (is_shard_(name))
        found.push_back(folder.with_key(object.key).url());
      else if (others.size() < kMostOthers)
        others.emplace_back(name);
      return true;
    });
    // A shard under a name that says nothing of its kind.
    if (found.empty() && !given.key.empty() && storage_.stat(url)) return add_file(url);
    if (found.empty()) {
      for (std::string& name : folders) name = core::printable(name, 100);
      throw Error(describe_none(folder.url(), others, folders));
    }
    note_left_out(folder.url(), found, others, std::move(folders), [&](const std::string& name) {
      return has_shard_objects(folder.with_key(folder.key + name + '/'));
    });
    add_folder(folder.url(), std::move(found));
  }

  // By its first names. Of one that must not be listed it is not known.
  bool has_shard_objects(const storage::ObjectName& folder) const try {
    bool has = false;
    std::size_t seen = 0;
    storage_.objects(folder).list(folder, false, [&](storage::ListedObject&& object) {
      const std::string_view name = std::string_view(object.key).substr(folder.key.size());
      has = !object.is_folder && !name.starts_with('.') && is_shard_(name);
      return !has && ++seen < kMostOthers;
    });
    return has;
  } catch (const Error&) {
    core::require_wanted();
    return false;
  }

  void add_matching_objects(const std::string& url) {
    const storage::ObjectName pattern = storage::parse_object_url(url);
    const std::size_t special = pattern.key.find_first_of("*?[");
    const storage::ObjectName prefix = pattern.with_key(pattern.key.substr(0, special));
    const bool recursive = pattern.key.find('/', special) != std::string::npos;
    Texts found;
    storage_.objects(prefix).list(prefix, recursive, [&](storage::ListedObject&& object) {
      if (!object.is_folder && !object.key.ends_with(kIndexEnding) &&
          ::fnmatch(pattern.key.c_str(), object.key.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) {
        found.push_back(prefix.with_key(object.key).url());
      }
      return true;
    });
    if (found.empty()) throw Error(fmt::format("no shard fits {}; check the pattern", url));
    std::sort(found.begin(), found.end());
    shards_.insert(shards_.end(), found.begin(), found.end());
  }

  static constexpr std::size_t kShown = 5;
  static constexpr std::size_t kMostFoldersLookedInto = 10;  // in buckets a request each
  const std::function<bool(std::string_view)>& is_shard_;
  std::string_view what_;
  const storage::Storage& storage_;
  Texts shards_;
  std::vector<Notice> notices_;
  std::vector<std::pair<std::string, std::string>> folders_left_out_;
};

}  // namespace

Texts expand_braces(std::string_view pattern) { return expand(pattern, pattern); }

FoundShards find_shards(const ShardPaths& paths,
                        const std::function<bool(std::string_view)>& is_shard,
                        std::string_view what, const storage::Storage& storage) {
  if (paths.as_given().empty()) {
    throw std::invalid_argument("no shards given; expected a path, a folder or a pattern");
  }
  Finder finder(is_shard, what, storage);
  for (const std::string& given : paths.as_given()) {
    std::error_code error;
    if (storage::split_web_url(given).plain.find("**") != std::string_view::npos &&
        !std::filesystem::exists(given, error))
      throw std::invalid_argument(
          fmt::format("{}: ** is no pattern here: write a * for each folder, as in 'data/*/*.tar', "
                      "or give a list of paths",
                      storage::split_web_url(given).plain));
    finder.add(given);
  }
  return finder.result();
}

}  // namespace penstock::source
