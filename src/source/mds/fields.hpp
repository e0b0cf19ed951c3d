// source/mds/fields: the fields that columns of an MDS data set become.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/mds.hpp>

#include "src/source/mds/columns.hpp"

namespace penstock::source {

struct MdsField {
  MdsColumn column;        ///< as it was asked for; `column.column` is never empty
  std::size_t number = 0;  ///< of the column
  MdsKind kind = MdsKind::bytes;
  FieldSpec spec;
  std::size_t at = 0;  ///< among the fields of a record; its lengths are the next

  /// Whether it is a number of an integer type.
  [[nodiscard]] bool is_integer() const noexcept;
};

/// The fields of `columns`, or of all columns if there are none.
///
/// Errors  std::invalid_argument  a name is missing or used twice, or a shape or dtype does not fit its column
///         Error                  no such column, or one that is refused; the message names the file
[[nodiscard]] std::vector<MdsField> resolve_mds_columns(const MdsColumns& all,
                                                        std::span<const MdsColumn> columns,
                                                        const std::string& file);

/// All fields of a record.
[[nodiscard]] std::vector<FieldSpec> specs_of_mds(std::span<const MdsField> fields);

}  // namespace penstock::source
