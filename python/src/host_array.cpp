#include "host_array.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nanobind/stl/vector.h>

#include "casters.hpp"
#include "python_object.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// An array's memory. Arrays of bf16 come as u16, which has a buffer.
std::byte* data_of(nb::handle array, int flags) {
  const HeldBuffer buffer(array, flags);
  if (!buffer) throw nb::python_error();
  return static_cast<std::byte*>(buffer->buf);
}

// The dtype of the struct module's letter for one element; none of others.
std::optional<DType> dtype_of_format(const char* format) {
  if (format == nullptr) return DType::u8;
  static constexpr std::pair<char, DType> kLetters[] = {
      {'B', DType::u8},  {'?', DType::boolean}, {'b', DType::i8},  {'h', DType::i16},
      {'H', DType::u16}, {'i', DType::i32},     {'I', DType::u32}, {'l', DType::i64},
      {'L', DType::u64}, {'q', DType::i64},     {'Q', DType::u64}, {'e', DType::f16},
      {'f', DType::f32}, {'d', DType::f64}};
  for (const auto& [letter, dtype] : kLetters)
    if (format[0] == letter && format[1] == '\0') return dtype;
  return std::nullopt;
}

// An array whose dtype penstock has, in this machine's byte order.
struct Known {
  nb::object array;
  DType dtype{};
};

Known known_array(nb::object array, const std::string& what) {
  const auto name = nb::cast<std::string>(array.attr("dtype").attr("name"));
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

// None is masked where numpy.ma was not imported, which takes long, and the GIL may change hands meanwhile.
void require_unmasked(nb::handle value, const std::string& field) {
  const nb::object name = nb::steal(PyUnicode_InternFromString("numpy.ma"));
  const nb::object ma = nb::steal(PyImport_GetModule(name.ptr()));
  if (!ma.is_valid()) {
    PyErr_Clear();
    return;
  }
  const nb::object type =
      nb::getattr(ma, "MaskedArray", nb::none());  // another thread may import it
  if (type.is_none() || !nb::isinstance(value, type)) return;
  if (is_true(ma.attr("is_masked")(value)))
    throw std::invalid_argument("field '" + field +
                                "': some values are masked, and their memory is not what they "
                                "stand for: give filled(...) of it, and the mask as another field");
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
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
    const nb::object bytes =
        is_text ? nb::object(value.attr("encode")("utf-8", "surrogateescape")) : nb::borrow(value);
    return numpy().attr("frombuffer")(bytes, numpy().attr("uint8"));
  }
  if (is_torch_bf16(value)) return torch_bf16(value);
  if (nb::hasattr(value, "dtype")) return numpy().attr("asarray")(value);
  if (PyDict_Check(given) != 0 || nb::hasattr(value, "getbands")) {
    const nb::object plain = nb::module_::import_("penstock._items")
                                 .attr("as_plain")(field.name, value, to_tuple(field.shape),
                                                   std::string(name_of(field.dtype)));
    return PyBytes_Check(plain.ptr()) != 0 ? as_array(plain, field) : plain;
  }
  const auto shown = [&] {
    const std::string text = repr_of(value);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  };
  try {
    const nb::object plain = numpy().attr("asarray")(value);
    if (nb::hasattr(value, "__array_interface__") || nb::hasattr(value, "__array__")) return plain;
    // numpy would take None for not-a-number, 1.5 for 1, and 2 for True.
    const auto kind = nb::cast<std::string>(plain.attr("dtype").attr("kind"));
    if (field.dtype == DType::boolean && (kind == "i" || kind == "u")) return plain;
    const bool loses =
        field.dtype == DType::boolean ? kind != "b" : kind == "f" && !is_float(field.dtype);
    if (kind == "O" || (loses && is_true(plain.attr("size")))) refuse(shown());
    // Whether the field can hold these numbers is looked at below: numpy would wrap those of its own that are in a list.
    if (kind == "f" && PyFloat_Check(given) == 0 && is_true(plain.attr("size"))) {
      const nb::object lost =
          nb::module_::import_("penstock._items")
              .attr("lost_integer")(value, plain, std::string(name_of(field.dtype)));
      if (!lost.is_none())
        refuse(repr_of(lost) + " among floats, which " + std::string(name_of(field.dtype)) +
               " cannot hold");
    }
    if (is_true(plain.attr("size")) && kind.find_first_of("iuf") == 0) return plain;
    return numpy().attr("asarray")(value, numpy_dtype(field.dtype));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) &&
        !error.matches(PyExc_OverflowError))
      throw;
    refuse(shown());
  }
  return {};
}

