// An item of a Python object, dataset[i], as a record.
#pragma once

#include <cstdint>
#include <span>

#include <nanobind/nanobind.h>

#include <penstock/penstock.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Copies the values of an item into the record: by name of a mapping, by place of a tuple, or the item itself
/// where there is one field. Needs the GIL.
///
/// Errors  Fault                  a value has another type or shape than its field
///         nb::python_error       what a value raised
///         std::invalid_argument  no such value in the item
[[nodiscard]] Result<void> store_item(const nb::object& item, std::span<const FieldSpec> fields,
                                      Record& record);
/// items[number]. Needs the GIL.
///
/// Errors  nb::python_error  what the object raised
[[nodiscard]] inline nb::object item_of(nb::handle items, std::uint64_t number) {
  return items[nb::int_(number)];
}

}  // namespace penstock::python
