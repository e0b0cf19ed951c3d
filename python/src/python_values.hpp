// python_values: how the types of options are passed from Python: the type as type checkers see it, the text of a default, and
// the value of an object.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"

namespace penstock::python {

/// For the concept below.
struct AnyVisitor {};
/// A struct of options.
template <class T>
concept HasFields = requires(T& value, AnyVisitor& visit) {
  visit_fields(visit, value);
};

/// Specialised for each struct of options that is a class in Python:
///
///   static constexpr const char* kName = "ImageView";
///   static constexpr const char* kByPosition[] = {"crop"};  // may be passed without its name; always in repr()
template <class T>
struct PythonClass;
template <class T>
concept IsPythonClass = requires {
  PythonClass<T>::kName;
};

template <>
struct PythonClass<InputContext> {
  static constexpr const char* kName = "InputContext";
  static constexpr const char* kByPosition[] = {"num_input_pipelines", "input_pipeline_id",
                                                "num_replicas_in_sync"};
};

/// Of a type T that Python passes:
///
///   static std::string type();                                  "int | tuple[int, int]"
///   static std::string text(const T& value);                    "(224, 256)", for a default
///   static T value(nb::handle given, const char* argument);     nb::next_overload where it is of another type
///   static constexpr const char* kForms = "…";                  which forms a value may have, where there are several
///   static std::string returned();                              the type of what properties and functions return, if it is another
template <class T>
struct PythonValue;

template <class T>
[[nodiscard]] std::string type_of() {
  return PythonValue<T>::type();
}
template <class T>
[[nodiscard]] std::string default_text(const T& value) {
  return PythonValue<T>::text(value);
}
/// Errors  nb::next_overload  it is of another type; penstock._calls then says so
template <class T>
[[nodiscard]] T from_python(nb::handle given, const char* argument) {
  return PythonValue<T>::value(given, argument);
}

/// Which forms a value may have; empty where there is one.
template <class T>
[[nodiscard]] constexpr const char* forms_of() {
  if constexpr (requires { PythonValue<T>::kForms; }) return PythonValue<T>::kForms;
  return "";
}

/// The type of a property or of a function's result.
template <class T>
[[nodiscard]] std::string returned_type_of() {
  if constexpr (requires { PythonValue<T>::returned(); })
    return PythonValue<T>::returned();
  else
    return type_of<T>();
}

/// Whether len() takes it; it does not take zero-dimensional arrays, which are sequences by their type.
[[nodiscard]] inline bool has_length(nb::handle given) {
  if (PyObject_Size(given.ptr()) >= 0) return true;
  PyErr_Clear();
  return false;
}

/// The array of integers of one dimension that it is, of numpy, torch, pyarrow or others; else no object. Booleans are no
/// integers.
[[nodiscard]] nb::object integer_array(nb::handle given);

/// Whether it is a boolean of numpy, torch or others, which Python would take for 0 or 1.
[[nodiscard]] bool is_boolean(nb::handle given);
/// Errors  std::invalid_argument  the integer `given` is not `value`, but rounded to it
void require_the_same(nb::handle given, double value, const char* argument);

/// A value as Python has it.
template <class T>
[[nodiscard]] nb::object to_python(const T& value) {
  if constexpr (NamedEnum<T> || std::is_same_v<T, DType>)
    return nb::cast(std::string(name_of(value)));
  else if constexpr (std::is_same_v<T, std::optional<DType>>)
    return value ? to_python(*value) : nb::none();
  else if constexpr (std::is_same_v<T, Shape>)
    return to_tuple(value);
  else if constexpr (std::is_same_v<T, Range>)
    return nb::make_tuple(value.low, value.high);
  else
    return nb::cast(value);
}

template <class T>
requires std::is_arithmetic_v<T>
struct PythonValue<T> {
  static std::string type() {
    if constexpr (std::is_same_v<T, bool>) return "bool";
    return std::is_integral_v<T> ? "int" : "float";
  }
  static std::string text(const T& value) { return repr_of(nb::cast(value)); }
  static T value(nb::handle given, const char* argument) {
    T value{};
    nb::object number = nb::borrow(given);
    // An integer may be numpy's, but no string.
    if (std::is_integral_v<T> && !std::is_same_v<T, bool> && !PyLong_Check(given.ptr())) {
      if (is_boolean(given)) throw nb::next_overload();
      number = nb::steal(PyNumber_Index(given.ptr()));
      if (!number.is_valid()) {
        PyErr_Clear();
        throw nb::next_overload();
      }
    }
    if (!nb::try_cast(number, value, std::is_floating_point_v<T>)) throw nb::next_overload();
    if (std::is_floating_point_v<T> && PyLong_Check(given.ptr()))
      require_the_same(given, static_cast<double>(value), argument);
    return value;
  }
};

template <NamedEnum E>
struct PythonValue<E> {
  static std::string type() { return literal_of<E>().text; }
  static std::string text(const E& value) { return "'" + std::string(name_of(value)) + "'"; }
  static E value(nb::handle given, const char* argument) {
    if (!nb::isinstance<nb::str>(given)) throw nb::next_overload();
    return Choice<E>{nb::cast<std::string>(given)}.value(argument);
  }
};

template <>
struct PythonValue<std::string> {
  static std::string type() { return "str"; }
  static std::string text(const std::string& value) { return repr_of(nb::cast(value)); }
  static std::string value(nb::handle given, const char*) {
    std::string value;
    if (!nb::try_cast(given, value)) throw nb::next_overload();
    return value;
  }
};

template <>
struct PythonValue<DType> {
  static std::string type() { return "str"; }
  static std::string text(const DType& value) { return "'" + std::string(name_of(value)) + "'"; }
  static DType value(nb::handle given, const char* argument) {
    return parse_dtype(from_python<std::string>(given, argument));
  }
};

template <class T>
struct PythonValue<std::optional<T>> {
  static std::string type() { return type_of<T>() + " | None"; }
  static std::string text(const std::optional<T>& value) {
    return value ? default_text(*value) : "None";
  }
  static std::optional<T> value(nb::handle given, const char* argument) {
    if (given.is_none()) return std::nullopt;
    return from_python<T>(given, argument);
  }
};

/// "(1, 2)".
template <class T>
[[nodiscard]] std::string tuple_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + default_text(value);
  return "(" + text + (values.size() == 1 ? ",)" : ")");
}

