// An item of a Python object, dataset[i], as a record.
#pragma once

#include <cstdint>
#include <span>

#include <nanobind/nanobind.h>

#include <penstock/penstock.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Asks for item `number` and copies its values into the record: by name of a mapping, by place of a tuple,
/// or the item itself where there is one field. Needs the GIL.
///
/// Errors  Fault                  a value has another type or shape than its field
///         nb::python_error       what the object raised
///         std::invalid_argument  no such value in the item
[[nodiscard]] Result<void> store_item(nb::handle items, std::uint64_t number,
                                      std::span<const FieldSpec> fields, Record& record);

}  // namespace penstock::python
