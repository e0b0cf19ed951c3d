#include "host_array.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <nanobind/stl/string.h>

#include "casters.hpp"
#include "python_object.hpp"

namespace penstock::python {

namespace {

// An array's memory. Arrays of bf16 come as u16, which has a buffer.
class Buffer {
 public:
  Buffer(nb::handle array, int flags) {
    if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&buffer_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(buffer_.buf); }

 private:
  Py_buffer buffer_{};
};

}  // namespace

nb::module_ numpy() {
  try {
    return nb::module_::import_("numpy");
  } catch (nb::python_error& error) {
    if (closing()) throw Error("no array can be made while the interpreter ends");
    nb::raise_from(error, PyExc_ImportError,
                   "arrays that go into penstock are numpy's: pip install numpy");
  }
}

nb::object numpy_dtype(DType dtype) {
  if (dtype != DType::bf16) return numpy().attr("dtype")(std::string(numpy_name_of(dtype)));
  try {
    return numpy().attr("dtype")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
  } catch (nb::python_error& error) {
    nb::raise_from(error, PyExc_ImportError,
                   "numpy has no bfloat16 of its own: pip install ml_dtypes, or take f16 or f32");
  }
}

HostArray::HostArray(nb::handle value, const std::string& what) {
  take(numpy().attr("asarray")(value), what);
}

HostArray::HostArray(nb::handle value, const FieldSpec& field) {
  const std::string what = "field '" + field.name + "'";
  if (nb::hasattr(value, "dtype"))
    take(numpy().attr("asarray")(value), what);
  else
    take(numpy().attr("asarray")(value, numpy_dtype(field.dtype)), what);
}

void HostArray::take(nb::object array, const std::string& what) {
  std::string name = nb::cast<std::string>(array.attr("dtype").attr("name"));
  if (name == "bool") name = "uint8";
  DType dtype{};
  try {
    dtype = parse_dtype(name);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + ": " + error.what());
  }
  if (!nb::cast<bool>(array.attr("dtype").attr("isnative")))
    array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
  // ascontiguousarray would turn a scalar into a row.
  array_ = numpy().attr("require")(array, nb::none(), "C");
  const Shape shape = parse_shape(array_.attr("shape"));
  const nb::object raw =
      dtype == DType::bf16 ? array_.attr("view")(numpy().attr("uint16")) : array_;
  view_ = ConstTensorView(Buffer(raw, PyBUF_C_CONTIGUOUS).data(), dtype, shape);
}

std::shared_ptr<const void> HostArray::owner() const { return keep_memory(array_); }

nb::object copy_to_numpy(const ConstTensorView& view) {
  nb::object array = numpy().attr("empty")(to_tuple(view.shape()), numpy_dtype(view.dtype()));
  if (view.byte_size() == 0) return array;
  const nb::object raw =
      view.dtype() == DType::bf16 ? array.attr("view")(numpy().attr("uint16")) : array;
  std::memcpy(Buffer(raw, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE).data(), view.raw(),
              view.byte_size());
  return array;
}

}  // namespace penstock::python