/// Numbers may be an array of numpy, too.
template <class T>
struct PythonValue<std::vector<T>> {
  static std::string type() {
    const std::string list = "collections.abc.Sequence[" + type_of<T>() + "]";
    return std::is_arithmetic_v<T> ? list + " | numpy.ndarray" : list;
  }
  static std::string returned() { return "list[" + returned_type_of<T>() + "]"; }
  static std::string text(const std::vector<T>& values) { return tuple_text(values); }
  static std::vector<T> value(nb::handle given, const char* argument) {
    if constexpr (std::is_same_v<T, std::uint64_t>)  // there may be millions
      if (const nb::object array = integer_array(given); array.is_valid())
        return integers_of(argument, array);
    // Arrays of numpy and tensors of torch give Python's numbers much faster than one by one.
    const bool is_array = nb::hasattr(given, "__array__") && nb::hasattr(given, "tolist");
    const nb::object list = is_array ? nb::object(given.attr("tolist")()) : nb::borrow(given);
    if (nb::isinstance<nb::str>(list) || nb::isinstance<nb::bytes>(list) ||
        PySequence_Check(list.ptr()) == 0 || !has_length(list))
      throw nb::next_overload();
    std::vector<T> values;
    for (const nb::handle one : nb::iter(list)) values.push_back(from_python<T>(one, argument));
    return values;
  }
};

/// Numbers for each channel, or one for all.
template <>
struct PythonValue<std::vector<float>> {
  static std::string type() { return "float | collections.abc.Sequence[float] | numpy.ndarray"; }
  static std::string returned() { return "list[float]"; }
  static std::string text(const std::vector<float>& numbers);
  static std::vector<float> value(nb::handle given, const char* argument);
};

/// Strings: one, or several.
template <>
struct PythonValue<std::vector<std::string>> {
  static std::string type() { return "str | collections.abc.Sequence[str]"; }
  static std::string returned() { return "list[str]"; }
  static std::string text(const std::vector<std::string>& texts) {
    return texts.size() == 1 ? default_text(texts[0]) : tuple_text(texts);
  }
  static std::vector<std::string> value(nb::handle given, const char* argument) {
    if (nb::isinstance<nb::str>(given)) return {from_python<std::string>(given, argument)};
    std::vector<std::string> texts;
    if (!nb::try_cast(given, texts)) throw nb::next_overload();
    return texts;
  }
};

