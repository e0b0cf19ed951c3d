// Batches of images of similar aspects.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

nb::tuple pair_of(ImageSize size) { return nb::make_tuple(size.height, size.width); }

// Rows of height and width: an array, or a list of pairs.
std::vector<ImageSize> sizes_of(const std::string& name, nb::handle value) {
  static_assert(sizeof(ImageSize) == 2 * sizeof(std::int32_t));
  const FieldSpec field{.name = name, .dtype = DType::i32, .shape = {kDynamic, 2}};
  const HostArray array(value, field);
  const ConstTensorView& view = array.view();
  if (view.dtype() != DType::i32 || !fits(view.shape().extents(), field.shape))
    throw std::invalid_argument(
        fmt::format("{}: expected height and width of each, i32 [?,2], found {} {}", name,
                    name_of(view.dtype()), view.shape().to_string()));
  std::vector<ImageSize> sizes(static_cast<std::size_t>(view.shape()[0]));
  if (!sizes.empty()) std::memcpy(sizes.data(), view.raw(), view.byte_size());
  return sizes;
}

nb::object array_of(const std::vector<ImageSize>& sizes) {
  return copy_to_numpy({reinterpret_cast<const std::byte*>(sizes.data()),
                        DType::i32,
                        {static_cast<std::int64_t>(sizes.size()), 2}});
}

TransformPtr transform_of(nb::handle map, ImageSize shape) {
  const nb::object made = map(pair_of(shape));
  if (nb::isinstance<PyTransform>(made)) return nb::cast<const PyTransform&>(made).transform;
  throw nb::type_error(("batch_by_aspect: map(shape) returns a Transform such as "
                        "decode_image(crop=cover_crop(shape)), found " +
                        repr_of(made) + hint_at(made))
                           .c_str());
}

Dataset batched(const Dataset& self, nb::handle map, nb::handle shapes, nb::handle sizes,
                std::optional<std::uint64_t> pixels, std::vector<std::uint64_t> rows,
                std::uint64_t multiple, std::optional<double> most_cut,
                std::optional<double> most_enlarged, const Choice<UnfitImages>& unfit,
                const Choice<Remainder>& remainder, bool uneven, bool shuffle,
                std::optional<std::uint64_t> seed, bool reshuffle) {
  if (PyCallable_Check(map.ptr()) == 0)
    throw nb::type_error(("batch_by_aspect: 'map' is a function of a shape, which returns a "
                          "Transform: lambda shape: decode_image(crop=cover_crop(shape)), found " +
                          repr_of(map))
                             .c_str());
  ByAspectOptions options{.shapes = sizes_of("shapes", shapes),
                          .pixels = pixels,
                          .rows = std::move(rows),
                          .multiple = multiple,
                          .sizes = sizes_of("sizes", sizes),
                          .most_cut = most_cut,
                          .most_enlarged = most_enlarged,
                          .unfit = unfit.value("unfit"),
                          .shuffle = shuffle,
                          .seed = seed,
                          .reshuffle_each_epoch = reshuffle};
  const BatchOptions batch{.remainder = remainder.value("remainder"), .uneven = uneven};
  return without_gil([&] {
    return self.batch_by_aspect(
        [&](ImageSize shape) {
          const nb::gil_scoped_acquire held;
          return transform_of(map, shape);
        },
        std::move(options), batch);
  });
}

}  // namespace

void declare_aspects(nb::module_& module) {
  nb::class_<ByAspectSummary::Bucket>(module, "AspectBucket", "Of AspectBuckets.buckets.")
      .def_prop_ro(
          "shape", [](const ByAspectSummary::Bucket& self) { return pair_of(self.shape); },
          nb::sig("def shape(self) -> tuple[int, int]"), "Height and width of its images.")
      .def_ro("rows", &ByAspectSummary::Bucket::rows, "Of a full global batch.")
      .def_ro("samples", &ByAspectSummary::Bucket::samples)
      .def_ro("cut_share", &ByAspectSummary::Bucket::cut_share, "Of the pixels of its images.")
      .def("__repr__", [](const ByAspectSummary::Bucket& self) {
        return fmt::format("AspectBucket(shape=({}, {}), rows={}, samples={}, cut_share={:.4f})",
                           self.shape.height, self.shape.width, self.rows, self.samples,
                           self.cut_share);
      });
  nb::class_<ByAspectSummary>(module, "AspectBuckets",
                              "What came of batch_by_aspect: Dataset.aspect_buckets.")
      .def_ro("buckets", &ByAspectSummary::buckets)
      .def_ro("batches", &ByAspectSummary::batches, "Of an epoch.")
      .def_ro("samples", &ByAspectSummary::samples, "In them.")
      .def_ro("dropped", &ByAspectSummary::dropped,
              "Samples in none: of size (0, 0), or by unfit 'drop', and in each epoch others by "
              "remainder 'drop'.")
      .def_ro("cut_share", &ByAspectSummary::cut_share,
              "Of the pixels of all sorted images, cut away where they cover their shapes.")
      .def("__repr__", [](const ByAspectSummary& self) {
        return fmt::format(
            "AspectBuckets({} buckets, batches={}, samples={}, dropped={}, cut_share={:.4f})",
            self.buckets.size(), self.batches, self.samples, self.dropped, self.cut_share);
      });
}

