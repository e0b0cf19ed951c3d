// source/csv/csv_text: texts with a separator: fields, quotes, and the rows of a table with a header.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::source {

/// What stands around a value and is no part of it.
inline constexpr std::string_view kCsvBlanks = " \t\r\v\f";

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

/// Errors  Error  the bytes of the file `path` are those of a compressed file, or of UTF-16
void require_plain_text(std::string_view bytes, const std::string& path);

/// The text without a byte order mark of UTF-8.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text) noexcept;

struct CsvField {
  std::string text;
  bool is_quoted = false;
  char end = '\0';  ///< the separator or line feed behind it; '\0' at the end of the text
};

/// A field's value: as it is between quotes, else without blanks around it.
[[nodiscard]] std::string value_of(CsvField&& field);

/// A field in double quotes, where "" is one of them (RFC 4180), or what comes before a separator or the line's end, blanks
/// included. Takes it off `rest`, with what ends it; none where a quote does not end, or something else follows it.
[[nodiscard]] std::optional<CsvField> take_csv_field(std::string_view& rest,
                                                     std::string_view separators);

/// Calls `see` with the number of the first line, and the values of `columns`, in their order, of each row of the file
/// `path`, whose bytes are `text`. The first row has the names of the columns. Of a comma, a tab, a semicolon and a bar that
/// one separates fields which makes the header name the columns; a file that ends in .tsv or .tab has tabs. Empty lines are
/// no rows.
///
/// Errors  Error  as require_plain_text(); there is no such column, or it is there twice; a row has more or fewer values
///                than the header; a quote that does not end; no rows
void read_csv(std::string_view text, const std::string& path, std::span<const std::string> columns,
              const std::function<void(std::uint64_t line, std::span<CsvField> values)>& see);

}  // namespace penstock::source
