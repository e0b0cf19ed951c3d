// numpy arrays as tensor views, and the other way round. Everything here needs the GIL.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <penstock/core/tensor.hpp>
#include <penstock/source/arrays.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Whether Python takes it for true: numpy's own booleans are no bool.
[[nodiscard]] bool is_true(nb::handle value);

/// The module numpy.
///
/// Errors  ImportError  it is not installed; says what needs it
[[nodiscard]] nb::module_ numpy();
/// numpy's dtype; that of ml_dtypes for bf16.
///
/// Errors  ImportError  of bf16, where ml_dtypes is not installed
[[nodiscard]] nb::object numpy_dtype(DType dtype);

/// Whether a sample may have such a shape, where `wanted` is that of its field.
[[nodiscard]] bool fits(std::span<const std::int64_t> extents, const Shape& wanted);

/// A buffer of the buffer protocol, released with this. False where the object gave none: then a Python error
/// is set.
class HeldBuffer {
 public:
  HeldBuffer() = default;
  HeldBuffer(nb::handle object, int flags);
  HeldBuffer(HeldBuffer&& other) noexcept : buffer_(std::exchange(other.buffer_, {})) {}
  HeldBuffer& operator=(HeldBuffer&& other) noexcept;
  ~HeldBuffer();

  explicit operator bool() const noexcept { return buffer_.obj != nullptr; }
  /// What it points to of itself, a shape above all, is valid until it is moved.
  const Py_buffer* operator->() const noexcept { return &buffer_; }

 private:
  Py_buffer buffer_{};
};

/// The memory of a value for a field: dense, in C order, kept alive. Copied where it is not dense.
///
/// Numbers, lists and arrays take the field's dtype where it can hold them: integers become other integers or floats where
/// none changes, floats become floats, rounded to these and never infinite; bytes and texts are u8.
class HostArray {
 public:
  /// Errors  std::invalid_argument  no array can be made of it, or not of this dtype; names the field
  HostArray(nb::handle value, const FieldSpec& field);

  /// Owns  nothing: valid while this lives, wherever it is moved.
  [[nodiscard]] const ConstTensorView& view() const noexcept { return view_; }

 private:
  using Number = std::array<std::byte, sizeof(std::int64_t)>;
  bool take_number(PyObject* value, const FieldSpec& field);
  bool take_dense(PyObject* value, const FieldSpec& field);

  nb::object array_;  // or
  HeldBuffer buffer_;
  std::unique_ptr<Number> number_;
  ConstTensorView view_;
};

/// The rows of an array, along its first axis, where they lie. Never copied: of what is no array yet
/// (a list) numpy makes one.
///
/// Errors  std::invalid_argument  a single number; rows that are not dense; a dtype that penstock
///                                has not; names the field, and says what to write
[[nodiscard]] Column column_of(const std::string& name, nb::handle value);

/// The numbers of an array or list of one dimension, none of them below 0.
///
/// Errors  std::invalid_argument  something else; names it by `name`
[[nodiscard]] std::vector<std::uint64_t> integers_of(const std::string& name, nb::handle value);

/// A new array with the bytes of `view`.
[[nodiscard]] nb::object copy_to_numpy(const ConstTensorView& view);

}  // namespace penstock::python
