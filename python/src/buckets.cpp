// Batches of samples of similar lengths, and of images of similar aspects.
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bucket_fields.hpp"
#include "header_docs.hpp"
#include "host_array.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

nb::object array_of(const std::vector<ImageSize>& sizes) {
  return copy_to_numpy({reinterpret_cast<const std::byte*>(sizes.data()),
                        DType::i32,
                        {static_cast<std::int64_t>(sizes.size()), 2}});
}

nb::object sizes_of(const Dataset& dataset, const ImageSizesOptions& options) {
  if (const std::size_t sources = dataset.sources(); sources > 1)
    throw std::invalid_argument(
        fmt::format("image_sizes: the plan has {} sources, which number their samples each by "
                    "itself: give it one of them",
                    sources));
  return array_of(interruptibly([&] { return image_sizes(dataset.source(), options); }));
}

TransformPtr transform_of(const nb::object& made) {
  if (nb::isinstance<PyTransform>(made)) return nb::cast<const PyTransform&>(made).transform;
  throw nb::type_error(("batch_by_aspect: map(shape) returns a Transform such as "
                        "decode_image(crop=cover_crop(shape)), found " +
                        repr_of(made) + hint_at(made))
                           .c_str());
}

// The fractions of a summary that are of its kind of batches.
std::string fractions_of(const BucketSummary& summary) {
  if (!summary.buckets.empty() && summary.buckets[0].edge == 0)
    return fmt::format("crop_fraction={:.4f}", summary.crop_fraction);
  return fmt::format("padding_fraction={:.4f}", summary.padding_fraction);
}

}  // namespace

/// The map of batch_by_aspect: a function of (height, width).
template <>
struct PythonValue<std::function<TransformPtr(ImageSize)>> {
  static std::string type() { return "collections.abc.Callable[[tuple[int, int]], Transform]"; }
  /// Errors  nb::type_error  no function
  static std::function<TransformPtr(ImageSize)> value(nb::handle given, const char*) {
    if (PyCallable_Check(given.ptr()) == 0)
      throw nb::type_error(
          ("batch_by_aspect: 'map' must be a function of a shape, which returns a "
           "Transform: lambda shape: decode_image(crop=cover_crop(shape)), found " +
           repr_of(given))
              .c_str());
    // It is called in batch_by_aspect only, while the caller holds it.
    return [given](ImageSize shape) {
      const nb::gil_scoped_acquire held;
      return transform_of(given(nb::make_tuple(shape.height, shape.width)));
    };
  }
};

void declare_buckets(nb::module_& module) {
  using Bucket = BucketSummary::Bucket;
  nb::class_<Bucket>(module, "Bucket", "One of BucketSummary.buckets.")
      .def_ro("edge", &Bucket::edge, "The length that its samples are padded to; 0 of images.")
      .def_prop_ro(
          "shape",
          [](const Bucket& self) { return std::pair(self.shape.height, self.shape.width); },
          "(height, width) of its images; (0, 0) of other samples.")
      .def_ro("rows", &Bucket::rows, "Rows of a full global batch.")
      .def_ro("samples", &Bucket::samples)
      .def_ro("crop_fraction", &Bucket::crop_fraction,
              "The fraction of its images' pixels that is cut away.")
      .def("__repr__", [](const Bucket& self) {
        if (self.edge != 0)
          return fmt::format("Bucket(edge={}, rows={}, samples={})", self.edge, self.rows,
                             self.samples);
        return fmt::format("Bucket(shape=({}, {}), rows={}, samples={}, crop_fraction={:.4f})",
                           self.shape.height, self.shape.width, self.rows, self.samples,
                           self.crop_fraction);
      });
  nb::class_<BucketSummary> summary(module, "BucketSummary", StructDoc<BucketSummary>::kText);
  def_members(summary, "buckets", &BucketSummary::buckets, "batches", &BucketSummary::batches,
              "samples", &BucketSummary::samples, "dropped", &BucketSummary::dropped,
              "padding_fraction", &BucketSummary::padding_fraction, "crop_fraction",
              &BucketSummary::crop_fraction);
  summary.def("__repr__", [](const BucketSummary& self) {
    return fmt::format("BucketSummary({} buckets, batches={}, samples={}, dropped={}, {})",
                       self.buckets.size(), self.batches, self.samples, self.dropped,
                       fractions_of(self));
  });
}

void bind_buckets(nb::class_<Dataset>& dataset) {
  def(dataset, calls::dataset_batch_by_length(), {"edges"});
  def(dataset,
      calls::dataset_batch_by_aspect().with(
          R"(    data.batch_by_aspect(lambda shape: ps.decode_image(crop=ps.cover_crop(shape), flip=0.5),
                         ps.aspect_shapes(), sizes=ps.image_sizes(data), pixels=16 << 20))"),
      {"shapes"});
  dataset.def_prop_ro("buckets", &Dataset::buckets,
                      "The buckets of batch_by_length or batch_by_aspect; None where the plan has "
                      "neither.");
}

void bind_image_sizes(nb::module_& module) {
  def(module,
      Call{"image_sizes", WithGil{&sizes_of}, docs::image_sizes, Parameter<Dataset>{"dataset"},
           Parameter<ImageSizesOptions>{"options"}}
          .with("Of all records of the dataset's source, whatever the dataset chooses among "
                "them: an array of\nnumpy, i32 [records, 2]."));
  def(module, calls::aspect_shapes());
}

}  // namespace penstock::python
