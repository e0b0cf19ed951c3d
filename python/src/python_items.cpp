#include "python_items.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "host_array.hpp"

namespace penstock::python {

namespace {

std::string listed(DType dtype, const Shape& shape) {
  return std::string(name_of(dtype)) + " " + shape.to_string();
}

Result<void> store(Record& record, std::size_t field, const ConstTensorView& view) {
  Result<std::span<std::byte>> room = record.allocate(view.byte_size());
  if (!room) return std::move(room.fault());
  if (view.byte_size() != 0) std::memcpy(room->data(), view.raw(), view.byte_size());
  record.set(field, room->data(), view.dtype(), view.shape());
  return {};
}

Result<void> store_value(Record& record, std::size_t field, nb::handle value,
                         const FieldSpec& spec) {
  const HostArray array(value, spec);
  const ConstTensorView& found = array.view();
  if (found.dtype() != spec.dtype || !fits(found.shape().extents(), spec.shape))
    return Fault{.reason = fmt::format(
                     "its '{}' is {}, expected {}: where items differ in size, or the type is "
                     "another, say so: Dataset(data, fields={{'{}': ('{}', ...)}}), with None for "
                     "an extent that differs",
                     spec.name, listed(found.dtype(), found.shape()),
                     listed(spec.dtype, spec.shape), spec.name, name_of(found.dtype()))};
  return store(record, field, found);
}

bool has_parts_named(const nb::object& item, std::span<const FieldSpec> fields) {
  const nb::object names = nb::getattr(item, "_fields", nb::none());
  return !names.is_none() && std::ranges::all_of(fields, [&](const FieldSpec& field) {
    return PySequence_Contains(names.ptr(), nb::cast(field.name).ptr()) == 1;
  });
}

// The value of a field: by name of a mapping or a namedtuple, by place of a tuple, or the item itself.
nb::object value_of(const nb::object& item, std::size_t field, std::span<const FieldSpec> fields) {
  const std::string& name = fields[field].name;
  if (PyTuple_Check(item.ptr()) != 0) {
    // A namedtuple's parts have names, and its fields may have been given in another order.
    if (PyTuple_CheckExact(item.ptr()) == 0 && has_parts_named(item, fields))
      return item.attr(name.c_str());
    if (nb::len(item) != fields.size())
      throw std::invalid_argument(
          fmt::format("it is a tuple of {}, expected {} parts", nb::len(item), fields.size()));
    return item[field];
  }
  const nb::object key = nb::cast(name);
  const bool is_dict = PyDict_Check(item.ptr()) != 0;
  if (is_dict || (PyMapping_Check(item.ptr()) != 0 && nb::hasattr(item, "keys"))) {
    PyObject* const value = PyObject_GetItem(item.ptr(), key.ptr());
    if (value == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) throw nb::python_error();
      PyErr_Clear();
      throw std::invalid_argument("it has no '" + name + "'");
    }
    return nb::steal(value);
  }
  if (fields.size() != 1)
    throw std::invalid_argument(
        "expected a dict or a tuple, found " +
        nb::cast<std::string>(nb::str(nb::handle(item.type().attr("__name__")))));
  return item;
}

}  // namespace

Result<void> store_item(const nb::object& item, std::span<const FieldSpec> fields, Record& record) {
  record.reset(fields.size());
  for (std::size_t field = 0; field < fields.size(); ++field) {
    const nb::object value = value_of(item, field, fields);
    if (auto result = store_value(record, field, value, fields[field]); !result) return result;
  }
  return {};
}

}  // namespace penstock::python
