// Operations on pixels, and the transform that does them.
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Pair = std::pair<double, double>;
using NumberOrRange = std::variant<double, Pair>;
using RedGreenBlue = std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>;
using Fill = std::variant<std::uint8_t, RedGreenBlue>;
using GivenInterpolation = Choice<Interpolation>;

Range range_of(const Pair& pair) { return {pair.first, pair.second}; }

// A number is a range of one.
Range range_of(const NumberOrRange& given) {
  if (const double* number = std::get_if<double>(&given)) return {*number, *number};
  return range_of(std::get<Pair>(given));
}

// A number is how far on either side: of 1 for factors, of 0 for hues.
Range factors_of(const NumberOrRange& given) {
  if (const double* strength = std::get_if<double>(&given)) return factors(*strength);
  return range_of(std::get<Pair>(given));
}
Range around_zero(const NumberOrRange& given) {
  if (const double* most = std::get_if<double>(&given)) return {-*most, *most};
  return range_of(std::get<Pair>(given));
}

std::array<std::uint8_t, 3> fill_of(const Fill& given) {
  if (const std::uint8_t* level = std::get_if<std::uint8_t>(&given))
    return {*level, *level, *level};
  const auto [red, green, blue] = std::get<RedGreenBlue>(given);
  return {red, green, blue};
}

Sampling sampling_of(const GivenInterpolation& interpolation, const Fill& fill) {
  return {.interpolation = interpolation.value("interpolation"), .fill = fill_of(fill)};
}

// Arguments that several have.
auto interpolation(const char* by_default) {
  return "interpolation"_a = GivenInterpolation{by_default};
}
auto black() { return "fill"_a = RedGreenBlue{0, 0, 0}; }

