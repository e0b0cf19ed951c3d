// numpy arrays as tensor views, and the other way round. Everything here needs the GIL.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

#include <penstock/core/tensor.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// The module numpy.
///
/// Errors  ImportError  it is not installed; says what needs it
[[nodiscard]] nb::module_ numpy();
/// numpy's dtype; that of ml_dtypes for bf16.
///
/// Errors  ImportError  of bf16, where ml_dtypes is not installed
[[nodiscard]] nb::object numpy_dtype(DType dtype);

/// The memory of an array of any kind that numpy understands: dense, in C order, kept alive. Copied
/// where it is not dense.
class HostArray {
 public:
  /// An array as it is. bool counts as u8.
  ///
  /// Errors  std::invalid_argument  a dtype that penstock has not; names `what`
  HostArray(nb::handle value, const std::string& what);
  /// A value for a field: Python's numbers and lists take the field's dtype.
  HostArray(nb::handle value, const FieldSpec& field);

  /// Owns  nothing: valid while any copy of this lives.
  [[nodiscard]] const ConstTensorView& view() const noexcept { return view_; }
  /// Keeps the memory; may be dropped on any thread.
  [[nodiscard]] std::shared_ptr<const void> owner() const;

 private:
  void take(nb::object array, const std::string& what);

  nb::object array_;
  ConstTensorView view_;
};

/// A new array with the bytes of `view`.
[[nodiscard]] nb::object copy_to_numpy(const ConstTensorView& view);

}  // namespace penstock::python
