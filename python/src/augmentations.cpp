// Operations on pixels.
#include <functional>
#include <string>

#include "header_docs.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// Ranges that a number stands for as torchvision's ColorJitter takes one: around 1 for factors, around 0 for hues.
struct Factors {
  static constexpr const char* kForms =
      "a number s, which is (max(0, 1 - s), 1 + s), or (low, high) to draw from";
  static Range around(double strength) { return factors(strength); }
  Range range;
};
struct HueTurns {
  static constexpr const char* kForms = "a number s, which is (-s, s), or (low, high) to draw from";
  static Range around(double strength) { return {-strength, strength}; }
  Range range;
};
template <class T>
concept OfStrength = requires {
  T::around(1.0);
};

struct Strengths {
  Factors brightness;
  Factors contrast;
  Factors saturation;
  HueTurns hue;
};
template <class Visitor>
void visit_fields(Visitor& visit, Strengths& strengths) {
  visit("brightness", strengths.brightness);
  visit("contrast", strengths.contrast);
  visit("saturation", strengths.saturation);
  visit("hue", strengths.hue);
}

Augmentation jitter(const Strengths& strengths) {
  return color_jitter({.brightness = strengths.brightness.range,
                       .contrast = strengths.contrast.range,
                       .saturation = strengths.saturation.range,
                       .hue = strengths.hue.range});
}

}  // namespace

template <OfStrength Strength>
struct PythonValue<Strength> : PythonValue<Range> {
  static constexpr const char* kForms = Strength::kForms;
  static std::string text(const Strength& of) { return PythonValue<Range>::text(of.range); }
  static Strength value(nb::handle given, const char* argument) {
    double strength = 0;
    if (nb::try_cast(given, strength)) return {Strength::around(strength)};
    return {PythonValue<Range>::value(given, argument)};
  }
};
template <>
struct StructDoc<Strengths> : StructDoc<ColorJitterOptions> {};

void bind_augmentations(nb::module_& module) {
  nb::class_<Augmentation>(
      module, "Augmentation",
      R"(One operation on an image with the ranges that it draws from, or a choice of operations. A value; for
augment_image().

Each operation is defined in integers and gives the same levels on every machine. The definitions are those of
torchvision.transforms.v2.functional for u8 images, within one level at factors up to 2. Grey images stay as they are where an
operation needs colours.)")
      .def("__repr__", &Augmentation::to_string)
      .def(
          "__reduce__",
          [](const Augmentation& self) {
            return nb::make_tuple(
                nb::module_::import_("penstock._plan").attr("unpickle_augmentation"),
                nb::make_tuple(self.to_json()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def(
          "__eq__",
          [](const Augmentation& self, nb::handle other) {
            Augmentation another;
            return nb::try_cast(other, another) && self == another;
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Augmentation& self) { return std::hash<std::string>()(self.to_json()); })
      .def("to_json", &Augmentation::to_json,
           R"({"brightness":{"factor":[0.6,1.4]}}: what plans hold.)")
      .def_static(
          "from_json", [](const std::string& json) { return Augmentation::from_json(json); },
          "json"_a, R"(What to_json() wrote.

Errors  Error       no such operation, or a field that is missing, unknown or of another type
        ValueError  a number out of range)");
  const ColorJitterOptions unchanged;
  def(module,
      Call{"color_jitter", &jitter, calls::color_jitter().doc,
           Parameter<Strengths>{"strengths", Strengths{{unchanged.brightness},
                                                       {unchanged.contrast},
                                                       {unchanged.saturation},
                                                       {unchanged.hue}}}},
      {"brightness", "contrast", "saturation", "hue"});
  def(module, calls::hsv_jitter(), {"hue", "saturation", "value"});
  def(module, calls::rand_augment(), {"operations", "magnitude", "magnitudes"});
  def(module, calls::aug_mix(), {"severity", "width", "depth", "alpha", "all_operations"});
  def(module, calls::three_augment(), {"color_jitter", "kernel_size"});
  def_all(module, calls::functions_that_return_augmentation(),
          {"color_jitter", "hsv_jitter", "rand_augment", "aug_mix", "three_augment"});
}

}  // namespace penstock::python
