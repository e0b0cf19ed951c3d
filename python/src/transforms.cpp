// Crops, decoding, and a user's own Python function.
#include <cstring>
#include <utility>
#include <variant>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"
#include "python_object.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Size = std::variant<int, std::pair<int, int>>;
using Pair = std::pair<double, double>;

ImageSize size_of(const Size& size) {
  if (const int* side = std::get_if<int>(&size)) return *side;
  const auto& [height, width] = std::get<std::pair<int, int>>(size);
  return {height, width};
}

// ---- a Python function ----

std::string listed(const ConstTensorView& view) {
  return std::string(name_of(view.dtype())) + " " + view.shape().to_string();
}

void write(nb::handle value, const FieldSpec& field, const TensorView& out) {
  const HostArray array(value, field);
  const ConstTensorView& found = array.view();
  if (found.dtype() != out.dtype() || found.shape() != out.shape())
    throw std::invalid_argument("returned " + listed(found) + " for '" + field.name +
                                "', expected " + listed(out));
  if (out.byte_size() != 0) std::memcpy(out.raw(), found.raw(), out.byte_size());
}

// What the function returned, taken apart: one value, one for each output, or a mapping of them.
void write_all(nb::handle result, std::span<const FieldSpec> fields,
               std::span<const TensorView> out) {
  if (PyDict_Check(result.ptr()) != 0) {
    if (nb::len(result) != fields.size())
      throw std::invalid_argument("returned a dict of " + std::to_string(nb::len(result)) +
                                  " fields, expected " + std::to_string(fields.size()));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      PyObject* value =
          PyDict_GetItemString(result.ptr(), fields[i].name.c_str());  // borrowed, or null
      if (value == nullptr)
        throw std::invalid_argument("returned a dict without '" + fields[i].name + "'");
      write(value, fields[i], out[i]);
    }
  } else if (fields.size() == 1 && PyTuple_Check(result.ptr()) == 0) {
    write(result, fields[0], out[0]);
  } else if (PyTuple_Check(result.ptr()) == 0 || nb::len(result) != fields.size()) {
    throw std::invalid_argument(
        "returned " + nb::cast<std::string>(nb::str(nb::repr(result.type()))) +
        ", expected a tuple or a dict of " + std::to_string(fields.size()) + " arrays");
  } else {
    for (std::size_t i = 0; i < fields.size(); ++i) write(result[i], fields[i], out[i]);
  }
}

// The function, and numpy's random generator if it wants one, called with copies: whatever it keeps
// stays valid.
class PythonFunction {
 public:
  PythonFunction(nb::object function, nb::object make_generator, std::vector<FieldSpec> outputs)
      : function_(std::make_shared<Kept>(std::move(function))), outputs_(std::move(outputs)) {
    if (!make_generator.is_none())
      make_generator_ = std::make_shared<Kept>(std::move(make_generator));
  }

  void operator()(std::span<const ConstTensorView> in, std::span<const TensorView> out,
                  Random& random) const {
    const nb::gil_scoped_acquire gil;
    try {
      nb::list arguments;
      for (const ConstTensorView& view : in) arguments.append(copy_to_numpy(view));
      nb::dict named;
      if (make_generator_) {
        const std::uint64_t low =
            random.u64();  // one after the other: the order is part of the key
        const std::uint64_t high = random.u64();
        named["rng"] = taken(make_generator_)(low, high);
      }
      const nb::object result = taken(function_)(*arguments, **named);
      write_all(result, outputs_, out);
    } catch (nb::python_error& error) {
      throw PythonException(error);
    }
  }

 private:
  static nb::object taken(const ObjectRef& kept) {
    nb::object object = object_of(kept);
    if (!object.is_valid()) throw Error("no function can be called while the interpreter ends");
    return object;
  }

  ObjectRef function_;
  ObjectRef make_generator_;
  std::vector<FieldSpec> outputs_;
};

PyTransform map_python(nb::object function, std::vector<std::string> inputs, const Fields& outputs,
                       std::string name, nb::object make_generator) {
  MapFunctionOptions options{
      .name = std::move(name), .inputs = std::move(inputs), .outputs = outputs.value()};
  (void)numpy();  // here rather than in every sample
  for (const FieldSpec& field : options.outputs) (void)numpy_dtype(field.dtype);
  PythonFunction call(std::move(function), std::move(make_generator), options.outputs);
  return {map_function(std::move(options), std::move(call))};
}

void bind_crops(nb::module_& module) {
  nb::class_<Crop>(module, "Crop",
                   "How to choose a region of an image, and the size it is resized to.")
      .def_prop_ro(
          "size", [](const Crop& self) { return std::pair(self.size().height, self.size().width); },
          "Height and width of what it makes, in pixels.")
      .def("__repr__", &Crop::to_string);

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
Source  torchvision's Resize followed by CenterCrop.)");
  module.def("resize_to", &resize_to, "height"_a, "width"_a, R"(The whole image, stretched.

Errors  ValueError  a size below 1)");
}

}  // namespace

void bind_transforms(nb::module_& module) {
  bind_crops(module);
  nb::class_<PyTransform>(module, "Transform", "One record becomes one sample. For Dataset.map.")
      .def("__repr__", [](const PyTransform& self) { return self.transform->describe(); });

  module.def(
      "decode_jpeg",
      [](const Crop& crop, float flip, std::string field, double max_megapixels, bool exif,
         std::string geometry) {
        return PyTransform{decode_jpeg({.field = std::move(field),
                                        .crop = crop,
                                        .flip = flip,
                                        .max_megapixels = max_megapixels,
                                        .exif = exif,
                                        .geometry = std::move(geometry)})};
      },
      nb::kw_only(), "crop"_a, "flip"_a = 0.0F, "field"_a = "image", "max_megapixels"_a = 200.0,
      "exif"_a = true, "geometry"_a = "",
      R"(Decodes the part of an image that a crop needs, and resizes it into the sample's place.

`flip` is the probability of mirroring left to right. A header that claims more than
`max_megapixels` is a fault. With `exif`, JPEGs are turned upright as their orientation
says. `geometry`, when not empty, names one more field: x, y, width, height of the region;
flipped; width and height of the upright image; orientation.

JPEG, PNG and WebP, recognised by their signatures.

Shapes  in: `field` u8 [?]; out: `field` u8 [H,W,3] RGB, and `geometry` i32 [8] if asked for.
Errors  ValueError  an empty field name, flip outside [0,1], a limit that is not positive)");

  module.def("_map_python", &map_python, "function"_a, "inputs"_a, "outputs"_a, "name"_a,
             "make_generator"_a.none());
}

}  // namespace penstock::python