void bind_aspects(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "batch_by_aspect", &batched, "map"_a, "shapes"_a, nb::kw_only(), "sizes"_a,
          "pixels"_a.none() = nb::none(), nb::arg("rows").sig("()") = nb::tuple(), "multiple"_a = 1,
          "most_cut"_a.none() = nb::none(), "most_enlarged"_a.none() = nb::none(),
          "unfit"_a = Choice<UnfitImages>{"refuse"}, "remainder"_a = Choice<Remainder>{"keep"},
          "uneven"_a = false, "shuffle"_a = true, "seed"_a.none() = nb::none(),
          "reshuffle_each_epoch"_a = true,
          nb::sig(
              fmt::format(
                  "def batch_by_aspect(self, map: collections.abc.Callable[[tuple[int, int]], "
                  "Transform], shapes: collections.abc.Sequence[tuple[int, int]] | typing.Any, *, "
                  "sizes: typing.Any, pixels: int | None = None, rows: "
                  "collections.abc.Sequence[int] = (), multiple: int = 1, most_cut: float | None = "
                  "None, most_enlarged: float | None = None, unfit: {} = 'refuse', "
                  "remainder: {} = 'keep', uneven: bool = False, shuffle: bool = True, "
                  "seed: int | None = None, reshuffle_each_epoch: bool = True) -> Dataset",
                  literal_of<UnfitImages>().text, literal_of<Remainder>().text)
                  .c_str()),
          R"(Global batches of images of similar aspects, each batch of one of `shapes`. `map` is called here,
once with each of them, and makes the transform that all samples of that bucket go through last:

    data.batch_by_aspect(lambda shape: ps.decode_image(crop=ps.cover_crop(shape), flip=0.5),
                         ps.aspect_shapes(), sizes=ps.image_sizes(data), pixels=16 << 20)

Which samples make up a batch is computed from `sizes`; what batch_by_length says of steps, epochs and
other operations holds here. transform_on_device may follow: the images of a batch have one shape.

`shapes`: (height, width) of each bucket, up to 4096. An image is in the bucket whose shape cuts the
least of it away, where it is resized so that it just covers the shape: that of the nearest aspect. Of
several the first. `sizes`: (height, width) of each record of the source, upright, as image_sizes()
reads them; one of (0, 0) is in no batch.
`pixels`: of a global batch at the most: a batch has as many rows as its shape goes into that, rounded
down to a multiple of `multiple`. Or `rows`: of a global batch, one number a bucket.
`most_cut`: the most share of an image that may be cut away. `most_enlarged`: the most that an image may
be enlarged to cover its shape; one that would be enlarged more is in a bucket of a smaller shape. An
image that these leave no bucket for is refused here, or in no batch: `unfit`.
`remainder`, `uneven`, `shuffle`, `seed`: as in batch_by_length.

Units   pixels; `most_cut` from 0 to 1, `most_enlarged` a factor, 1 for never
Shapes  what `map` makes differs from batch to batch; fields says (None, None, 3)
Memory  12 bytes a sample
Errors  ValueError  options that contradict each other; not one size for each record; a plan whose samples
                    have an order of their own; transforms whose fields differ in more than extents
        TypeError   map(shape) is no Transform
        Error       with unfit "refuse" an image that fits no bucket; names it)")
      .def_prop_ro("aspect_buckets", &Dataset::aspect_buckets,
                   "What came of batch_by_aspect; None where the plan has none.");
}

void bind_image_sizes(nb::module_& module) {
  module.def(
      "image_sizes",
      [](const Dataset& dataset, std::string field, bool exif, bool zero_if_damaged) {
        const ImageSizesOptions options{
            .field = std::move(field), .exif = exif, .zero_if_damaged = zero_if_damaged};
        return array_of(interruptibly([&] { return image_sizes(dataset.source(), options); }));
      },
      "dataset"_a, nb::kw_only(), "field"_a = "image", "exif"_a = true, "zero_if_damaged"_a = false,
      nb::sig("def image_sizes(dataset: Dataset, *, field: str = 'image', exif: bool = True, "
              "zero_if_damaged: bool = False) -> typing.Any"),
      R"(Height and width of each record's image, as decode_image shows it upright: for batch_by_aspect. Of all
records of the dataset's source, whatever the dataset chooses among them. Headers of JPEGs, PNGs and
WebPs are read, by all cores at once; of files in folders and of objects the first 64 KiB, and all of
one whose header is longer. Save the array beside the data set: it is the same until the files change.

Without `exif`, of JPEGs as they are stored. With `zero_if_damaged`, an image that cannot be read, or has
no header, has the size (0, 0), and is in no batch of batch_by_aspect. Memory that is out is an error in
either case.

Shapes  numpy's i32 [records, 2]: height, width
Errors  ValueError  no such field, or one that does not hold encoded images
        Error       an image that cannot be read, or has no header: the first one; names it)");
  module.def(
      "aspect_shapes",
      [](std::uint64_t pixels, int multiple, std::pair<double, double> ratio) {
        nb::list shapes;
        for (const ImageSize shape : aspect_shapes(
                 {.pixels = pixels, .multiple = multiple, .ratio = {ratio.first, ratio.second}}))
          shapes.append(pair_of(shape));
        return shapes;
      },
      nb::kw_only(), "pixels"_a = 1024 * 1024, "multiple"_a = 64,
      nb::arg("ratio").sig("(0.5, 2.0)") = std::pair(0.5, 2.0),
      nb::sig("def aspect_shapes(*, pixels: int = 1048576, multiple: int = 64, ratio: tuple[float, "
              "float] = (0.5, 2.0)) -> list[tuple[int, int]]"),
      R"((height, width) of about the same number of pixels, from the highest to the widest: for each width, and
for each height, the largest other side.

Units   `pixels` of a shape at the most; sides are multiples of `multiple`; `ratio` is width over height.
Errors  ValueError  no such shape, or more than 4096 of them; a range that is empty or not positive
Source  the buckets of NovelAI's diffusion (2022), as kohya's sd-scripts makes them.)");
}

}  // namespace penstock::python
