#include "src/source/folder/labels.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

struct Line {
  std::string_view name;
  std::string_view label;
};

// A comma or tab separates better than a blank, which names of files and classes may contain. The
// last one counts, since commas are commoner in file names than in labels.
std::optional<Line> split(std::string_view line) noexcept {
  std::size_t at = line.find_last_of(",\t");
  if (at == line.npos) at = line.find_last_of(kBlanks);
  if (at == line.npos) return std::nullopt;
  const Line parts{trimmed(line.substr(0, at)), trimmed(line.substr(at + 1))};
  if (parts.name.empty() || parts.label.empty()) return std::nullopt;
  return parts;
}

std::optional<std::int64_t> integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class LabelReader {
 public:
  LabelReader(const std::filesystem::path& path, const FileList& images)
      : path_(path), images_(images), line_of_(images.size(), 0), label_of_(images.size()) {}

  Labels run(std::istream& file) {
    std::string text;
    for (std::uint64_t number = 1; std::getline(file, text); ++number) {
      std::string_view line = text;
      constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
      if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(3);
      line = trimmed(line);
      if (!line.empty()) add(number, line);
    }
    require_all();
    return first_word_line_ == 0 ? integers() : classes();
  }

 private:
  void add(std::uint64_t number, std::string_view line) {
    const std::optional<Line> parts = split(line);
    if (!parts) {
      fail(number, fmt::format("expected 'name label', found '{}'", line));
    }
    const std::uint64_t file = find(parts->name);
    if (file == images_.size()) {
      fail(number, fmt::format("expected the name of an image in the folder, found '{}'; remove "
                               "the line, or add the image",
                               parts->name));
    }
    if (line_of_[file] != 0) {
      fail(number, fmt::format("'{}' has a label already, from line {}; remove one of them",
                               parts->name, line_of_[file]));
    }
    std::uint64_t& first = integer(parts->label) ? first_integer_line_ : first_word_line_;
    if (first == 0) first = number;
    if (first_integer_line_ != 0 && first_word_line_ != 0) {
      fail(number, fmt::format("the label '{}' is {}, but line {} has {}; use one kind throughout",
                               parts->label, first == first_word_line_ ? "a name" : "an integer",
                               std::min(first_integer_line_, first_word_line_),
                               first == first_word_line_ ? "an integer" : "a name"));
    }
    line_of_[file] = number;
    label_of_[file] = parts->label;
  }

  // The images of a flat folder are sorted by name.
  std::uint64_t find(std::string_view name) const noexcept {
    std::uint64_t low = 0;
    std::uint64_t high = images_.size();
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (images_.name(middle) < name) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < images_.size() && images_.name(low) == name ? low : images_.size();
  }

  void require_all() const {
    const auto missing = std::count(line_of_.begin(), line_of_.end(), 0);
    if (missing == 0) return;
    const auto first = std::find(line_of_.begin(), line_of_.end(), 0) - line_of_.begin();
    throw Error(fmt::format(
        "{} has no label for {} of {} images, '{}' the first of them; add the lines, or move the "
        "images away",
        path_.string(), missing, images_.size(), images_.name(static_cast<std::uint64_t>(first))));
  }

  Labels integers() const {
    Labels labels;
    labels.of_file.reserve(label_of_.size());
    for (const std::string& text : label_of_) labels.of_file.push_back(*integer(text));
    return labels;
  }

  Labels classes() const {
    Labels labels;
    std::vector<std::string>& names = labels.class_names;
    names = label_of_;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    labels.of_file.reserve(label_of_.size());
    for (const std::string& text : label_of_) {
      labels.of_file.push_back(std::lower_bound(names.begin(), names.end(), text) - names.begin());
    }
    return labels;
  }

  [[noreturn]] void fail(std::uint64_t line, const std::string& what) const {
    throw Error(fmt::format("{} line {}: {}", path_.string(), line, what));
  }

  const std::filesystem::path& path_;
  const FileList& images_;
  std::vector<std::uint64_t> line_of_;  // 0: no label yet
  std::vector<std::string> label_of_;
  std::uint64_t first_integer_line_ = 0;
  std::uint64_t first_word_line_ = 0;
};

}  // namespace

Labels read_labels(const std::filesystem::path& labels_file, const FileList& images,
                   const storage::Storage& storage) {
  std::istringstream file(storage.read_text(labels_file.string()));
  return LabelReader(labels_file, images).run(file);
}

}  // namespace penstock::source
