#include "src/source/csv/csv_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/core/can_hold.hpp"
#include "src/core/printable.hpp"
#include "src/source/arrays/columns.hpp"
#include "src/source/csv/csv_text.hpp"
#include "src/source/tables/table_row.hpp"

namespace penstock::source {

namespace {

// What a value may be a number as.
enum class CsvKind : std::uint8_t {
  none,  // it is empty
  integer,
  number,
  special,  // "nan" and "inf": a number among numbers, a word among words
  digits,   // an integer that begins with 0, or that i64 has not
  text,
};

std::string_view without_plus(std::string_view text) noexcept {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return text;
}

std::optional<std::int64_t> csv_integer(std::string_view text) noexcept {
  text = without_plus(trimmed(text));
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> csv_number(std::string_view text) noexcept {
  text = without_plus(trimmed(text));
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

CsvKind csv_kind_of(std::string_view text) noexcept {
  text = trimmed(text);
  if (text.empty()) return CsvKind::none;
  std::string_view digits = without_plus(text);
  if (digits.starts_with('-') && digits.size() > 1) digits.remove_prefix(1);
  if (digits.find_first_not_of("0123456789") == digits.npos) {
    const bool is_number = digits == "0" || !digits.starts_with('0');
    return is_number && csv_integer(text) ? CsvKind::integer : CsvKind::digits;
  }
  if (csv_integer(text)) return CsvKind::integer;
  if (!csv_number(text)) return CsvKind::text;
  const bool has_digits = text.find_first_of("0123456789") != text.npos;
  return has_digits ? CsvKind::number : CsvKind::special;
}

// The values of one column.
class CsvColumn {
 public:
  explicit CsvColumn(TableColumn column) : column_(std::move(column)) {}

  void add(std::uint64_t line, const CsvField& field) {
    const CsvKind kind = csv_kind_of(field.text);
    Seen& seen = seen_[static_cast<std::size_t>(kind)];
    if (seen.line == 0) seen = {line, field.text};
    const bool is_bare = kind != CsvKind::text && kind != CsvKind::none &&
                         kind != CsvKind::special && !field.is_quoted;
    if (is_bare && bare_number_.line == 0) bare_number_ = {line, field.text};
    bytes_.append(field.text);
    ends_.push_back(bytes_.size());
  }

  // Settles the type, once all values are there.
  void finish(const std::string& path) {
    if (has(CsvKind::text) || (!has(CsvKind::integer) && !has(CsvKind::number))) {
      if (has(CsvKind::text) && bare_number_.line != 0) refuse_mixture(path, CsvKind::text);
      return;
    }
    if (has(CsvKind::digits)) {
      if (has(CsvKind::number) || has(CsvKind::special)) refuse_mixture(path, CsvKind::digits);
      return;
    }
    if (has(CsvKind::none) && column_.required)
      throw Error(
          fmt::format("{} line {}: the column '{}' has numbers, and no value in this row; pass "
                      "TableColumn(\"{}\", required=False, default_value=...), or fill it in",
                      path, seen(CsvKind::none).line, column_.column, column_.column));
    dtype_ = has(CsvKind::number) || has(CsvKind::special) ? DType::f64 : DType::i64;
    if (!core::can_hold(*dtype_, column_.default_value))
      throw std::invalid_argument(
          fmt::format("column '{}': default_value = {} is no value of type {}", column_.column,
                      column_.default_value, name_of(*dtype_)));
    make_numbers();
  }

  [[nodiscard]] FieldSpec spec() const {
    return {column_.name, dtype_.value_or(DType::u8), dtype_ ? Shape{} : Shape{kDynamic}};
  }

  void set(std::uint64_t row, std::size_t field, Record& record) const {
    if (dtype_) {
      if (record.leaves_out_nulls() && is_empty_[row]) return;
      record.set(field, numbers_.data() + row * sizeof(std::int64_t), *dtype_, Shape{});
      record.add_bytes_read(sizeof(std::int64_t));
      return;
    }
    const std::uint64_t begin = row == 0 ? 0 : ends_[row - 1];
    const std::uint64_t count = ends_[row] - begin;
    record.set(field, reinterpret_cast<const std::byte*>(bytes_.data()) + begin, DType::u8,
               Shape{static_cast<std::int64_t>(count)});
    record.add_bytes_read(count);
  }

  [[nodiscard]] std::uint64_t length(std::uint64_t row) const {
    return ends_[row] - (row == 0 ? 0 : ends_[row - 1]);
  }
  [[nodiscard]] std::string hash() const {
    if (dtype_) return hash_text({reinterpret_cast<const char*>(numbers_.data()), numbers_.size()});
    return hash_text(bytes_) + hash_text({reinterpret_cast<const char*>(ends_.data()),
                                          ends_.size() * sizeof(ends_[0])});
  }

 private:
  struct Seen {
    std::uint64_t line = 0;  // 0: none
    std::string text{};
  };
  [[nodiscard]] const Seen& seen(CsvKind kind) const {
    return seen_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] bool has(CsvKind kind) const { return seen(kind).line != 0; }

  [[noreturn]] void refuse_mixture(const std::string& path, CsvKind other) const {
    constexpr std::size_t kShown = 100;
    const Seen& number = other == CsvKind::text ? bare_number_
                         : has(CsvKind::number) ? seen(CsvKind::number)
                                                : seen(CsvKind::special);
    throw Error(fmt::format(
        "{}: the column '{}' has numbers and texts: '{}' in line {}, '{}' in line {}; if all are "
        "texts, put the numbers in double quotes; if a number is missing, leave its value empty",
        path, column_.column, core::printable(number.text, kShown), number.line,
        core::printable(seen(other).text, kShown), seen(other).line));
  }

  void make_numbers() {
    numbers_.resize(ends_.size() * sizeof(std::int64_t));
    for (std::uint64_t row = 0; row < ends_.size(); ++row) {
      const std::uint64_t begin = row == 0 ? 0 : ends_[row - 1];
      const std::string_view text = std::string_view(bytes_).substr(begin, ends_[row] - begin);
      std::byte* const to = numbers_.data() + row * sizeof(std::int64_t);
      is_empty_.push_back(trimmed(text).empty());
      if (*dtype_ == DType::i64 && !trimmed(text).empty()) {
        const std::int64_t value = csv_integer(text).value();
        std::memcpy(to, &value, sizeof value);
      } else {
        fill_number(*dtype_,
                    trimmed(text).empty() ? column_.default_value : csv_number(text).value(), to);
      }
    }
    bytes_ = {};
    ends_ = {};
  }

  TableColumn column_;
  Seen seen_[6]{};              // the first value of each kind
  Seen bare_number_{};          // the first number without quotes
  std::optional<DType> dtype_;  // none: texts
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::byte> numbers_;
  std::vector<bool> is_empty_;  // of rows of numbers
};

class CsvRows final : public Source {
 public:
  CsvRows(std::string path, std::vector<CsvColumn> columns, std::vector<std::uint64_t> lines)
      : path_(std::move(path)), columns_(std::move(columns)), lines_(std::move(lines)) {
    std::string text;
    for (const CsvColumn& column : columns_) {
      fields_.push_back(column.spec());
      text += fields_.back().to_string() + column.hash();
    }
    fingerprint_ = fmt::format("csv({} rows, {})", size(), hash_text(text));
    if (std::ranges::count_if(fields_, &CsvRows::is_text) == 1)
      length_ = static_cast<std::size_t>(std::ranges::find_if(fields_, &CsvRows::is_text) -
                                         fields_.begin());
  }

  std::uint64_t size() const noexcept override { return lines_.size(); }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(fields_.size());
    for (std::size_t k = 0; k < columns_.size(); ++k)
      if (record.is_wanted(k)) columns_[k].set(number, k, record);
    return {};
  }
  std::string location(std::uint64_t number) const override {
    return fmt::format("{}:{}", path_, lines_[number]);
  }
  RecordName name(std::uint64_t number) const override {
    return {.key = fmt::format("{}:{}", path_.substr(path_.rfind('/') + 1), lines_[number]),
            .file = path_};
  }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    if (!length_) return std::nullopt;
    return columns_[*length_].length(number);
  }
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const noexcept override { return 0; }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  static bool is_text(const FieldSpec& field) { return field.shape.is_dynamic(); }

  std::string path_;
  std::vector<CsvColumn> columns_;
  std::vector<std::uint64_t> lines_;
  std::vector<FieldSpec> fields_;
  std::optional<std::size_t> length_;
  std::string fingerprint_;
};

}  // namespace

SourcePtr csv_rows(std::string_view text, const std::string& path,
                   std::vector<TableColumn> columns) {
  std::vector<std::string> names;
  std::vector<CsvColumn> values;
  std::vector<FieldSpec> fields;
  for (TableColumn& column : columns) {
    if (column.column.empty()) column.column = column.name;
    if (column.shape.rank() != 0 || !column.lengths.empty())
      throw std::invalid_argument(fmt::format(
          "column '{}': a CSV file has no lists, so leave shape and lengths out", column.column));
    names.push_back(column.column);
    fields.push_back({column.name, DType::u8, {}});
    values.emplace_back(std::move(column));
  }
  require_names(fields);
  std::vector<std::uint64_t> lines;
  read_csv(text, path, names, [&](std::uint64_t line, std::span<CsvField> row) {
    lines.push_back(line);
    for (std::size_t k = 0; k < row.size(); ++k) values[k].add(line, row[k]);
  });
  for (CsvColumn& column : values) column.finish(path);
  return std::make_shared<CsvRows>(path, std::move(values), std::move(lines));
}

}  // namespace penstock::source