// Whether floats made of integers are these. Comparing them would make floats of both.
bool are_the_same(const nb::object& floats, const nb::object& integers) {
  const nb::object type = integers.attr("dtype");
  const bool is_signed = nb::cast<std::string>(type.attr("kind")) == "i";
  const double limit =
      std::ldexp(1.0, (8 * nb::cast<int>(type.attr("itemsize"))) - (is_signed ? 1 : 0));
  const nb::object wide = floats.attr("astype")("float64");
  // Beyond these, and for infinity, the way back is undefined.
  const nb::object fit = numpy().attr("logical_and")(numpy().attr("less")(wide, limit),
                                                     numpy().attr("greater_equal")(wide, -limit));
  return is_true(fit.attr("all")()) &&
         is_true(numpy().attr("array_equal")(wide.attr("astype")(type), integers));
}

// Whether a finite number has become infinite.
bool overflows(const nb::object& converted, const nb::object& given) {
  const auto finite = [](const nb::object& array) {
    return nb::cast<std::size_t>(
        numpy().attr("count_nonzero")(numpy().attr("isfinite")(array.attr("astype")("float64"))));
  };
  return finite(converted) != finite(given);
}

// A context manager that is entered.
class Entered {
 public:
  explicit Entered(nb::object context) : context_(std::move(context)) {
    context_.attr("__enter__")();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  ~Entered() {
    try {
      context_.attr("__exit__")(nb::none(), nb::none(), nb::none());
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("numpy.errstate");
    }
  }

 private:
  nb::object context_;
};

// Of the field's dtype: integers become other integers, floats and 0 or 1 booleans where no number changes, floats become
// floats, rounded.
Known as_dtype(nb::object array, const FieldSpec& field) {
  const std::string what = "field '" + field.name + "'";
  Known known = known_array(std::move(array), what);
  const bool of_floats = is_float(known.dtype);
  if (known.dtype == field.dtype || (of_floats && !is_float(field.dtype))) return known;
  const nb::object quiet = numpy().attr("errstate")("over"_a = "ignore", "invalid"_a = "ignore");
  const Entered entered(quiet);
  const nb::object converted = known.array.attr("astype")(numpy_dtype(field.dtype));
  const bool changes = of_floats ? overflows(converted, known.array)
                       : is_float(field.dtype) && known.dtype != DType::boolean
                           ? !are_the_same(converted, known.array)
                           : !is_true(numpy().attr("array_equal")(converted, known.array));
  if (changes)
    throw std::invalid_argument(what + ": " + std::string(name_of(field.dtype)) +
                                " cannot hold some of its values, which are " +
                                std::string(name_of(known.dtype)));
  return {converted, field.dtype};
}

// np.array([]), as of an image without boxes, is no rows of any type.
nb::object with_no_rows(nb::object array, const FieldSpec& field) {
  const auto wanted = field.shape.extents();
  if (wanted.empty() || wanted[0] != kDynamic || is_true(array.attr("size"))) return array;
  if (!array.attr("ndim").equal(nb::int_(1)) || std::ranges::count(wanted.subspan(1), kDynamic) > 0)
    return array;
  nb::list extents;
  extents.append(0);
  for (const std::int64_t extent : wanted.subspan(1)) extents.append(extent);
  return numpy().attr("empty")(nb::tuple(extents), numpy_dtype(field.dtype));
}

}  // namespace

bool fits(std::span<const std::int64_t> extents, const Shape& wanted) {
  return std::ranges::equal(extents, wanted.extents(), [](std::int64_t found, std::int64_t of_all) {
    return of_all == kDynamic || found == of_all;
  });
}

bool is_true(nb::handle value) { return PyObject_IsTrue(value.ptr()) == 1; }

nb::module_ numpy() {
  static PyObject* module = nullptr;  // kept for ever; guarded by the GIL, as below
  try {
    // While the interpreter ends the import says when it is too late.
    if (module == nullptr || closing()) module = nb::module_::import_("numpy").release().ptr();
    return nb::borrow<nb::module_>(module);
  } catch (nb::python_error& error) {
    if (closing()) throw Error("no array can be made while the interpreter ends");
    nb::raise_from(error, PyExc_ImportError,
                   "arrays that go into penstock are numpy's: pip install numpy");
  }
}

nb::object numpy_dtype(DType dtype) {
  static std::array<PyObject*, kDTypes.size()> known{};
  PyObject*& kept = known.at(static_cast<std::size_t>(dtype));
  if (kept != nullptr) return nb::borrow(kept);
  try {
    const nb::object type = dtype == DType::bf16
                                ? nb::object(nb::module_::import_("ml_dtypes").attr("bfloat16"))
                                : nb::str(std::string(numpy_name_of(dtype)).c_str());
    kept = numpy().attr("dtype")(type).release().ptr();
    return nb::borrow(kept);
  } catch (nb::python_error& error) {
    nb::raise_from(error, PyExc_ImportError,
                   "numpy has no bfloat16 of its own: pip install ml_dtypes, or take f16 or f32");
  }
}

