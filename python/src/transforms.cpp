// Decoding, padding, and a user's own Python function.
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "header_docs.hpp"
#include "host_array.hpp"
#include "python_object.hpp"
#include "python_transform.hpp"
#include "waiting.hpp"

namespace penstock::python {

template <>
struct PythonClass<ImageView> {
  static constexpr const char* kName = "ImageView";
  static constexpr const char* kByPosition[] = {"crop"};
};

template <>
struct PythonClass<Instances> {
  static constexpr const char* kName = "Instances";
  static constexpr const char* kByPosition[] = {"boxes"};
};

template <>
struct PythonValue<TranscodedJpeg> {
  static std::string type() { return "TranscodedJpeg"; }
};

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
      const nb::object name = nb::cast(fields[i].name);
      PyObject* value = PyDict_GetItem(result.ptr(), name.ptr());  // borrowed, or null
      if (value == nullptr)
        throw std::invalid_argument("returned a dict without '" + fields[i].name + "'");
      write(value, fields[i], out, i);
    }
  } else if (fields.size() == 1 && PyTuple_Check(result.ptr()) == 0) {
    write(result, fields[0], out, 0);
  } else if (PyTuple_Check(result.ptr()) == 0 || nb::len(result) != fields.size()) {
    throw std::invalid_argument("returned " + repr_of(result.type()) +
                                ", expected a tuple or a dict of " + std::to_string(fields.size()) +
                                " arrays");
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

PyMemoryJpegIndex memory_index(std::size_t max_bytes) {
  const auto made = std::make_shared<MemoryJpegIndex>(max_bytes);
  return {{made}, made};
}
PySharedJpegIndex shared_index(const std::filesystem::path& file, std::size_t max_bytes) {
  return {{std::make_shared<SharedJpegIndex>(file, max_bytes)}};
}

TranscodedJpeg transcode(const nb::bytes& jpeg, const TranscodeJpegOptions& options) {
  const auto* const data = static_cast<const std::byte*>(jpeg.data());
  const std::span bytes(data, jpeg.size());
  auto result = without_gil([&] { return transcode_jpeg(bytes, options); });
  if (!result) throw std::invalid_argument(result.fault().reason);
  return std::move(*result);
}

void bind_jpeg(nb::module_& module) {
  using Path = std::filesystem::path;
  nb::class_<PyJpegIndex>(module, "JpegIndex",
                          "An index of JPEGs: MemoryJpegIndex or SharedJpegIndex.")
      .def("__bool__", [](const PyJpegIndex&) { return true; })
      .def("__len__", [](const PyJpegIndex& self) { return self.store->size(); })
      .def_prop_ro(
          "nbytes", [](const PyJpegIndex& self) { return self.store->bytes(); },
          "Bytes that the indices take, in memory or in the file.")
      .def(
          "load_bytes",
          [](const PyJpegIndex& self, const nb::bytes& made) {
            const std::span<const char> bytes(made.c_str(), made.size());
            return without_gil(
                [&] { return self.store->load_bytes(std::as_bytes(bytes), "these bytes"); });
          },
          "made"_a, docs::jpeg_index_store_load_bytes);
  nb::class_<PyMemoryJpegIndex, PyJpegIndex> in_memory(module, "MemoryJpegIndex",
                                                       docs::MemoryJpegIndex);
  def_constructor(in_memory,
                  Call{"MemoryJpegIndex", &memory_index, "",
                       Parameter<std::size_t>{.name = "max_bytes",
                                              .by_default = std::size_t{1} << 30,
                                              .sentence = "bytes that the indices may take; once "
                                                          "full, it takes no more"}});
  in_memory
      .def(
          "load",
          [](const PyMemoryJpegIndex& self, const Path& file) {
            return interruptibly([&] { return load_jpeg_index(*self.memory, file.string()); });
          },
          "file"_a, docs::load_jpeg_index)
      .def(
          "save",
          [](const PyMemoryJpegIndex& self, const Path& file) {
            without_gil([&] { self.memory->save(file); });
          },
          "file"_a, docs::memory_jpeg_index_save)
      .def(
          "to_bytes",
          [](const PyMemoryJpegIndex& self) {
            const auto all = without_gil([&] { return self.memory->to_bytes(); });
            return nb::bytes(all.data(), all.size());
          },
          docs::memory_jpeg_index_to_bytes);
  nb::class_<PySharedJpegIndex, PyJpegIndex> shared(module, "SharedJpegIndex",
                                                    docs::SharedJpegIndex);
  def_constructor(shared, Call{"SharedJpegIndex", &shared_index, docs::shared_jpeg_index_init,
                               Parameter<std::filesystem::path>{"file"},
                               Parameter<std::size_t>{.name = "max_bytes",
                                                      .by_default = std::size_t{1} << 30}});

  nb::class_<PyJpegStats>(module, "JpegStats",
                          "Counts which decoder took the JPEGs. For decode_image(stats=...).")
      .def("__repr__",
           [](nb::handle self) { return "JpegStats(" + repr_of(self.attr("counts")()) + ")"; })
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
  def_struct<Instances>(module);
  def(module, calls::decode_image());
  def_struct<ImageView>(module);
  def(module, calls::decode_views(), {"views"});
  def(module, calls::crop_image());
  def(module, calls::augment_image(), {"operations"});
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

  def(module, calls::pad(), {"field", "to"});
  bind_images(module);

  nb::class_<TranscodedJpeg> transcoded(module, "TranscodedJpeg", StructDoc<TranscodedJpeg>::kText);
  transcoded.def_prop_ro(
      "bytes",
      [](const TranscodedJpeg& self) { return nb::bytes(self.bytes.data(), self.bytes.size()); },
      as_sentence(sentence_of<TranscodedJpeg>("bytes")).c_str());
  def_members(transcoded, "kept", &TranscodedJpeg::kept, "interval", &TranscodedJpeg::interval,
              "mcus_in_row", &TranscodedJpeg::mcus_in_row);
  def(module, Call{"transcode_jpeg", WithGil{&transcode}, docs::transcode_jpeg,
                   Parameter<nb::bytes>{"jpeg"}, Parameter<TranscodeJpegOptions>{"options"}});

  module.def("_map_python", &map_python, "function"_a, "inputs"_a, "outputs"_a, "name"_a,
             "make_generator"_a.none());
}

}  // namespace penstock::python
