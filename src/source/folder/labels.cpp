#include "src/source/folder/labels.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kShown = 100;  // bytes of a line in a message
constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct Line {
  std::string name;
  std::string label;
};

// A comma or tab separates better than a semicolon or bar, and these better than a blank, which names of files and classes
// may contain.
constexpr std::array<std::string_view, 3> kSeparators{",\t", ";|", kBlanks};

// At the last of these separators, since commas are commoner in file names than in labels.
std::optional<Line> split_plain(std::string_view line, std::string_view separators) {
  const std::size_t at = line.find_last_of(separators);
  if (at == line.npos) return std::nullopt;
  Line parts{std::string(trimmed(line.substr(0, at))), std::string(trimmed(line.substr(at + 1)))};
  if (parts.name.empty() || parts.label.empty()) return std::nullopt;
  return parts;
}

// A field in double quotes, where "" is one of them (RFC 4180), or what comes before a separator. Takes it off `rest`, with
// the separator behind it; none where a quote does not end, or something else follows it.
std::optional<std::string> take_field(std::string_view& rest, std::string_view separators) {
  rest = trimmed(rest);
  std::string field;
  if (!rest.starts_with('"')) {
    const std::size_t end = std::min(rest.find_first_of(separators), rest.size());
    field = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return field;
  }
  for (rest.remove_prefix(1);; rest.remove_prefix(1)) {
    if (rest.empty()) return std::nullopt;
    if (rest.starts_with("\"\""))
      rest.remove_prefix(1);
    else if (rest.starts_with('"'))
      break;
    field += rest.front();
  }
  rest.remove_prefix(1);
  if (separators != kBlanks) rest = trimmed(rest);
  if (rest.empty()) return field;
  if (separators.find(rest.front()) == separators.npos) return std::nullopt;
  rest.remove_prefix(1);
  return field;
}

std::optional<Line> split_quoted(std::string_view line, std::string_view separators) {
  const auto name = take_field(line, separators);
  const auto label = take_field(line, separators);
  if (!name || !label || name->empty() || label->empty() || !line.empty()) return std::nullopt;
  return Line{*name, *label};
}

// What the line may mean, the likeliest first.
std::vector<Line> readings_of(std::string_view line) {
  const bool is_quoted = line.starts_with('"') || line.ends_with('"');
  std::vector<Line> readings;
  for (const std::string_view separators : kSeparators)
    if (auto parts = is_quoted ? split_quoted(line, separators) : split_plain(line, separators))
      readings.push_back(*std::move(parts));
  return readings;
}