HeldBuffer::HeldBuffer(nb::handle object, int flags) {
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) buffer_.obj = nullptr;
}
HeldBuffer& HeldBuffer::operator=(HeldBuffer&& other) noexcept {
  std::swap(buffer_, other.buffer_);
  return *this;
}
HeldBuffer::~HeldBuffer() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

// A number of Python's own, such as most labels are: without numpy's help.
bool HostArray::take_number(PyObject* value, const FieldSpec& field) {
  const auto keep = [&](auto number) {
    number_ = std::make_unique<Number>();
    std::memcpy(number_->data(), &number, sizeof number);
    view_ = ConstTensorView(number_->data(), field.dtype, {});
    return true;
  };
  if (field.shape.rank() != 0) return false;
  if (field.dtype == DType::i64 && PyLong_CheckExact(value) != 0) {
    const long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred() != nullptr) {  // too large: refused by name below
      PyErr_Clear();
      return false;
    }
    return keep(std::int64_t{number});
  }
  if (PyFloat_CheckExact(value) == 0) return false;
  const double number = PyFloat_AsDouble(value);
  if (field.dtype == DType::f64) return keep(number);
  if (field.dtype != DType::f32) return false;
  const auto rounded = static_cast<float>(number);
  // One that becomes infinite is refused below.
  return std::isfinite(number) == std::isfinite(rounded) && keep(rounded);
}

// Dense memory of the field's own dtype and shape, such as most arrays are: without numpy's help.
bool HostArray::take_dense(PyObject* value, const FieldSpec& field) {
  if (PyObject_CheckBuffer(value) == 0) return false;
  HeldBuffer buffer(value, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
  if (!buffer) {
    PyErr_Clear();
    return false;
  }
  const std::span<const Py_ssize_t> extents(buffer->shape, static_cast<std::size_t>(buffer->ndim));
  if (dtype_of_format(buffer->format) != field.dtype || !fits(extents, field.shape)) return false;
  view_ = ConstTensorView(static_cast<const std::byte*>(buffer->buf), field.dtype, Shape(extents));
  buffer_ = std::move(buffer);
  return true;
}

HostArray::HostArray(nb::handle value, const FieldSpec& field) {
  if (take_number(value.ptr(), field)) return;
  require_unmasked(value, field.name);
  if (take_dense(value.ptr(), field)) return;
  const Known known = as_dtype(with_no_rows(as_array(value, field), field), field);
  // ascontiguousarray would turn a scalar into a row.
  array_ = numpy().attr("require")(known.array, nb::none(), "C");
  view_ = ConstTensorView(data_of(bits_of(array_, known.dtype), PyBUF_C_CONTIGUOUS), known.dtype,
                          parse_shape(array_.attr("shape")));
}

Column column_of(const std::string& name, nb::handle value) {
  const std::string what = "field '" + name + "'";
  if (nb::isinstance<nb::str>(value) || nb::isinstance<nb::bytes>(value))
    throw std::invalid_argument(what + ": expected an array, found a string or bytes");
  require_unmasked(value, name);
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
  column.bytes = {data_of(bits_of(known.array, known.dtype), PyBUF_STRIDES),
                  static_cast<std::size_t>((shape[0] - 1) * step + dense)};
  return column;
}

std::vector<std::uint64_t> integers_of(const std::string& name, nb::handle value) {
  const FieldSpec field{.name = name, .dtype = DType::i64, .shape = {kDynamic}};
  const HostArray array(value, field);
  if (array.view().dtype() != DType::i64 || array.view().shape().rank() != 1)
    throw std::invalid_argument(name + ": expected integers in a row, found " +
                                std::string(name_of(array.view().dtype())) + " " +
                                array.view().shape().to_string());
  const auto* const first = array.view().data<std::int64_t>();
  const std::span<const std::int64_t> numbers(first,
                                              static_cast<std::size_t>(array.view().shape()[0]));
  if (const auto below = std::ranges::find_if(numbers, [](std::int64_t n) { return n < 0; });
      below != numbers.end())
    throw std::invalid_argument(name + ": expected numbers from 0 on, found " +
                                std::to_string(*below));
  return {numbers.begin(), numbers.end()};
}

nb::object copy_to_numpy(const ConstTensorView& view) {
  static PyObject* empty = nullptr;
  if (empty == nullptr) empty = nb::object(numpy().attr("empty")).release().ptr();
  nb::object array = nb::handle(empty)(to_tuple(view.shape()), numpy_dtype(view.dtype()));
  if (view.byte_size() == 0) return array;
  const nb::object raw =
      view.dtype() == DType::bf16 ? array.attr("view")(numpy().attr("uint16")) : array;
  std::memcpy(data_of(raw, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE), view.raw(), view.byte_size());
  return array;
}

}  // namespace penstock::python
