#include "src/source/folder/labels.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/source/csv/csv_text.hpp"
#include "src/source/folder/label_texts.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kShown = 100;  // bytes of a line in a message

// What to do about several labels of an image, which the field `label` does not hold.
constexpr std::string_view kSeveral =
    "several labels of an image are a field of their own: use zip([image_folder(path), "
    "memory({'labels': array})]) without `labels`; row i of the array is for the i-th image, "
    "sorted "
    "by path";

struct Line {
  std::string name;
  std::string label;
};

// A comma or tab separates better than a semicolon or bar, and these better than a blank, which names of files and classes
// may contain.
constexpr std::array<std::string_view, 3> kSeparators{",\t", ";|", kCsvBlanks};

// At the last of these separators, since commas are commoner in file names than in labels.
std::optional<Line> split_plain(std::string_view line, std::string_view separators) {
  const std::size_t at = line.find_last_of(separators);
  if (at == line.npos) return std::nullopt;
  Line parts{std::string(trimmed(line.substr(0, at))), std::string(trimmed(line.substr(at + 1)))};
  if (parts.name.empty() || parts.label.empty()) return std::nullopt;
  return parts;
}

std::optional<Line> split_quoted(std::string_view line, std::string_view separators) {
  const auto take = [&] {
    line = trimmed(line);
    auto field = take_csv_field(line, separators);
    return field ? value_of(*std::move(field)) : std::string();
  };
  Line parts;
  parts.name = take();
  if (parts.name.empty()) return std::nullopt;
  parts.label = take();
  if (parts.label.empty() || !line.empty()) return std::nullopt;
  return parts;
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

class LabelReader {
 public:
  LabelReader(const std::filesystem::path& path, const FileList& images,
              std::span<const std::string> classes)
      : path_(storage::split_web_url(path.native()).plain),
        images_(images),
        texts_({.file = path_.string(), .noun = "line", .several = std::string(kSeveral)}, classes),
        line_of_(images.size(), 0),
        label_of_(images.size()) {}

  Labels run(const std::string& all) {
    require_plain_text(all, path_.string());
    std::istringstream file(all);
    std::string text;
    for (std::uint64_t number = 1; std::getline(file, text); ++number) {
      std::string_view line = text;
      if (number == 1) line = without_byte_order_mark(line);
      line = trimmed(line);
      if (!line.empty()) add(number, line);
    }
    require_all();
    return std::move(texts_).finish(std::move(label_of_), line_of_);
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
    texts_.check(number, parts->label);
    line_of_[file] = number;
    label_of_[file] = parts->label;
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
      const std::string whole = images_.path(file);
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

  std::string path_of(std::uint64_t file) const { return core::printable(images_.path(file)); }

  std::string describe_unknown(std::string_view name, bool is_first) const {
    const std::string_view first = trimmed(name.substr(0, name.find_first_of(",\t;|")));
    const std::string_view word = trimmed(name.substr(0, name.find_first_of(kCsvBlanks)));
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

  [[noreturn]] void fail(std::uint64_t line, const std::string& what) const {
    throw Error(fmt::format("{} line {}: {}", path_.string(), line, what));
  }

  const std::filesystem::path path_;  // for messages
  const FileList& images_;
  LabelTexts texts_;
  std::vector<std::uint64_t> line_of_;  // 0: no label yet
  std::vector<std::string> label_of_;
  bool has_lines_ = false;
};

}  // namespace

Labels read_labels(const std::filesystem::path& labels_file, const FileList& images,
                   std::span<const std::string> classes, const storage::Storage& storage) {
  return LabelReader(labels_file, images, classes).run(storage.read_text(labels_file.string()));
}

}  // namespace penstock::source
