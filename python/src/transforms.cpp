// Decoding, padding, and a user's own Python function.
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "colors.hpp"
#include "host_array.hpp"
#include "python_object.hpp"
#include "python_transform.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// ---- a Python function ----

std::string listed(const ConstTensorView& view) {
  return std::string(name_of(view.dtype())) + " " + view.shape().to_string();
}

void write(nb::handle value, const FieldSpec& field, Outputs outputs, std::size_t output) {
  const HostArray array(value, field);
  const ConstTensorView& found = array.view();
  if (found.dtype() != field.dtype || !fits(found.shape().extents(), field.shape))
    throw std::invalid_argument("returned " + listed(found) + " for '" + field.name +
                                "', expected " + std::string(name_of(field.dtype)) + " " +
                                field.shape.to_string());
  const TensorView& out =
      field.shape.is_dynamic() ? outputs.resize(output, found.shape()) : outputs[output];
  if (out.byte_size() != 0) std::memcpy(out.raw(), found.raw(), out.byte_size());
}

// What the function returned, taken apart: one value, one for each output, or a mapping of them.
void write_all(nb::handle result, std::span<const FieldSpec> fields, Outputs out) {
  if (PyDict_Check(result.ptr()) != 0) {
    if (nb::len(result) != fields.size())
      throw std::invalid_argument("returned a dict of " + std::to_string(nb::len(result)) +
                                  " fields, expected " + std::to_string(fields.size()));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      PyObject* value =
          PyDict_GetItemString(result.ptr(), fields[i].name.c_str());  // borrowed, or null
      if (value == nullptr)
        throw std::invalid_argument("returned a dict without '" + fields[i].name + "'");
      write(value, fields[i], out, i);
    }
  } else if (fields.size() == 1 && PyTuple_Check(result.ptr()) == 0) {
    write(result, fields[0], out, 0);
  } else if (PyTuple_Check(result.ptr()) == 0 || nb::len(result) != fields.size()) {
    throw std::invalid_argument(
        "returned " + nb::cast<std::string>(nb::str(nb::repr(result.type()))) +
        ", expected a tuple or a dict of " + std::to_string(fields.size()) + " arrays");
  } else {
    for (std::size_t i = 0; i < fields.size(); ++i) write(result[i], fields[i], out, i);
  }
}

// The function, and numpy's random generator if it wants one, called with copies: whatever it keeps
// stays valid.
class PythonFunction {
 public:
  PythonFunction(ObjectRef function, nb::object make_generator, std::vector<FieldSpec> outputs,
                 std::shared_ptr<CallTimes> times)
      : function_(std::move(function)), outputs_(std::move(outputs)), times_(std::move(times)) {
    if (!make_generator.is_none())
      make_generator_ = std::make_shared<Kept>(std::move(make_generator));
  }

