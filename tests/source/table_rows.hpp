// The rows and the columns of tables, for tests of their sources.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <penstock/source/source.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/tables/table_fields.hpp"

namespace penstock::test {

/// All columns that can be read, each of which may be null; resolve(column) throws for those that cannot.
template <class Resolve>
std::vector<TableColumn> readable_columns(const source::TableLeaves& leaves,
                                          const Resolve& resolve) {
  std::vector<TableColumn> columns;
  for (const source::TableLeaf& leaf : leaves.fields) {
    for (const char* lengths : {"", " lengths"}) {
      TableColumn column{.name = leaf.name,
                         .column = leaf.name,
                         .required = false,
                         .lengths = *lengths == 0 ? "" : leaf.name + lengths};
      try {
        resolve(column);
        columns.push_back(std::move(column));
        break;
      } catch (const std::exception&) {
        continue;
      }
    }
  }
  return columns;
}

/// A text for each row: its fields' bytes, or the fault's reason. They are read from `first` on, each `step` behind the last.
inline std::vector<std::string> rows_of(const Source& source, std::uint64_t first = 0,
                                        std::uint64_t step = 1) {
  std::vector<std::string> rows(source.size());
  Record record;
  for (std::uint64_t i = 0; i < source.size(); ++i) {
    const std::uint64_t row = (first + i * step) % source.size();
    const Result<void> result = source.read(row, record);
    std::string text = result ? "" : "fault: " + result.fault().reason;
    for (std::size_t field = 0; result && field < record.size(); ++field) {
      const auto bytes = record[field].bytes();
      text += record[field].shape().to_string();
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    rows[row] = std::move(text);
  }
  return rows;
}

}  // namespace penstock::test
