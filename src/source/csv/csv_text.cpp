#include "src/source/csv/csv_text.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"

namespace penstock::source {

namespace {

using CsvRow = std::vector<CsvField>;

// Rows of a text, one after another.
class CsvParser {
 public:
  CsvParser(std::string_view text, char separator, const std::string& path)
      : rest_(text), separator_(1, separator), path_(path) {}

  // False at the end.
  bool next(CsvRow& row) {
    for (;;) {
      row.clear();
      if (rest_.empty()) return false;
      line_ = next_line_;
      take_row(row);
      const bool is_empty = row.size() == 1 && !row[0].is_quoted && trimmed(row[0].text).empty();
      if (!is_empty) return true;
    }
  }
  // Of the first line of the last row.
  [[nodiscard]] std::uint64_t line() const noexcept { return line_; }

 private:
  void take_row(CsvRow& row) {
    do {
      const std::string_view before = rest_;
      auto field = take_csv_field(rest_, separator_);
      if (!field)
        throw Error(fmt::format(
            "{} line {}: a double quote has no second one behind its value; write \"\" for one "
            "that is part of a value in quotes",
            path_, next_line_));
      const auto taken = before.substr(0, before.size() - rest_.size());
      next_line_ += static_cast<std::uint64_t>(std::ranges::count(taken, '\n'));
      row.push_back(*std::move(field));
    } while (row.back().end != '\n' && row.back().end != '\0');
  }

  std::string_view rest_;
  std::string separator_;
  const std::string& path_;
  std::uint64_t line_ = 1;
  std::uint64_t next_line_ = 1;
};

// None where it is no row with this separator.
std::vector<std::string> names_of_header(std::string_view text, char separator,
                                         const std::string& path) {
  CsvRow row;
  std::vector<std::string> names;
  try {
    if (!CsvParser(text, separator, path).next(row)) return names;
  } catch (const Error&) {
    return names;
  }
  for (const CsvField& field : row) names.emplace_back(trimmed(field.text));
  return names;
}

struct CsvHeader {
  char separator = ',';
  std::vector<std::string> names{};
};

// The separator with which the header names the most of `columns`.
CsvHeader find_csv_header(std::string_view text, const std::string& path,
                          std::span<const std::string> columns) {
  const std::string lower = core::lower_case(path);
  const bool has_tabs = lower.ends_with(".tsv") || lower.ends_with(".tab");
  CsvHeader best;
  std::size_t most = 0;
  for (const char separator : std::string_view(has_tabs ? "\t" : ",\t;|")) {
    std::vector<std::string> names = names_of_header(text, separator, path);
    const auto found = static_cast<std::size_t>(std::ranges::count_if(
        columns, [&](const std::string& column) { return std::ranges::count(names, column) > 0; }));
    const bool is_better =
        found > most || (found == most && most == 0 && names.size() > best.names.size());
    if (!is_better) continue;
    most = found;
    best = {separator, std::move(names)};
  }
  if (best.names.empty())
    throw Error(fmt::format("{} has no first line that names its columns", path));
  return best;
}

std::vector<std::size_t> places_of(const CsvHeader& header, std::span<const std::string> columns,
                                   const std::string& path) {
  constexpr std::size_t kMost = 30;
  std::vector<std::size_t> places;
  for (const std::string& column : columns) {
    const auto found = std::ranges::find(header.names, column);
    if (found == header.names.end()) {
      std::vector<std::string> names;
      for (const std::string& name :
           std::span(header.names).first(std::min(kMost, header.names.size())))
        names.push_back(core::printable(name, 100));
      throw Error(fmt::format(
          "{} has no column '{}'; its columns, which the first line names, are {}{}", path, column,
          fmt::join(names, ", "), header.names.size() > kMost ? ", ..." : ""));
    }
    if (std::ranges::count(header.names, column) > 1)
      throw Error(fmt::format("{}: two columns are called '{}'; rename one of them", path, column));
    places.push_back(static_cast<std::size_t>(found - header.names.begin()));
  }
  return places;
}

}  // namespace

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kCsvBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kCsvBlanks) - first + 1);
}

std::string value_of(CsvField&& field) {
  return field.is_quoted ? std::move(field.text) : std::string(trimmed(field.text));
}

void require_plain_text(std::string_view bytes, const std::string& path) {
  if (bytes.starts_with("\x1F\x8B") || bytes.starts_with("PK\x03\x04") ||
      bytes.starts_with("\x28\xB5\x2F\xFD"))
    throw Error(fmt::format("{} is compressed; unpack it", path));
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF") ||
      bytes.find('\0') != bytes.npos)
    throw Error(
        fmt::format("{} is not a text in UTF-8 (it looks like UTF-16); save it as UTF-8", path));
}

std::string_view without_byte_order_mark(std::string_view text) noexcept {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::optional<CsvField> take_csv_field(std::string_view& rest, std::string_view separators) {
  const auto is_separator = [&](char c) { return separators.find(c) != separators.npos; };
  const auto skip_blanks = [&](std::string_view text) {
    while (!text.empty() && kCsvBlanks.find(text.front()) != kCsvBlanks.npos &&
           !is_separator(text.front()))
      text.remove_prefix(1);
    return text;
  };
  CsvField field;
  if (const std::string_view inside = skip_blanks(rest); inside.starts_with('"')) {
    field.is_quoted = true;
    std::string_view left = inside.substr(1);
    for (;; left.remove_prefix(1)) {
      if (left.empty()) return std::nullopt;
      if (left.starts_with("\"\""))
        left.remove_prefix(1);
      else if (left.starts_with('"'))
        break;
      field.text += left.front();
    }
    rest = skip_blanks(left.substr(1));
    if (!rest.empty() && rest.front() != '\n' && !is_separator(rest.front())) return std::nullopt;
  } else {
    const auto end =
        std::ranges::find_if(rest, [&](char c) { return c == '\n' || is_separator(c); });
    const auto length = static_cast<std::size_t>(end - rest.begin());
    field.text = rest.substr(0, length);
    rest.remove_prefix(length);
    if ((rest.empty() || rest.front() == '\n') && field.text.ends_with('\r')) field.text.pop_back();
  }
  if (!rest.empty()) {
    field.end = rest.front();
    rest.remove_prefix(1);
  }
  return field;
}

void read_csv(std::string_view text, const std::string& path, std::span<const std::string> columns,
              const std::function<void(std::uint64_t line, std::span<CsvField> values)>& see) {
  require_plain_text(text, path);
  text = without_byte_order_mark(text);
  const CsvHeader header = find_csv_header(text, path, columns);
  const std::vector<std::size_t> places = places_of(header, columns, path);
  CsvParser parser(text, header.separator, path);
  CsvRow row;
  CsvRow values(places.size());
  (void)parser.next(row);
  bool has_rows = false;
  while (parser.next(row)) {
    has_rows = true;
    if (row.size() != header.names.size())
      throw Error(fmt::format(
          "{} line {}: expected {} values, as many as there are columns, found {}; put a value "
          "that has '{}' in it in double quotes",
          path, parser.line(), header.names.size(), row.size(),
          core::printable(std::string(1, header.separator))));
    for (std::size_t k = 0; k < places.size(); ++k) values[k] = row[places[k]];
    see(parser.line(), values);
  }
  if (!has_rows) throw Error(fmt::format("{} has a header, and no rows", path));
}

}  // namespace penstock::source