  void operator()(std::span<const ConstTensorView> in, Outputs out, Random& random) const {
    const TimedGil gil(*times_);
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
      rethrow(error);
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
  std::shared_ptr<CallTimes> times_;
};

PyTransform map_python(nb::object function, std::vector<std::string> inputs, const Fields& outputs,
                       std::string name, nb::object make_generator) {
  MapFunctionOptions options{
      .name = std::move(name), .inputs = std::move(inputs), .outputs = outputs.value()};
  (void)numpy();  // here rather than in every sample
  for (const FieldSpec& field : options.outputs) (void)numpy_dtype(field.dtype);
  const bool takes_rng = !make_generator.is_none();
  const auto kept = std::make_shared<Kept>(std::move(function));
  const auto times = std::make_shared<CallTimes>();
  PythonFunction call(kept, std::move(make_generator), options.outputs, times);
  TransformPtr made = map_function(options, std::move(call));
  return {std::make_shared<PythonTransform>(std::move(made), std::move(options), kept, takes_rng,
                                            times)};
}

// ---- decoding ----

struct PyJpegStats {
  std::shared_ptr<JpegStats> stats;
};

void bind_jpeg(nb::module_& module) {
  using Path = std::filesystem::path;
  nb::class_<PyJpegIndex>(module, "JpegIndex",
                          "An index of JPEGs: MemoryJpegIndex or SharedJpegIndex.")
      .def("__bool__", [](const PyJpegIndex&) { return true; })
      .def("__len__", [](const PyJpegIndex& self) { return self.store->size(); })
      .def_prop_ro(
          "nbytes", [](const PyJpegIndex& self) { return self.store->bytes(); },
          "What the indices take: memory, or room in the file.")
      .def(
          "load_bytes",
          [](const PyJpegIndex& self, const nb::bytes& made) {
            const std::span<const char> bytes(made.c_str(), made.size());
            return without_gil(
                [&] { return self.store->load_bytes(std::as_bytes(bytes), "these bytes"); });
          },
          "made"_a, R"(Adds what MemoryJpegIndex.to_bytes made; returns how many.

Errors  Error  the bytes are of another kind)");
  nb::class_<PyMemoryJpegIndex, PyJpegIndex>(
      module, "MemoryJpegIndex",
      R"(An index of JPEGs, filled when they are first decoded; later only the crop is decoded. For
decode_image(index=...). Neither the pixels nor the faults depend on it.

Threads  any number.)")
      .def(
          "__init__",
          [](PyMemoryJpegIndex* self, std::size_t max_bytes) {
            auto made = std::make_shared<MemoryJpegIndex>(max_bytes);
            new (self) PyMemoryJpegIndex{{made}, made};
          },
          "max_bytes"_a = std::size_t{1} << 30,
          "`max_bytes` that the indices may take; once full, it takes no more.")
      .def(ExplainedConstructor())
      .def(
          "load",
          [](const PyMemoryJpegIndex& self, const Path& file) {
            return interruptibly([&] { return load_jpeg_index(*self.memory, file.string()); });
          },
          "file"_a,
          R"(Adds what save() wrote, or all *.jpegindex files of a folder, which may be s3://bucket/prefix; returns how many.

Errors  Error  there is no such file, it cannot be read, or is of another kind)")
      .def(
          "save",
          [](const PyMemoryJpegIndex& self, const Path& file) {
            without_gil([&] { self.memory->save(file); });
          },
          "file"_a, R"(Writes all of it under another name, then renames it.

Errors  Error  the file cannot be written)")
      .def(
          "to_bytes",
          [](const PyMemoryJpegIndex& self) {
            const auto all = without_gil([&] { return self.memory->to_bytes(); });
            return nb::bytes(all.data(), all.size());
          },
          "What save() writes.");
  nb::class_<PySharedJpegIndex, PyJpegIndex>(
      module, "SharedJpegIndex",
      R"(An index of JPEGs in a file that all processes of the machine fill and use at the same time: with
a process for each GPU, what one has decoded is known to all in the next epoch. For
decode_image(index=...). The file stays for the next run. A process may be killed at any moment.

Threads  any number, in any number of processes.)")
      .def(
          "__init__",
          [](PySharedJpegIndex* self, const Path& file, std::size_t max_bytes) {
            new (self) PySharedJpegIndex{{std::make_shared<SharedJpegIndex>(file, max_bytes)}};
          },
          "file"_a, "max_bytes"_a = std::size_t{1} << 30,
          R"(Opens the file, or makes it: in /dev/shm, or on a local disk. It takes room as it fills, up to
`max_bytes`, of about 400 a photograph; one that is there keeps its own limit.

Errors  Error  the file cannot be made or mapped, or is of another kind)")
      .def(ExplainedConstructor());

  nb::class_<PyJpegStats>(module, "JpegStats",
                          "Counts which decoder took the JPEGs. For decode_image(stats=...).")
      .def("__repr__",
           [](nb::handle self) {
             return "JpegStats(" + nb::cast<std::string>(nb::str(nb::repr(self.attr("counts")()))) +
                    ")";
           })
      .def("__init__",
           [](PyJpegStats* self) { new (self) PyJpegStats{std::make_shared<JpegStats>()}; })
      .def(
          "counts",
          [](const PyJpegStats& self) {
            const JpegCounts counts = self.stats->counts();
            nb::dict all;
            all["own"] = counts.own;
            all["indexed"] = counts.indexed;
            if (counts.tolerated != 0) all["tolerated"] = counts.tolerated;
            if (counts.on_gpu != 0) all["on_gpu"] = counts.on_gpu;
            for (std::size_t i = 0; i < kJpegFallbacks; ++i) {
              const std::string name(to_string(static_cast<JpegFallback>(i)));
              if (counts.libjpeg[i] != 0) all[name.c_str()] = counts.libjpeg[i];
            }
            return all;
          },
          nb::sig("def counts(self) -> dict[str, int]"),
          R"("own": by Penstock's own decoder, "indexed": those of them with an index; "tolerated", if any:
those with warnings; "on_gpu", if any: by GPUs, beside these; then by libjpeg-turbo, one entry per reason that occurred.)");
}

void bind_images(nb::module_& module) {
  module.def(
      "decode_image",
      [](const CropGiven& crop, float flip, std::string field, double max_megapixels, bool exif,
         std::string geometry, const FieldNames& masks, int mask_fill,
         const std::string& mask_dtype, const Choice<JpegDecoder>& decoder,
         const Choice<ResizeFilter>& filter, bool scaled, const std::optional<PyJpegIndex>& index,
         const std::optional<PyJpegStats>& stats, const std::optional<Levels>& background,
         int channels, bool tolerant, const std::string& dtype) {
        return PyTransform{decode_image({.field = std::move(field),
                                         .crop = crop.value(),
                                         .flip = flip,
                                         .max_megapixels = max_megapixels,
                                         .exif = exif,
                                         .channels = channels,
                                         .dtype = parse_dtype(dtype),
                                         .tolerant = tolerant,
                                         .background = color_of(background),
                                         .geometry = std::move(geometry),
                                         .masks = masks.value(),
                                         .mask_fill = mask_fill,
                                         .mask_dtype = parse_dtype(mask_dtype),
                                         .decoder = decoder.value("decoder"),
                                         .filter = filter.value("filter"),
                                         .scaled = scaled,
                                         .index = index ? index->store : nullptr,
                                         .stats = stats ? stats->stats : nullptr})};
      },
      nb::kw_only(), "crop"_a, "flip"_a = 0.0F, "field"_a = "image", "max_megapixels"_a = 200.0,
      "exif"_a = true, "geometry"_a = "", nb::arg("masks").sig("()") = nb::tuple(),
      "mask_fill"_a = 255, "mask_dtype"_a = "u8", "decoder"_a = Choice<JpegDecoder>{"reference"},
      "filter"_a = Choice<ResizeFilter>{"bilinear"}, "scaled"_a = false,
      "index"_a.none() = nb::none(), "stats"_a.none() = nb::none(),
      "background"_a.none() = nb::none(), "channels"_a = 3, "tolerant"_a = false, "dtype"_a = "u8",
      R"(Decodes the part of an image that a crop needs, and resizes it into the sample's place.

`flip` is the probability of mirroring left to right. A header that claims more than
`max_megapixels` is a fault. With `exif`, JPEGs are turned upright as their orientation
says. PNGs and WebPs that are transparent somewhere are composited over a `background`, one
level or (red, green, blue), as Pillow's alpha_composite; without one their alpha is dropped.
`geometry`, when not empty, names one more field: x, y, width, height of what the sample covers
of the image, fill included; flipped; width and height of the upright image; orientation.

`decoder`: "reference" is Penstock's own, which decodes little but the crop and smoothes
chroma, as Pillow does; "fast" is the same and repeats chroma; "libjpeg" is libjpeg-turbo
alone, with the pixels of "fast". `filter` is what resizes, antialiased; "pillow_bilinear" and
"pillow_bicubic" give the bytes of torchvision's transforms on Pillow's images (until Pillow 12), and
are slower; "nearest" is Pillow's NEAREST, which mixes no two pixels. `scaled` decodes at 1/2, 1/4 or 1/8 where the region allows it: for photographs of many
megapixels. An `index` makes all epochs but the first faster.

`channels` 1 makes grey images of all, by Pillow's convert("L") of the crop. With `tolerant`, JPEGs that
libjpeg-turbo only warns about are taken, as Pillow takes them (bytes between segments, damaged data; what is
missing before a marker becomes grey), and counted by `stats`; else they are faults. A file that ends too
early is one always.

`dtype` "u16" takes PNGs of 16 bits a level, grey or RGB, with all their bits (depth, medical images); others are
faults. A level f of a fill is 257 f. "bilinear" and "bicubic" are computed in doubles and rounded once;
"pillow_bilinear" gives the levels of Pillow's "I;16". What comes next is a function of your own.

`masks` are fields that are cropped and flipped with the image, and of which no two values are mixed (Pillow's
NEAREST): the classes of its pixels. Each is a PNG with a palette or grey levels, whose numbers are taken as they are
stored, or decoded, and as large as the upright image. What is beside the image is `mask_fill`. `mask_dtype` is that of
PNGs: for numbers of 16 bits "u16" or larger; "i64" is what torch's losses take.

JPEG, PNG and WebP, recognised by their signatures.

Shapes  in: `field` u8 [?], each mask u8 [?], or whole numbers [H,W] or [H,W,1]; out: `field`, `dtype` [H,W,channels],
        `geometry` i32 [8] if asked for, each mask [H,W] of `mask_dtype` or, if decoded, its type
Errors  ValueError  an empty field name, two fields of one name, flip outside [0,1], a limit that is not positive, a
                    level outside [0,255], other channels than 1 and 3, another dtype, "pillow_bicubic" or a background with
                    "u16"; in Dataset.map: no such field, another type
                    or shape, or a mask whose type has no `mask_fill`)");

  nb::class_<ImageView>(
      module, "ImageView",
      R"(One field of decode_views: a crop of the image, or `count` crops that are drawn alike.

`flip`, `filter` and `geometry` are those of decode_image. With a `count` the field, and its
geometry, have a first dimension of that many.)")
      .def(
          "__init__",
          [](ImageView* self, const CropGiven& crop, int count, float flip,
             const Choice<ResizeFilter>& filter, std::string geometry) {
            new (self) ImageView{.field = {},
                                 .crop = crop.value(),
                                 .count = count,
                                 .flip = flip,
                                 .filter = filter.value("filter"),
                                 .geometry = std::move(geometry)};
          },
          "crop"_a, nb::kw_only(), "count"_a = 0, "flip"_a = 0.0F,
          "filter"_a = Choice<ResizeFilter>{"bilinear"}, "geometry"_a = "")
      .def(ExplainedConstructor())
      .def_ro("crop", &ImageView::crop, "Which part, and its size.")
      .def_ro("count", &ImageView::count, "Crops in the field; 0: one, without a first dimension.")
      .def_ro("flip", &ImageView::flip, "Probability of mirroring, drawn for each crop.")
      .def(
          "__reduce__",
          [](const ImageView& self) {
            nb::dict options;
            options["count"] = self.count;
            options["flip"] = self.flip;
            options["filter"] = name_of(self.filter);
            options["geometry"] = self.geometry;
            return reduced(nb::type<ImageView>(), nb::make_tuple(self.crop), options);
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__repr__", [](const ImageView& self) {
        return "ImageView(" + self.crop.to_string() + ", count=" + std::to_string(self.count) + ")";
      });

  module.def(
      "decode_views",
      [](const ViewsGiven& views, std::string field, double max_megapixels, bool exif,
         const Choice<JpegDecoder>& decoder, bool scaled, const std::optional<PyJpegIndex>& index,
         const std::optional<PyJpegStats>& stats, const std::optional<Levels>& background,
         int channels, bool tolerant, const std::string& dtype) {
        return PyTransform{decode_views({.field = std::move(field),
                                         .views = views.value(),
                                         .max_megapixels = max_megapixels,
                                         .exif = exif,
                                         .channels = channels,
                                         .dtype = parse_dtype(dtype),
                                         .tolerant = tolerant,
                                         .background = color_of(background),
                                         .decoder = decoder.value("decoder"),
                                         .scaled = scaled,
                                         .index = index ? index->store : nullptr,
                                         .stats = stats ? stats->stats : nullptr})};
      },
      "views"_a, nb::kw_only(), "field"_a = "image", "max_megapixels"_a = 200.0, "exif"_a = true,
      "decoder"_a = Choice<JpegDecoder>{"reference"}, "scaled"_a = false,
      "index"_a.none() = nb::none(), "stats"_a.none() = nb::none(),
      "background"_a.none() = nb::none(), "channels"_a = 3, "tolerant"_a = false, "dtype"_a = "u8",
      R"(Makes several crops of one image: those of SimCLR or DINO, or a training and an evaluation crop
side by side. The image is decoded once, as far as its crops reach.

    ps.decode_views({
        "global": ps.ImageView(ps.random_resized_crop(224, scale=(0.4, 1)), count=2, flip=0.5),
        "local": ps.ImageView(ps.random_resized_crop(96, scale=(0.05, 0.4)), count=8, flip=0.5)})

Each crop draws from a sequence of random numbers of its own: crop i of the view at position k has
number 256 k + i. A view that is added at the end, or a larger count, changes no other crop. The
pixels are those of decode_image for the same region, and the options are its own; `scaled` takes the
largest scale that suits all crops.

Shapes  in: `field` u8 [?]; out, for each view: `dtype` [count,H,W,channels] or [H,W,channels], and its geometry, i32
        [count,8] or [8], if asked for.
Errors  ValueError  no views or more than 256; an empty name, or one twice; a count outside [0,256];
                    flip outside [0,1]; a limit that is not positive; a level outside [0,255])");

  module.def(
      "crop_image",
      [](const CropGiven& crop, float flip, std::string field, const Choice<ResizeFilter>& filter,
         std::string geometry, const FieldNames& masks, int mask_fill,
         const std::string& mask_dtype) {
        return PyTransform{crop_image({.field = std::move(field),
                                       .crop = crop.value(),
                                       .flip = flip,
                                       .filter = filter.value("filter"),
                                       .geometry = std::move(geometry),
                                       .masks = masks.value(),
                                       .mask_fill = mask_fill,
                                       .mask_dtype = parse_dtype(mask_dtype)})};
      },
      nb::kw_only(), "crop"_a, "flip"_a = 0.0F, "field"_a = "image",
      "filter"_a = Choice<ResizeFilter>{"bilinear"}, "geometry"_a = "",
      nb::arg("masks").sig("()") = nb::tuple(), "mask_fill"_a = 255, "mask_dtype"_a = "u8",
      R"(decode_image for images that are decoded already, such as arrays of CIFAR's: the same crops, the
same random numbers and the same pixels; the same masks.

Shapes  in: `field` u8 or u16 [H,W,C], with C 1 or 3; H and W may differ from record to record. out: `field`
        [H,W,C] of the crop's size and that type, `geometry` i32 [8] if asked for, and masks as of decode_image.
Errors  ValueError  an empty field name, two fields of one name, flip outside [0,1]; in Dataset.map: no such field, or another
                    type or shape; a fill of several levels for images of one channel)");
}

}  // namespace

