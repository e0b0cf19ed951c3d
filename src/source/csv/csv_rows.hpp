// source/csv/csv_rows: columns of a CSV file as the fields of records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>
#include <penstock/source/tables.hpp>

namespace penstock::source {

/// The rows of the file `path`, whose bytes are `text`; not empty `columns` are fields: i64 [] where all values are integers,
/// f64 [] where all are numbers, else texts, u8 [?]. Integers that begin with a 0, as postcodes do, and those that i64 has
/// not, are texts. A value that is empty is an empty text; of numbers it is a null, which is default_value where the column
/// is not required.
///
/// Memory  8 bytes for each number, 8 and the bytes for each text, 8 for each row
/// Errors  std::invalid_argument  a name is missing or used twice; a column with a shape or lengths; a default_value that a
///                                column's type has not
///         Error                  as read_csv(); a column has both numbers and texts, and its numbers are not in quotes; a
///                                number that is required is missing
[[nodiscard]] SourcePtr csv_rows(std::string_view text, const std::string& path,
                                 std::vector<TableColumn> columns);

}  // namespace penstock::source