/// Extents, None for one that differs from record to record.
template <>
struct PythonValue<Shape> {
  static std::string type() { return "collections.abc.Sequence[int | None]"; }
  static std::string returned() { return "tuple[int | None, ...]"; }
  static std::string text(const Shape& shape) { return repr_of(to_tuple(shape)); }
  /// Errors  std::invalid_argument  something else
  static Shape value(nb::handle given, const char*) { return parse_shape(given); }
};

/// An empty path is None.
template <>
struct PythonValue<std::filesystem::path> {
  static std::string type() { return "str | os.PathLike[str]"; }
  static std::string returned() { return "pathlib.Path"; }
  static std::string text(const std::filesystem::path& path) {
    // Its name need not be UTF-8: as os.fsdecode() has it.
    return path.empty() ? "None" : repr_of(nb::str(nb::cast(path)));
  }
  static std::filesystem::path value(nb::handle given, const char*);
};

template <>
struct PythonValue<ShardPaths> {
  static std::string type() {
    return "str | os.PathLike[str] | collections.abc.Sequence[str | os.PathLike[str]]";
  }
  /// Errors  std::invalid_argument  something else
  static ShardPaths value(nb::handle given, const char*);
};

/// A number is a range of one.
template <>
struct PythonValue<Range> {
  static constexpr const char* kForms = "a number, or (low, high) to draw from";
  static std::string type() { return "float | tuple[float, float]"; }
  static std::string returned() { return "tuple[float, float]"; }
  static std::string text(const Range& range);
  static Range value(nb::handle given, const char* argument);
};

template <>
struct PythonValue<ImageSize> {
  static constexpr const char* kForms = "pixels: one number for a square, or (height, width)";
  static std::string type() { return "int | tuple[int, int]"; }
  static std::string text(const ImageSize& size);
  static ImageSize value(nb::handle given, const char* argument);
};

/// Rows of height and width: pairs, or an array.
template <>
struct PythonValue<std::vector<ImageSize>> {
  static std::string type() { return "collections.abc.Sequence[tuple[int, int]] | numpy.ndarray"; }
  static std::string text(const std::vector<ImageSize>&) { return "()"; }
  /// Errors  std::invalid_argument  something else
  static std::vector<ImageSize> value(nb::handle given, const char* argument);
};
template <>
struct PythonValue<std::pair<int, int>> {
  static std::string type() { return "tuple[int, int]"; }
};

template <>
struct PythonValue<Color> {
  static constexpr const char* kForms = "one level, or (red, green, blue), from 0 to 255";
  static std::string type() { return "int | tuple[int, int, int]"; }
  static std::string text(const Color& color);
  static Color value(nb::handle given, const char* argument);
};
template <>
struct PythonValue<std::array<std::uint8_t, 3>> {
  using Levels = std::array<std::uint8_t, 3>;
  static constexpr const char* kForms = PythonValue<Color>::kForms;
  static std::string type() { return type_of<Color>(); }
  static std::string text(const Levels& levels) {
    return default_text(Color(levels[0], levels[1], levels[2]));
  }
  /// Errors  std::invalid_argument  a level outside 0 to 255
  static Levels value(nb::handle given, const char* argument);
};

template <>
struct PythonValue<Crop> {
  static std::string type() { return "Crop"; }
  static std::string text(const Crop& crop) { return crop.to_string(); }
  /// Errors  nb::type_error  no Crop; names the usual ones
  static Crop value(nb::handle given, const char*);
};

template <>
struct PythonValue<Augmentation> {
  static std::string type() { return "Augmentation"; }
  static std::string text(const Augmentation& augmentation) { return augmentation.to_string(); }
  static Augmentation value(nb::handle given, const char*) {
    Augmentation value;
    if (!nb::try_cast(given, value)) throw nb::next_overload();
    return value;
  }
};

/// The views of decode_views: a mapping of the names of their fields to ImageViews.
template <>
struct PythonValue<std::vector<ImageView>> {
  static std::string type() { return "collections.abc.Mapping[str, ImageView]"; }
  /// Errors  nb::type_error  something else
  static std::vector<ImageView> value(nb::handle given, const char*);
};

template <>
struct PythonValue<std::vector<Device>> {
  static constexpr const char* kForms =
      "\"auto\" (every GPU, or host:0), \"host:4\" (four host devices), or a list such as "
      "[\"cuda:0\", \"cuda:1\"]";
  static std::string type() { return "str | Device | collections.abc.Sequence[str | Device]"; }
  static std::string text(const std::vector<Device>&) { return "()"; }
  static std::vector<Device> value(nb::handle given, const char*) {
    return DeviceList{nb::borrow(given)}.value();
  }
};

