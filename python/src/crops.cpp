// Which part of an image a sample shows.
#include <utility>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "colors.hpp"
#include "size_given.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Size = SizeGiven;
using Pair = std::pair<double, double>;

}  // namespace

void bind_crops(nb::module_& module) {
  nb::class_<Crop>(module, "Crop",
                   "How to choose a region of an image, and the size it is resized to.")
      .def_prop_ro(
          "size", [](const Crop& self) { return std::pair(self.size().height, self.size().width); },
          "Height and width of what it makes, in pixels.")
      .def("__repr__", &Crop::to_string)
      .def(
          "__reduce__",
          [](const Crop& self) {
            return nb::make_tuple(nb::module_::import_("penstock._plan").attr("unpickle_crop"),
                                  nb::make_tuple(self.to_json()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def_static(
          "_unpickle", [](const std::string& json) { return Crop::from_json(json); }, "json"_a)
      .def(
          "__eq__",
          [](const Crop& self, nb::handle other) {
            Crop another;
            return nb::try_cast(other, another) && self == another;
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Crop& self) { return std::hash<std::string>()(self.to_json()); });

  module.def(
      "random_resized_crop",
      [](const Size& size, const Pair& scale, const Pair& ratio) {
        return random_resized_crop(size_of(size), {.scale = {scale.first, scale.second},
                                                   .ratio = {ratio.first, ratio.second}});
      },
      "size"_a, nb::kw_only(), nb::arg("scale").sig("(0.08, 1.0)") = Pair(0.08, 1.0),
      nb::arg("ratio").sig("(3 / 4, 4 / 3)") = Pair(3.0 / 4, 4.0 / 3),
      R"(A random part of the image, resized: the crop of training.

Units   `size` in pixels, one number for a square or (height, width); `scale` is the share
        of the image's area, `ratio` is width over height.
Errors  ValueError  a size below 1, or a range that is empty or not positive
Source  torchvision's RandomResizedCrop.)");
  module.def(
      "center_crop",
      [](const Size& size, int resize) { return center_crop(size_of(size), {.resize = resize}); },
      "size"_a, nb::kw_only(), "resize"_a = 256,
      R"(The middle of the image after resizing its shorter side to `resize`: the crop of
validation. Done as one region and one resize; nothing outside the crop is decoded.

Units   pixels; `size` is one number for a square or (height, width).
Errors  ValueError  a size below 1, or one larger than `resize`
Source  torchvision's Resize followed by CenterCrop, with their whole numbers: the longer side is cut
        to one, an offset of a half is rounded to the even one.)");
  module.def(
      "five_crops",
      [](const Size& size, int resize) { return five_crops(size_of(size), {.resize = resize}); },
      "size"_a, nb::kw_only(), "resize"_a = 256,
      R"(The four corners and the middle of the image after resizing its shorter side to `resize`, for testing: upper
left, upper right, lower left, lower right, middle. Makes a field [5,H,W,channels].

Units   pixels; `size` is one number for a square or (height, width).
Errors  ValueError  a size below 1, or one larger than `resize`
Source  torchvision's Resize followed by FiveCrop, with their sizes and offsets.)");
  module.def(
      "ten_crops",
      [](const Size& size, int resize) { return ten_crops(size_of(size), {.resize = resize}); },
      "size"_a, nb::kw_only(), "resize"_a = 256,
      R"(The five of five_crops, and the five of the mirrored image behind them: [10,H,W,channels].

Units   pixels; `size` is one number for a square or (height, width).
Errors  ValueError  a size below 1, or one larger than `resize`
Source  torchvision's Resize followed by TenCrop, without its vertical_flip.)");
  module.def("resize_to", &resize_to, "height"_a, "width"_a, R"(The whole image, stretched.

Errors  ValueError  a size below 1)");
  module.def(
      "letterbox",
      [](const Size& size, const Levels& fill) {
        return letterbox(size_of(size), {.fill = color_of(fill)});
      },
      "size"_a, nb::kw_only(), nb::arg("fill").sig("114") = Levels(114),
      R"(The whole image as large as it fits with its aspect kept, in the middle; the rest is filled.
Small images are enlarged.

Units   pixels; `size` is one number for a square or (height, width); `fill` is one level, or (red,
        green, blue), from 0 to 255.
Errors  ValueError  a size below 1, or a level outside [0, 255]
Source  YOLO's letterbox (ultralytics' LetterBox).)");
  module.def(
      "cover_crop",
      [](const Size& size, const Choice<CropPosition>& position) {
        return cover_crop(size_of(size), {.position = position.value("position")});
      },
      "size"_a, nb::kw_only(), "position"_a = Choice<CropPosition>{"center"},
      R"(The image resized, with its aspect kept, so that it just covers the sample; what is too much in one
direction is cut off, on both sides as much ("center") or at a random position ("random"). Small images are
enlarged. Nothing outside the crop is decoded.

Units   pixels; `size` is one number for a square or (height, width).
Errors  ValueError  a size below 1; another position
Source  torchvision's Resize to the smallest size that covers the crop, the longer side cut to a whole
        number, followed by CenterCrop or RandomCrop.)");
  module.def(
      "random_crop",
      [](const Size& size, int padding, const Levels& fill, bool pad_if_needed) {
        return random_crop(
            size_of(size),
            {.padding = padding, .fill = color_of(fill), .pad_if_needed = pad_if_needed});
      },
      "size"_a, nb::kw_only(), "padding"_a = 0, nb::arg("fill").sig("0") = Levels(0),
      "pad_if_needed"_a = false,
      R"(A random part of the image as it is, not resized, after padding on all sides: the crop of CIFAR,
random_crop(32, padding=4). An image that is smaller than the crop even so is a fault; with
`pad_if_needed` it is padded by what is missing, on both sides.

Units   pixels; `size` is one number for a square or (height, width); `fill` is one level, or (red,
        green, blue), from 0 to 255.
Errors  ValueError  a size below 1; a padding below 0, or of the crop's height or width and more; a
                    level outside [0, 255]
Source  torchvision's RandomCrop.)");
  module.def(
      "scale_jitter",
      [](const Size& size, const Pair& scale, const Levels& fill) {
        return scale_jitter(size_of(size),
                            {.scale = {scale.first, scale.second}, .fill = color_of(fill)});
      },
      "size"_a, nb::kw_only(), nb::arg("scale").sig("(0.1, 2.0)") = Pair(0.1, 2.0),
      nb::arg("fill").sig("0") = Levels(0),
      R"(Large-scale jitter: the image at a random size with its aspect kept; a random part of that in the
directions in which it is larger than the sample. It lies in the upper left corner; the rest is filled.

Units   `size` in pixels, one number for a square or (height, width); `scale` is that of the largest
        size at which the whole image fits; `fill` is one level, or (red, green, blue), from 0 to 255.
Errors  ValueError  a size below 1; a range that is empty or not positive; a level outside [0, 255]
Source  torchvision's detection reference: ScaleJitter and FixedSizeCrop.)");
}

}  // namespace penstock::python