void bind_transforms(nb::module_& module) {
  bind_jpeg(module);
  nb::class_<PyTransform>(module, "Transform", "One record becomes one sample. For Dataset.map.")
      .def("__repr__", [](const PyTransform& self) { return self.transform->description().text; })
      .def(
          "__reduce__", [](const PyTransform& self) { return reduce_transform(*self.transform); },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def_static(
          "_unpickle",
          [](std::string name, std::string options) {
            return PyTransform{plan_registry().make_transform(
                {.name = std::move(name), .options = std::move(options), .text = {}})};
          },
          "name"_a, "options"_a);

  module.def(
      "pad",
      [](std::string field, std::int64_t to, double value, bool truncate, std::string lengths) {
        return PyTransform{pad({.field = std::move(field),
                                .to = to,
                                .value = value,
                                .truncate = truncate,
                                .lengths = std::move(lengths)})};
      },
      "field"_a, "to"_a, nb::kw_only(), "value"_a = 0.0, "truncate"_a = false, "lengths"_a = "",
      R"(Makes a field of shape (None, ...) one of shape (to, ...): tokens of texts, steps of trajectories.

`value` is that of the elements that are added; f16 and bf16 take 0 only. What is longer is a fault, or
is cut with `truncate`. `lengths`, when not empty, names one more field: i64 (), the length before
padding, at most `to`.

Errors  ValueError  `to` below 1; in Dataset.map: no such field, or another shape; a value that its type
                    has not)");
  bind_images(module);

  nb::class_<TranscodedJpeg>(module, "TranscodedJpeg",
                             "A JPEG that decodes faster, or why the file was kept unchanged.")
      .def_prop_ro(
          "bytes",
          [](const TranscodedJpeg& self) {
            return nb::bytes(self.bytes.data(), self.bytes.size());
          },
          "The whole file; the given one if it was kept unchanged.")
      .def_ro("kept", &TranscodedJpeg::kept,
              "Why it was kept unchanged; empty if it was transcoded.")
      .def_ro("interval", &TranscodedJpeg::interval, "MCUs between two restart markers.")
      .def_ro("mcus_in_row", &TranscodedJpeg::mcus_in_row);
  module.def(
      "transcode_jpeg",
      [](const nb::bytes& jpeg, int interval, double max_growth) {
        const auto* const data = static_cast<const std::byte*>(jpeg.data());
        const std::span bytes(data, jpeg.size());
        auto result = without_gil([&] {
          return transcode_jpeg(bytes, {.interval = interval, .max_growth = max_growth});
        });
        if (!result) throw std::invalid_argument(result.fault().reason);
        return std::move(*result);
      },
      "jpeg"_a, nb::kw_only(), "interval"_a = 8, "max_growth"_a = 0.01,
      R"(Transcodes a JPEG losslessly, with restart markers that divide each row of MCUs
evenly, as near to every `interval` of them as possible, and with Huffman tables made for it: a
decoder can then begin in the middle of a row. Every coefficient is compared; any reader reads
it, to the same pixels. It is kept unchanged if it would grow by more than `max_growth`.

Threads  any number; the GIL is released.
Errors   ValueError  no JPEG, or one that libjpeg finds an error in; an interval below 1)");

  module.def("_map_python", &map_python, "function"_a, "inputs"_a, "outputs"_a, "name"_a,
             "make_generator"_a.none());
}

}  // namespace penstock::python