// What tables call these columns.
bool is_heading(std::string_view text) {
  std::string word;
  for (const char c : text)
    if (c != '_' && c != '-' && c != ' ')
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  static constexpr std::string_view kWords[] = {
      "file",    "filename",  "filenames", "filepath",   "path",    "image",   "images",
      "imageid", "imagename", "imagepath", "img",        "imgname", "imgpath", "id",
      "name",    "fname",     "key",       "label",      "labels",  "labelid", "class",
      "classid", "classname", "category",  "categoryid", "target",  "y"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

enum class Kind : std::uint8_t { name, integer, other_number };

struct Label {
  Kind kind = Kind::name;
  std::int64_t value = 0;
};

// Tables write integers as 3.0 where one of the column is missing, and numpy.savetxt as 3.000e+00. What is no number, such as
// "nan", is a name, and so is 7e1 without a point, which hexadecimal numbers look like.
Label label_of(std::string_view text) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  const auto whole = std::from_chars(text.data(), end, integer);
  if (whole.ptr != end || text.empty()) {
    double real = 0;
    const std::size_t point = text.find('.');
    const auto read = std::from_chars(text.data(), end, real);
    if (point == text.npos || read.ptr != end) return {};
    if (text.find_first_of("eE") == text.npos) {  // by its digits, since a double may be rounded
      const bool has_fraction = text.find_first_not_of('0', point + 1) != text.npos;
      if (has_fraction) return {Kind::other_number};
      const std::string_view digits = text.substr(0, point);
      return digits.empty() || digits == "-" ? Label{Kind::integer, 0} : label_of(digits);
    }
    constexpr double kInexact = 1LL << 53;
    if (read.ec != std::errc{} || real != std::floor(real) || std::abs(real) >= kInexact)
      return {Kind::other_number};
    return {Kind::integer, static_cast<std::int64_t>(real)};
  }
  return whole.ec == std::errc{} ? Label{Kind::integer, integer} : Label{Kind::other_number};
}

// What to do about several labels of an image, which the field `label` does not hold.
constexpr std::string_view kSeveral =
    "several labels of an image are a field of their own: use zip([image_folder(path), "
    "memory({'labels': array})]) without `labels`; row i of the array is for the i-th image, "
    "sorted "
    "by path";

// The parts of a label that looks like a list, such as 1;3;7 or [1, 3]; none where it is one word.
std::vector<std::string> list_in(std::string_view label, std::string_view separators) {
  if (label.size() > 2 && label.front() == '[' && label.back() == ']')
    label = label.substr(1, label.size() - 2);
  std::vector<std::string> parts;
  while (!label.empty()) {
    const std::size_t end = std::min(label.find_first_of(separators), label.size());
    if (const std::string_view part = trimmed(label.substr(0, end)); !part.empty())
      parts.emplace_back(part);
    label.remove_prefix(std::min(end + 1, label.size()));
  }
  if (parts.size() < 2) parts.clear();
  return parts;
}

bool is_list_of_integers(std::string_view label) {
  const std::vector<std::string> parts = list_in(label, ";|, \t");
  return !parts.empty() && std::ranges::all_of(parts, [](const std::string& part) {
    return label_of(part).kind == Kind::integer;
  });
}

class LabelReader {
 public:
  LabelReader(const std::filesystem::path& path, const FileList& images,
              std::span<const std::string> classes)
      : path_(path),
        images_(images),
        classes_(classes),
        numbers_(numbers_of(classes)),
        line_of_(images.size(), 0),
        label_of_(images.size()) {}

  Labels run(const std::string& all) {
    // UTF-16, with its mark or without.
    if (all.starts_with("\xFF\xFE") || all.starts_with("\xFE\xFF") || all.find('\0') != all.npos)
      throw Error(fmt::format("{} is not a text in UTF-8 (it looks like UTF-16); save it as UTF-8",
                              path_.string()));
    std::istringstream file(all);
    std::string text;
    for (std::uint64_t number = 1; std::getline(file, text); ++number) {
      std::string_view line = text;
      constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
      if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(3);
      line = trimmed(line);
      if (!line.empty()) add(number, line);
    }
    require_all();
    if (!classes_.empty()) return named({classes_.begin(), classes_.end()}, numbers_);
    if (first_word_line_ == 0) return integers();
    std::vector<std::string> names = sorted_names();
    const ClassNumbers numbers = numbers_of(names);
    refuse_lists_of(numbers);
    return named(std::move(names), numbers);
  }

 private:
  void add(std::uint64_t number, std::string_view line) {
    const std::vector<Line> readings = readings_of(line);
    if (readings.empty())
      fail(number, fmt::format("expected 'name label', found '{}'", core::printable(line, kShown)));
    const Line* parts = readings.data();
    const bool is_first = !std::exchange(has_lines_, true);
    if (is_first && is_heading(parts->name) && is_heading(parts->label)) return;
    std::uint64_t file = images_.size();
    for (const Line& reading : readings) {
      file = find_image(number, reading.name);
      if (file == images_.size()) continue;
      parts = &reading;
      break;
    }
    if (file == images_.size()) {
      if (is_first && is_heading(parts->name)) return;
      fail(number, describe_unknown(parts->name, is_first));
    }
    if (line_of_[file] != 0) {
      fail(number, fmt::format("'{}' has a label already, from line {}; remove one of them",
                               parts->name, line_of_[file]));
    }
    if (!numbers_.contains(parts->label) &&
        (is_list_of_integers(parts->label) || is_list_of(numbers_, parts->label)))
      fail(
          number,
          fmt::format(
              "the label '{}' holds several; {}{}", core::printable(parts->label, kShown), kSeveral,
              classes_.empty() ? "; if it is one name, list all names in the option classes" : ""));
    if (classes_.empty())
      check_kind(number, parts->label);
    else if (!numbers_.contains(parts->label))
      fail(number,
           fmt::format(
               "the label '{}' is none of the {} names in the option classes; add it there, or "
               "correct the line",
               core::printable(parts->label, kShown), classes_.size()));
    line_of_[file] = number;
    label_of_[file] = parts->label;
  }

  static bool is_list_of(const ClassNumbers& names, std::string_view label) {
    const std::vector<std::string> parts = list_in(label, ";|,");
    return !parts.empty() && std::ranges::all_of(parts, [&](const std::string& part) {
      return names.contains(part);
    });
  }

  // A name that consists of others: "cat;dog" beside "cat" and "dog".
  void refuse_lists_of(const ClassNumbers& names) const {
    for (std::size_t file = 0; file < label_of_.size(); ++file)
      if (is_list_of(names, label_of_[file]))
        fail(line_of_[file],
             fmt::format("the label '{}' holds several that are labels of other images; {}; if it "
                         "is one name, list all names in the option classes",
                         core::printable(label_of_[file], kShown), kSeveral));
  }

  void check_kind(std::uint64_t number, std::string_view text) {
    const Kind kind = label_of(text).kind;
    if (kind == Kind::other_number)
      fail(number,
           fmt::format(
               "the label '{}' is a number, but no integer of 64 bits; number the classes from 0, "
               "or, if these are names, list them in the option classes",
               core::printable(text, kShown)));
    std::uint64_t& first = kind == Kind::integer ? first_integer_line_ : first_word_line_;
    if (first == 0) first = number;
    if (first_integer_line_ != 0 && first_word_line_ != 0)
      fail(number,
           fmt::format(
               "the label '{}' is {}, but line {} has {}; use one kind throughout, or list all "
               "names in the option classes",
               core::printable(text, kShown), kind == Kind::name ? "a name" : "an integer",
               std::min(first_integer_line_, first_word_line_),
               kind == Kind::name ? "an integer" : "a name"));
  }

  // Images are sorted by their paths.
  std::uint64_t first_from(std::string_view path) const {
    const auto files = std::views::iota(std::uint64_t{0}, images_.size());
    return static_cast<std::uint64_t>(
        std::ranges::partition_point(
            files, [&](std::uint64_t file) { return images_.compare_path(file, path) < 0; }) -
        files.begin());
  }

  std::uint64_t find(std::string_view path) const {
    const std::uint64_t file = first_from(path);
    return file < images_.size() && images_.compare_path(file, path) == 0 ? file : images_.size();
  }

  // By its path, or by its path without the ending, as tables of ids have it; images_.size() where there is none.
  std::uint64_t find_image(std::uint64_t number, std::string_view path) const {
    if (path.starts_with("./")) path.remove_prefix(2);
    std::uint64_t found = find(path);
    if (found != images_.size()) return found;
    const std::string stem = std::string(path) + '.';
    for (std::uint64_t file = first_from(stem); file < images_.size(); ++file) {
      const std::string whole = images_.folder(file).path + std::string(images_.name(file));
      if (!whole.starts_with(stem)) break;
      if (whole.find_first_of("./", stem.size()) != whole.npos) continue;
      if (found != images_.size())
        fail(number,
             fmt::format("'{}' is the name of two images, '{}' and '{}'; write the ending, too",
                         core::printable(path, kShown), path_of(found), path_of(file)));
      found = file;
    }
    return found;
  }

  std::string path_of(std::uint64_t file) const {
    return core::printable(images_.folder(file).path + std::string(images_.name(file)));
  }

  std::string describe_unknown(std::string_view name, bool is_first) const {
    const std::string_view first = trimmed(name.substr(0, name.find_first_of(",\t;|")));
    const std::string_view word = trimmed(name.substr(0, name.find_first_of(kBlanks)));
    for (const std::string_view begin : {first, word})
      if (begin.size() < name.size() &&
          (find(begin) != images_.size() || (is_first && is_heading(begin))))
        return fmt::format(
            "expected two columns, the name of an image and its label, found '{}' before the last "
            "one; "
            "keep these two, or put a name with a separator in double quotes; {}",
            core::printable(name, kShown), kSeveral);
    return fmt::format(
        "expected the path of an image relative to the folder, found '{}'; remove the line, or add "
        "the image",
        core::printable(name, kShown));
  }

  void require_all() const {
    const auto missing = std::count(line_of_.begin(), line_of_.end(), 0);
    if (missing == 0) return;
    const auto first = std::find(line_of_.begin(), line_of_.end(), 0) - line_of_.begin();
    throw Error(fmt::format(
        "{} has no label for {} of {} images, '{}' the first of them; add the lines, or move the "
        "images away",
        path_.string(), missing, images_.size(), path_of(static_cast<std::uint64_t>(first))));
  }

  Labels integers() const {
    Labels labels;
    labels.of_file.reserve(label_of_.size());
    for (const std::string& text : label_of_) labels.of_file.push_back(label_of(text).value);
    return labels;
  }

  std::vector<std::string> sorted_names() const {
    std::vector<std::string> names = label_of_;
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  Labels named(std::vector<std::string> names, const ClassNumbers& numbers) const {
    Labels labels;
    labels.of_file.reserve(label_of_.size());
    for (const std::string& text : label_of_) labels.of_file.push_back(numbers.find(text)->second);
    labels.class_names = std::move(names);
    return labels;
  }

  [[noreturn]] void fail(std::uint64_t line, const std::string& what) const {
    throw Error(fmt::format("{} line {}: {}", path_.string(), line, what));
  }

  const std::filesystem::path& path_;
  const FileList& images_;
  std::span<const std::string> classes_;  // empty: none were given
  ClassNumbers numbers_;                  // of these
  std::vector<std::uint64_t> line_of_;    // 0: no label yet
  std::vector<std::string> label_of_;
  bool has_lines_ = false;
  std::uint64_t first_integer_line_ = 0;
  std::uint64_t first_word_line_ = 0;
};

}  // namespace

Labels read_labels(const std::filesystem::path& labels_file, const FileList& images,
                   std::span<const std::string> classes, const storage::Storage& storage) {
  return LabelReader(labels_file, images, classes).run(storage.read_text(labels_file.string()));
}

}  // namespace penstock::source
