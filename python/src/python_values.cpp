#include "python_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace penstock::python {

namespace {

// The elements of a sequence of `count` of them; texts are none.
template <class T>
std::vector<T> elements(nb::handle given, std::size_t count, const char* argument) {
  std::vector<T> values = from_python<std::vector<T>>(given, argument);
  if (values.size() != count) throw nb::next_overload();
  return values;
}

// Zero-dimensional arrays and tensors are numbers.
bool is_number(nb::handle given) { return PyNumber_Check(given.ptr()) != 0 && !has_length(given); }

}  // namespace

bool is_boolean(nb::handle given) {
  if (PyBool_Check(given.ptr()) != 0) return true;
  const nb::object type = nb::getattr(given, "dtype", nb::none());
  return !type.is_none() && nb::cast<std::string>(nb::str(type)).find("bool") != std::string::npos;
}

void require_the_same(nb::handle given, double value, const char* argument) {
  const nb::object back = nb::steal(PyLong_FromDouble(value));
  if (back.is_valid() && back.equal(given)) return;
  PyErr_Clear();
  throw std::invalid_argument(std::string(argument) + ": a float of 64 bits cannot hold " +
                              repr_of(given));
}

nb::object integer_array(nb::handle given) {
  if (!nb::hasattr(given, "__array__")) return {};
  const nb::object array = numpy().attr("asarray")(given);
  const nb::object kind = array.attr("dtype").attr("kind");
  const bool is_integer = kind.equal(nb::str("i")) || kind.equal(nb::str("u"));
  return is_integer && array.attr("ndim").equal(nb::int_(1)) ? array : nb::object();
}

std::filesystem::path PythonValue<std::filesystem::path>::value(nb::handle given, const char*) {
  std::filesystem::path path;
  if (!given.is_none() && !nb::try_cast(given, path)) throw nb::next_overload();
  return path;
}

ShardPaths PythonValue<ShardPaths>::value(nb::handle given, const char*) {
  std::filesystem::path path;
  if (nb::try_cast(given, path)) return path;
  std::vector<std::string> paths;
  if (PySequence_Check(given.ptr()) == 0)
    throw std::invalid_argument("expected a path, a pattern or a list of them, found " +
                                repr_of(given));
  for (const nb::handle one : given) {
    if (!nb::try_cast(one, path))
      throw std::invalid_argument("expected a path or a pattern, found " + repr_of(one));
    paths.push_back(path.string());
  }
  return paths;
}

std::string PythonValue<std::vector<float>>::text(const std::vector<float>& numbers) {
  std::string text;
  // As short as the float: 0.1, not 0.10000000149011612.
  for (const float number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return "(" + text + (numbers.size() == 1 ? ",)" : ")");
}
std::vector<float> PythonValue<std::vector<float>>::value(nb::handle given, const char* argument) {
  if (is_number(given)) return {from_python<float>(given, argument)};
  std::vector<float> numbers;
  for (const double number : from_python<std::vector<double>>(given, argument))
    numbers.push_back(static_cast<float>(number));
  return numbers;
}

std::vector<ImageSize> PythonValue<std::vector<ImageSize>>::value(nb::handle given,
                                                                  const char* argument) {
  static_assert(sizeof(ImageSize) == 2 * sizeof(std::int32_t));
  const FieldSpec field{.name = argument, .dtype = DType::i32, .shape = {kDynamic, 2}};
  const HostArray array(given, field);
  const ConstTensorView& view = array.view();
  if (view.dtype() != DType::i32 || !fits(view.shape().extents(), field.shape))
    throw std::invalid_argument(
        fmt::format("{}: expected height and width of each, i32 [?,2], found {} {}", argument,
                    name_of(view.dtype()), view.shape().to_string()));
  std::vector<ImageSize> sizes(static_cast<std::size_t>(view.shape()[0]));
  if (!sizes.empty()) std::memcpy(sizes.data(), view.raw(), view.byte_size());
  return sizes;
}

std::string PythonValue<Range>::text(const Range& range) {
  return repr_of(nb::make_tuple(range.low, range.high));
}
Range PythonValue<Range>::value(nb::handle given, const char* argument) {
  if (is_number(given)) {
    const auto number = from_python<double>(given, argument);
    return {number, number};
  }
  const auto ends = elements<double>(given, 2, argument);
  return {ends[0], ends[1]};
}

std::string PythonValue<ImageSize>::text(const ImageSize& size) {
  if (size.height == size.width) return std::to_string(size.height);
  return repr_of(nb::make_tuple(size.height, size.width));
}
ImageSize PythonValue<ImageSize>::value(nb::handle given, const char* argument) {
  if (is_number(given)) return from_python<int>(given, argument);
  const auto sides = elements<int>(given, 2, argument);
  return {sides[0], sides[1]};
}

std::string PythonValue<Color>::text(const Color& color) {
  if (color.red == color.green && color.green == color.blue) return std::to_string(color.red);
  return repr_of(nb::make_tuple(color.red, color.green, color.blue));
}
Color PythonValue<Color>::value(nb::handle given, const char* argument) {
  if (is_number(given)) return from_python<int>(given, argument);
  const auto levels = elements<int>(given, 3, argument);
  return {levels[0], levels[1], levels[2]};
}

PythonValue<std::array<std::uint8_t, 3>>::Levels PythonValue<std::array<std::uint8_t, 3>>::value(
    nb::handle given, const char* argument) {
  const auto color = from_python<Color>(given, argument);
  const auto level = [&](int found) {
    if (found < 0 || found > 255)
      throw std::invalid_argument(std::string(argument) + ": a level is 0 to 255, found " +
                                  std::to_string(found));
    return static_cast<std::uint8_t>(found);
  };
  return {level(color.red), level(color.green), level(color.blue)};
}

Crop PythonValue<Crop>::value(nb::handle given, const char*) {
  Crop crop;
  if (nb::try_cast(given, crop)) return crop;
  throw nb::type_error(("expected a crop, such as random_resized_crop(224) for training, or "
                        "center_crop(224, resize=256) for validation, found " +
                        repr_of(given) + hint_at(given))
                           .c_str());
}

std::vector<ImageView> PythonValue<std::vector<ImageView>>::value(nb::handle given, const char*) {
  const auto refuse = [](nb::handle found) {
    throw nb::type_error(("expected views by the names of their fields, such as {'global': "
                          "ImageView(random_resized_crop(224), count=2)}, found " +
                          repr_of(found))
                             .c_str());
  };
  if (PyMapping_Check(given.ptr()) == 0 || !nb::hasattr(given, "items")) refuse(given);
  std::vector<ImageView> views;
  for (const nb::handle item : given.attr("items")()) {
    std::string name;
    ImageView view;
    if (!nb::try_cast(item[0], name) || !nb::try_cast(item[1], view)) refuse(item);
    view.field = std::move(name);
    views.push_back(std::move(view));
  }
  return views;
}

std::chrono::milliseconds PythonValue<std::chrono::milliseconds>::value(nb::handle given,
                                                                        const char* argument) {
  constexpr double kLongest = 1e9;  // 30 years, which clocks can hold
  const auto seconds = from_python<double>(given, argument);
  if (!(seconds >= 0))
    throw std::invalid_argument(std::string(argument) + ": expected seconds, at least 0, found " +
                                repr_of(given));
  return std::chrono::milliseconds(std::llround(std::min(seconds, kLongest) * 1e3));
}

}  // namespace penstock::python