template <>
struct PythonValue<Dataset> {
  static std::string type() { return "Dataset"; }
  static std::string text(const Dataset& dataset) { return dataset.describe(); }
  static Dataset value(nb::handle given, const char*) {
    if (!nb::isinstance<Dataset>(given)) throw nb::next_overload();
    return nb::cast<Dataset>(given);
  }
};

template <>
struct PythonValue<nb::bytes> {
  static std::string type() { return "bytes"; }
  static nb::bytes value(nb::handle given, const char*) {
    if (!nb::isinstance<nb::bytes>(given)) throw nb::next_overload();
    return nb::borrow<nb::bytes>(given);
  }
};

/// What only Python knows.
template <>
struct PythonValue<nb::object> {
  static std::string type() { return "typing.Any"; }
};

template <>
struct PythonValue<PyTransform> {
  static std::string type() { return "Transform"; }
};

/// A function that is called with the GIL; None for none.
template <>
struct PythonValue<std::function<void(std::uint64_t, std::uint64_t)>> {
  using Function = std::function<void(std::uint64_t, std::uint64_t)>;
  static std::string type() { return "collections.abc.Callable[[int, int], object] | None"; }
  static std::string text(const Function&) { return "None"; }
  static Function value(nb::handle given, const char*) {
    if (given.is_none()) return {};
    if (PyCallable_Check(given.ptr()) == 0) throw nb::next_overload();
    return [kept = std::make_shared<Kept>(nb::borrow(given))](std::uint64_t first,
                                                              std::uint64_t second) {
      const nb::gil_scoped_acquire gil;
      try {
        if (const nb::object function = object_of(kept); function.is_valid())
          function(first, second);
      } catch (nb::python_error& error) {
        rethrow(error);
      }
    };
  }
};

/// An object of the class Holder, whose member has the C++ object; None for a null pointer.
template <class T, class Holder, std::shared_ptr<T> Holder::*member>
struct HeldValue {
  static std::string text(const std::shared_ptr<T>&) { return "None"; }
  static std::shared_ptr<T> value(nb::handle given, const char*) {
    if (given.is_none()) return nullptr;
    Holder holder;
    if (!nb::try_cast(given, holder)) throw nb::next_overload();
    return holder.*member;
  }
};
template <>
struct PythonValue<std::shared_ptr<JpegIndexStore>>
    : HeldValue<JpegIndexStore, PyJpegIndex, &PyJpegIndex::store> {
  static std::string type() { return "JpegIndex | None"; }
};
template <>
struct PythonValue<std::shared_ptr<JpegStats>>
    : HeldValue<JpegStats, PyJpegStats, &PyJpegStats::stats> {
  static std::string type() { return "JpegStats | None"; }
};
template <>
struct PythonValue<std::shared_ptr<ThreadBudget>>
    : HeldValue<ThreadBudget, PyThreadBudget, &PyThreadBudget::budget> {
  static std::string type() { return "ThreadBudget | None"; }
};

template <>
struct PythonValue<Device> {
  static std::string type() { return "str | Device"; }
  static std::string text(const Device& device) { return default_text(device.to_string()); }
  static Device value(nb::handle given, const char* argument) {
    if (nb::isinstance<Device>(given)) return nb::cast<Device>(given);
    return Device::parse(from_python<std::string>(given, argument));
  }
};

template <>
struct PythonValue<std::vector<FieldSpec>> {
  static constexpr const char* kForms =
      "FieldSpecs, or {name: (dtype, shape)}, such as {\"observation\": (\"f32\", (None, 4))}; "
      "None is an "
      "extent that differs from record to record";
  static std::string type() {
    return "collections.abc.Sequence[FieldSpec] | collections.abc.Mapping[str, tuple[str, "
           "collections.abc.Sequence[int | None]]]";
  }
  /// Errors  std::invalid_argument  something else
  static std::vector<FieldSpec> value(nb::handle given, const char*) {
    return Fields{nb::borrow(given)}.value();
  }
};

/// Seconds.
template <>
struct PythonValue<std::chrono::milliseconds> {
  static constexpr const char* kForms = "in seconds";
  static std::string type() { return "float"; }
  static std::string text(std::chrono::milliseconds time) {
    return default_text(std::chrono::duration<double>(time).count());
  }
  /// Errors  std::invalid_argument  less than 0, or NaN
  static std::chrono::milliseconds value(nb::handle given, const char* argument);
};

}  // namespace penstock::python