void bind_levels(nb::module_& module) {
  module.def(
      "brightness", [](const NumberOrRange& factor) { return brightness(range_of(factor)); },
      "factor"_a,
      R"(Multiplies levels; 0 is black. Factors of all operations are from 0 to 8, a number or (low, high)
to draw from, and 1 leaves an image as it is.

Errors  ValueError  a range that is empty or goes beyond
Source  torchvision's adjust_brightness)");
  module.def(
      "contrast", [](const NumberOrRange& factor) { return contrast(range_of(factor)); },
      "factor"_a, R"(Blends with the mean of the image's luma.

Errors  ValueError  as brightness
Source  torchvision's adjust_contrast)");
  module.def(
      "saturation", [](const NumberOrRange& factor) { return saturation(range_of(factor)); },
      "factor"_a, R"(Blends with the image's luma; 0 is grey.

Errors  ValueError  as brightness
Source  torchvision's adjust_saturation)");
  module.def(
      "hue", [](const NumberOrRange& turn) { return hue(range_of(turn)); }, "turn"_a,
      R"(Turns hues by a part of the circle, from -0.5 to 0.5.

Errors  ValueError  a range that is empty or goes beyond
Source  torchvision's adjust_hue)");
  module.def(
      "sharpness", [](const NumberOrRange& factor) { return sharpness(range_of(factor)); },
      "factor"_a,
      R"(Blends with a smoothed image: below 1 it blurs, above it sharpens. The outermost pixels stay.

Errors  ValueError  as brightness
Source  torchvision's adjust_sharpness)");
  module.def(
      "color_jitter",
      [](const NumberOrRange& bright, const NumberOrRange& contrasts,
         const NumberOrRange& saturations, const NumberOrRange& hues) {
        return color_jitter({.brightness = factors_of(bright),
                             .contrast = factors_of(contrasts),
                             .saturation = factors_of(saturations),
                             .hue = around_zero(hues)});
      },
      "brightness"_a = Pair(1, 1), "contrast"_a = Pair(1, 1), "saturation"_a = Pair(1, 1),
      "hue"_a = Pair(0, 0),
      R"(Brightness, contrast, saturation and hue in a random order. A number s is what torchvision calls s: factors
from max(0, 1 - s) to 1 + s, hues from -s to s. Those that change nothing are left out.

Errors  ValueError  as each of them
Source  torchvision's ColorJitter)");
  module.def("grayscale", &grayscale, R"(ITU-R 601-2 luma in all three channels.

Source  torchvision's rgb_to_grayscale)");
  module.def("solarize", &solarize, "threshold"_a = 128, R"(Inverts levels from `threshold` on.

Errors  ValueError  a threshold outside 0 to 256
Source  torchvision's solarize)");
  module.def("posterize", &posterize, "bits"_a, R"(Keeps the high bits of a level.

Errors  ValueError  bits outside 0 to 8
Source  torchvision's posterize)");
  module.def("equalize", &equalize, R"(Makes levels equally frequent, channel by channel.

Source  torchvision's equalize, which is Pillow's)");
  module.def("autocontrast", &autocontrast, R"(Stretches each channel over all levels.

Source  torchvision's autocontrast)");
  module.def("invert", &invert, "255 - level.");
  module.def(
      "gaussian_blur",
      [](int kernel_size, const NumberOrRange& sigma) {
        return gaussian_blur(kernel_size, range_of(sigma));
      },
      "kernel_size"_a, nb::arg("sigma").sig("(0.1, 2.0)") = Pair(0.1, 2),
      R"(Beyond its edges an image is mirrored.

Units   `sigma` in pixels
Errors  ValueError  a kernel size that is even or outside 1 to 63; a sigma outside 0.01 to 100
Source  torchvision's gaussian_blur)");
}

void bind_places(nb::module_& module) {
  module.def("flip", &flip, "probability"_a = 0.5, R"(Left to right.

Errors  ValueError  a probability outside 0 to 1)");
  module.def("vertical_flip", &vertical_flip, "probability"_a = 0.5, R"(Top to bottom.

Errors  ValueError  a probability outside 0 to 1)");
  module.def(
      "rotate",
      [](const NumberOrRange& degrees, const GivenInterpolation& how, const Fill& fill) {
        return rotate(range_of(degrees), sampling_of(how, fill));
      },
      "degrees"_a, nb::kw_only(), interpolation("nearest"), black(),
      R"(About the middle, counterclockwise: always by so many degrees, or (low, high) to draw from. `fill` is the level of what lies outside the image, or red, green and blue.

`interpolation` of all operations that move pixels: "nearest" and "bilinear" are torchvision's, "bicubic" is
Pillow's.

Errors  ValueError  a range that is empty or goes beyond -360 to 360
Source  torchvision's rotate)");
  module.def(
      "shear",
      [](const NumberOrRange& x, const NumberOrRange& y, const GivenInterpolation& how,
         const Fill& fill) { return shear(range_of(x), range_of(y), sampling_of(how, fill)); },
      "x"_a, "y"_a = Pair(0, 0), nb::kw_only(), interpolation("nearest"), black(),
      R"(About the middle, in degrees to the right and downwards, from -80 to 80: numbers, or (low, high) to draw from.

Errors  ValueError  a range that is empty or goes beyond
Source  torchvision's affine)");
  module.def(
      "translate",
      [](const NumberOrRange& x, const NumberOrRange& y, const GivenInterpolation& how,
         const Fill& fill) { return translate(range_of(x), range_of(y), sampling_of(how, fill)); },
      "x"_a, "y"_a, nb::kw_only(), interpolation("nearest"), black(),
      R"(By whole pixels: parts of the width and of the height, from -1 to 1: numbers, or (low, high) to draw from.

Errors  ValueError  a range that is empty or goes beyond
Source  torchvision's RandomAffine)");
  module.def(
      "affine",
      [](const NumberOrRange& degrees, const NumberOrRange& translate_x,
         const NumberOrRange& translate_y, const NumberOrRange& scale, const NumberOrRange& shear_x,
         const NumberOrRange& shear_y, const GivenInterpolation& how, const Fill& fill) {
        return affine({.degrees = range_of(degrees),
                       .translate_x = range_of(translate_x),
                       .translate_y = range_of(translate_y),
                       .scale = range_of(scale),
                       .shear_x = range_of(shear_x),
                       .shear_y = range_of(shear_y)},
                      sampling_of(how, fill));
      },
      nb::kw_only(), "degrees"_a = Pair(0, 0), "translate_x"_a = Pair(0, 0),
      "translate_y"_a = Pair(0, 0), "scale"_a = Pair(1, 1), "shear_x"_a = Pair(0, 0),
      "shear_y"_a = Pair(0, 0), interpolation("nearest"), black(),
      R"(All of these at once, about the middle: a rotation clockwise, parts of the width and of the height (rounded to
whole pixels), a scale, and degrees of shear. A number is itself always, (low, high) is drawn from.

Errors  ValueError  as rotate, shear and translate; a scale outside 0.01 to 100
Source  torchvision's RandomAffine)");
  module.def(
      "perspective",
      [](double distortion, const GivenInterpolation& how, const Fill& fill) {
        return perspective(distortion, sampling_of(how, fill));
      },
      "distortion"_a = 0.5, nb::kw_only(), interpolation("bilinear"), black(),
      R"(Moves each corner inwards by up to `distortion` of half the image.

Errors  ValueError  a distortion outside 0 to 1
Source  torchvision's RandomPerspective)");
}

void bind_choices(nb::module_& module) {
  module.def("random_apply", &random_apply, "probability"_a, "operations"_a,
             R"(All of them, in this order, or none.

Errors  ValueError  a probability outside 0 to 1)");
  module.def("random_choice", &random_choice, "operations"_a, "weights"_a = std::vector<double>(),
             R"(One of them, by weights where there are any.

Errors  ValueError  no operation; another number of weights, one below 0, or none above it)");
}

void bind_policies(nb::module_& module) {
  module.def(
      "trivial_augment_wide",
      [](int magnitudes, const GivenInterpolation& how, const Fill& fill) {
        return trivial_augment_wide(magnitudes, sampling_of(how, fill));
      },
      "magnitudes"_a = 31, nb::kw_only(), interpolation("nearest"), black(),
      R"(One of 14 operations at one of `magnitudes` strengths.

Errors  ValueError  magnitudes outside 2 to 1000
Source  Mueller, Hutter: TrivialAugment (ICCV 2021); torchvision's TrivialAugmentWide)");
  module.def(
      "rand_augment",
      [](int operations, int magnitude, int magnitudes, const GivenInterpolation& how,
         const Fill& fill) {
        return rand_augment(
            {.operations = operations, .magnitude = magnitude, .magnitudes = magnitudes},
            sampling_of(how, fill));
      },
      "operations"_a = 2, "magnitude"_a = 9, "magnitudes"_a = 31, nb::kw_only(),
      interpolation("nearest"), black(),
      R"(Some of 14 operations, all of one strength of `magnitudes`.

Errors  ValueError  operations outside 0 to 16, or a magnitude that is not one of them
Source  Cubuk, Zoph, Shlens, Le: RandAugment (2019); torchvision's RandAugment)");
  module.def(
      "auto_augment",
      [](const GivenInterpolation& how, const Fill& fill) {
        return auto_augment(sampling_of(how, fill));
      },
      nb::kw_only(), interpolation("nearest"), black(),
      R"(One of 25 pairs of operations, with their strengths and probabilities: the policy for ImageNet.

Source  Cubuk, Zoph, Mane, Vasudevan, Le: AutoAugment (CVPR 2019); torchvision's AutoAugment)");
  module.def(
      "aug_mix",
      [](int severity, int width, int depth, double alpha, bool all_operations,
         const GivenInterpolation& how, const Fill& fill) {
        return aug_mix({.severity = severity,
                        .width = width,
                        .depth = depth,
                        .alpha = alpha,
                        .all_operations = all_operations},
                       sampling_of(how, fill));
      },
      "severity"_a = 3, "width"_a = 3, "depth"_a = 0, "alpha"_a = 1.0, "all_operations"_a = true,
      nb::kw_only(), interpolation("bilinear"), black(),
      R"(A mixture of the image and of `width` chains of operations on it, of `depth` operations each; 0: 1 to 3 by
chance. `alpha` is that of the Dirichlet and the Beta distribution of weights.

Errors  ValueError  an option out of range
Source  Hendrycks et al.: AugMix (ICLR 2020); torchvision's AugMix)");
  module.def(
      "timm_rand_augment",
      [](std::string config, const std::optional<GivenInterpolation>& how, const Fill& fill) {
        TimmRandAugmentOptions options{.fill = fill_of(fill)};
        if (how) options.interpolation = how->value("interpolation");
        return timm_rand_augment(std::move(config), options);
      },
      "config"_a = "rand-m9-mstd0.5-inc1", nb::kw_only(), "interpolation"_a.none() = nb::none(),
      "fill"_a = RedGreenBlue{128, 128, 128},
      R"(timm's RandAugment with its own operations and strengths, from its strings.

Sections behind "rand", in any order: m magnitude (10), n operations (2), p the probability of each (0.5), mstd the
standard deviation of the magnitude (0; above 100: uniform from 0), mmax its upper bound (10), inc1 strengths that
all grow with it. `interpolation` is as Pillow does it; None: bilinear or bicubic, by a coin for each operation.

Errors  ValueError  a string that is not of this kind; names the section
Source  timm.data.auto_augment, 1.0)");
  module.def(
      "three_augment",
      [](double jitter, int kernel_size) {
        return three_augment({.color_jitter = jitter, .kernel_size = kernel_size});
      },
      "color_jitter"_a = 0.3, "kernel_size"_a = 13,
      R"(Greyscale, solarisation or a Gaussian blur, then colour jitter.

Errors  ValueError  as color_jitter and gaussian_blur
Source  Touvron, Cord, Jegou: DeiT III (ECCV 2022))");
}

}  // namespace

void bind_augmentations(nb::module_& module) {
  nb::class_<Augmentation>(
      module, "Augmentation",
      R"(One operation on an image with the ranges that it draws from, or a choice of operations. A value; for
augment_image().

Each operation is defined in whole numbers and gives the same levels on every machine. The definitions are those of
torchvision.transforms.v2.functional for u8 images, within one level. Grey images stay as they are where an
operation needs colours.)")
      .def("__repr__", shown_by("augmentation_text"), nb::sig("def __repr__(self) -> str"))
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
  bind_levels(module);
  bind_places(module);
  bind_choices(module);
  bind_policies(module);
  module.def(
      "augment_image",
      [](std::vector<Augmentation> operations, std::string field, const FieldNames& masks,
         int mask_fill) {
        return PyTransform{augment_image({.field = std::move(field),
                                          .operations = std::move(operations),
                                          .masks = masks.value(),
                                          .mask_fill = mask_fill})};
      },
      "operations"_a, nb::kw_only(), "field"_a = "image", nb::arg("masks").sig("()") = nb::tuple(),
      "mask_fill"_a = 255,
      R"(Does operations of penstock.augment to an image, one after another, or to each of several views of one: a view
draws its own numbers, and the first one draws those of a single image.

`masks` are fields that are moved with the image (flips, rotations, shears, translations, affine, perspective, those
of policies too) and stay as they are otherwise: the classes of its pixels. The nearest pixel is taken, whatever the
operation's interpolation; beside the image it is `mask_fill`.

Shapes  in and out: `field` u8 [H,W,C] or [views,H,W,C], of 1 or 3 channels and at most 32767 pixels a side; masks u8
        [H,W]
Errors  ValueError  no field name, or one twice; a mask_fill outside [0,255]; masks with operations that may mix images
                    (aug_mix); in Dataset.map: no such field, or one of another type or shape; masks of several views)");
}

}  // namespace penstock::python
