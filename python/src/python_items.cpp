#include "python_items.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "host_array.hpp"

namespace penstock::python {

namespace {

bool fits(const Shape& found, const Shape& wanted) {
  if (found.rank() != wanted.rank()) return false;
  for (std::size_t axis = 0; axis < wanted.rank(); ++axis)
    if (wanted[axis] != kDynamic && found[axis] != wanted[axis]) return false;
  return true;
}

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

// The dtype of the struct module's letter for one element; none of others.
std::optional<DType> dtype_of_format(const char* format) {
  if (format == nullptr) return DType::u8;
  static constexpr std::pair<char, DType> kLetters[] = {
      {'B', DType::u8},  {'?', DType::u8},  {'b', DType::i8},  {'h', DType::i16}, {'H', DType::u16},
      {'i', DType::i32}, {'I', DType::u32}, {'l', DType::i64}, {'L', DType::u64}, {'q', DType::i64},
      {'Q', DType::u64}, {'e', DType::f16}, {'f', DType::f32}, {'d', DType::f64}};
  for (const auto& [letter, dtype] : kLetters)
    if (format[0] == letter && format[1] == '\0') return dtype;
  return std::nullopt;
}

// Dense memory of the field's own dtype and shape, such as most arrays are: without numpy's help. None where it
// is something else, which HostArray converts or refuses.
std::optional<Result<void>> store_dense(Record& record, std::size_t field, PyObject* value,
                                        const FieldSpec& spec) {
  Py_buffer buffer{};
  if (PyObject_CheckBuffer(value) == 0 || PyBytes_Check(value) != 0) return std::nullopt;
  if (PyObject_GetBuffer(value, &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  std::optional<Result<void>> result;
  if (dtype_of_format(buffer.format) == spec.dtype &&
      static_cast<std::size_t>(buffer.ndim) == spec.shape.rank()) {
    std::array<std::int64_t, Shape::kMaxRank> extents{};
    std::copy_n(buffer.shape, buffer.ndim, extents.begin());
    const Shape shape(std::span<const std::int64_t>(extents.data(), spec.shape.rank()));
    if (fits(shape, spec.shape))
      result = store(record, field,
                     ConstTensorView(static_cast<const std::byte*>(buffer.buf), spec.dtype, shape));
  }
  PyBuffer_Release(&buffer);
  return result;
}

// Python's own numbers are most labels: without numpy.
template <class Number>
Result<void> store_number(Record& record, std::size_t field, Number number, DType dtype) {
  return store(record, field,
               ConstTensorView(reinterpret_cast<const std::byte*>(&number), dtype, {}));
}

Result<void> store_value(Record& record, std::size_t field, nb::handle value,
                         const FieldSpec& spec) {
  PyObject* const given = value.ptr();
  if (spec.shape.rank() == 0 && spec.dtype == DType::i64 && PyLong_CheckExact(given) != 0) {
    const long long number = PyLong_AsLongLong(given);
    if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return store_number<std::int64_t>(record, field, number, spec.dtype);
  }
  if (spec.shape.rank() == 0 && PyFloat_CheckExact(given) != 0) {
    if (spec.dtype == DType::f64)
      return store_number(record, field, PyFloat_AsDouble(given), spec.dtype);
    if (spec.dtype == DType::f32)
      return store_number(record, field, static_cast<float>(PyFloat_AsDouble(given)), spec.dtype);
  }
  if (auto stored = store_dense(record, field, given, spec)) return *std::move(stored);
  const HostArray array(value, spec);
  const ConstTensorView& found = array.view();
  if (found.dtype() != spec.dtype || !fits(found.shape(), spec.shape))
    return Fault{.reason = fmt::format(
                     "its '{}' is {}, expected {}: where items differ in size, or the type is "
                     "another, say so: Dataset(data, fields={{'{}': ('{}', ...)}}), with None for "
                     "an extent that differs",
                     spec.name, listed(found.dtype(), found.shape()),
                     listed(spec.dtype, spec.shape), spec.name, name_of(found.dtype()))};
  return store(record, field, found);
}

// The value of a field: by name of a mapping, by place of a tuple, or the item itself.
nb::object value_of(const nb::object& item, std::size_t field, std::span<const FieldSpec> fields) {
  const std::string& name = fields[field].name;
  if (PyTuple_Check(item.ptr()) != 0) {
    if (nb::len(item) != fields.size())
      throw std::invalid_argument(
          fmt::format("it is a tuple of {}, expected {} parts", nb::len(item), fields.size()));
    return item[field];
  }
  const nb::str key(name.c_str());
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

Result<void> store_item(nb::handle items, std::uint64_t number, std::span<const FieldSpec> fields,
                        Record& record) {
  record.reset(fields.size());
  const nb::object item = items[nb::int_(number)];
  for (std::size_t field = 0; field < fields.size(); ++field) {
    const nb::object value = value_of(item, field, fields);
    if (auto result = store_value(record, field, value, fields[field]); !result) return result;
  }
  return {};
}

}  // namespace penstock::python
