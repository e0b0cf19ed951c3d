// source/mds/set_field: from the bytes of a value to a field of a record.
#pragma once

#include <span>

#include <penstock/source/source.hpp>

#include "src/source/mds/fields.hpp"

namespace penstock::source {

/// Sets the field, and its lengths if it has some. Bytes and images are left where they are, in `value`, which the record owns;
/// all else is copied to where it is aligned.
///
/// Errors  a fault, without a file and offset  the value is damaged, or is not what the field has
[[nodiscard]] Result<void> set_mds_field(const MdsField& field, const MdsColumnType& type,
                                         std::span<const std::byte> value, Record& record);

}  // namespace penstock::source
