#include "host_array.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

// An array whose dtype penstock has, in this machine's byte order.
struct Known {
  nb::object array;
  DType dtype{};
};

Known known_array(nb::object array, const std::string& what) {
  std::string name = nb::cast<std::string>(array.attr("dtype").attr("name"));
  if (name == "bool") name = "uint8";
  DType dtype{};
  try {
    dtype = parse_dtype(name);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + ": " + error.what());
  }
  if (!is_true(array.attr("dtype").attr("isnative")))
    array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
  return {std::move(array), dtype};
}

// Arrays of bf16 have no buffer: their bits.
nb::object bits_of(const nb::object& array, DType dtype) {
  return dtype == DType::bf16 ? nb::object(array.attr("view")(numpy().attr("uint16"))) : array;
}

bool is_torch_bf16(nb::handle value) {
  return nb::hasattr(value, "detach") && nb::hasattr(value, "dtype") &&
         nb::cast<std::string>(nb::str(nb::object(value.attr("dtype")))) == "torch.bfloat16";
}

// numpy() refuses it.
nb::object torch_bf16(nb::handle value) {
  const nb::object bits =
      value.attr("detach")().attr("view")(nb::module_::import_("torch").attr("uint16"));
  return bits.attr("numpy")().attr("view")(numpy_dtype(DType::bf16));
}

nb::object as_array(nb::handle value, const FieldSpec& field) {
  const auto refuse = [&](const std::string& found) {
    throw std::invalid_argument("field '" + field.name + "': expected " +
                                std::string(name_of(field.dtype)) + " " + field.shape.to_string() +
                                ", found " + found);
  };
  PyObject* const given = value.ptr();
  if (given == Py_None) refuse("None");
  const bool is_text = PyUnicode_Check(given) != 0;
  if (is_text || PyBytes_Check(given) != 0 || PyByteArray_Check(given) != 0) {
    const std::string name = nb::cast<std::string>(nb::str(value.type().attr("__name__")));
    if (field.dtype != DType::u8) refuse(name + ", which is u8 [?]");
    const nb::object bytes = is_text ? nb::object(value.attr("encode")()) : nb::borrow(value);
    return numpy().attr("frombuffer")(bytes, numpy().attr("uint8"));
  }
  if (is_torch_bf16(value)) return torch_bf16(value);
  if (nb::hasattr(value, "dtype")) return numpy().attr("asarray")(value);
  const auto shown = [&] {
    const std::string text = nb::cast<std::string>(nb::str(nb::repr(value)));
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  };
  try {
    const nb::object plain = numpy().attr("asarray")(value);
    if (nb::hasattr(value, "__array_interface__") || nb::hasattr(value, "__array__")) return plain;
    // numpy would take None for not-a-number, and 1.5 for 1.
    const auto kind = nb::cast<std::string>(plain.attr("dtype").attr("kind"));
    const bool is_whole = field.dtype != DType::f16 && field.dtype != DType::bf16 &&
                          field.dtype != DType::f32 && field.dtype != DType::f64;
    if (kind == "O" || (kind == "f" && is_whole && is_true(plain.attr("size")))) refuse(shown());
    return numpy().attr("asarray")(value, numpy_dtype(field.dtype));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) &&
        !error.matches(PyExc_OverflowError))
      throw;
    refuse(shown());
  }
  return {};
}

// Of the field's dtype: another of the same kind is converted where no number changes.
Known as_dtype(nb::object array, const FieldSpec& field) {
  const std::string what = "field '" + field.name + "'";
  Known known = known_array(std::move(array), what);
  if (known.dtype == field.dtype || known.dtype == DType::bf16 || field.dtype == DType::bf16)
    return known;
  const nb::object wanted = numpy_dtype(field.dtype);
  if (!is_true(numpy().attr("can_cast")(known.array.attr("dtype"), wanted, "same_kind")))
    return known;
  const nb::object converted = known.array.attr("astype")(wanted);
  const bool is_integer = nb::cast<std::string>(known.array.attr("dtype").attr("kind")) != "f";
  if (is_integer && !is_true(numpy().attr("array_equal")(converted, known.array)))
    throw std::invalid_argument(what + ": " + std::string(name_of(field.dtype)) +
                                " cannot hold some of its values, which are " +
                                std::string(name_of(known.dtype)));
  return {converted, field.dtype};
}

}  // namespace

bool is_true(nb::handle value) { return PyObject_IsTrue(value.ptr()) == 1; }

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

HostArray::HostArray(nb::handle value, const FieldSpec& field) {
  const Known known = as_dtype(as_array(value, field), field);
  // ascontiguousarray would turn a scalar into a row.
  array_ = numpy().attr("require")(known.array, nb::none(), "C");
  view_ = ConstTensorView(Buffer(bits_of(array_, known.dtype), PyBUF_C_CONTIGUOUS).data(),
                          known.dtype, parse_shape(array_.attr("shape")));
}

Column column_of(const std::string& name, nb::handle value) {
  const std::string what = "field '" + name + "'";
  if (nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value))
    throw std::invalid_argument(what + ": expected an array, found a text or bytes");
  const Known known =
      known_array(is_torch_bf16(value) ? torch_bf16(value) : numpy().attr("asarray")(value), what);
  const Shape shape = parse_shape(known.array.attr("shape"));
  if (shape.rank() == 0)
    throw std::invalid_argument(what +
                                ": expected rows along the first axis, found a single number");
  const auto strides = nb::cast<std::vector<std::int64_t>>(known.array.attr("strides"));
  const FieldSpec spec{
      .name = name, .dtype = known.dtype, .shape = Shape(shape.extents().subspan(1))};
  auto dense = static_cast<std::int64_t>(size_of(known.dtype));
  bool is_dense = true;
  for (std::size_t axis = shape.rank(); axis-- > 1;) {
    is_dense = is_dense && (shape[axis] == 1 || strides[axis] == dense);
    dense *= shape[axis];
  }
  if (dense != 0 && shape[0] != 0 && (!is_dense || (shape[0] > 1 && strides[0] <= 0)))
    throw std::invalid_argument(
        what +
        ": its rows do not lie dense in memory, as in a transposed or reversed array: give " +
        "np.ascontiguousarray(...), which copies it");
  Column column{.spec = spec, .bytes = {}, .owner = keep_memory(known.array)};
  if (shape[0] == 0 || dense == 0) return column;
  const std::int64_t step = shape[0] > 1 ? strides[0] : dense;
  if (step != dense) column.stride = static_cast<std::size_t>(step);
  column.bytes = {Buffer(bits_of(known.array, known.dtype), PyBUF_STRIDES).data(),
                  static_cast<std::size_t>((shape[0] - 1) * step + dense)};
  return column;
}

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
