// The words that all other files use: fields, sample numbers, faults, devices.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "header_docs.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

void bind_fields(nb::module_& module) {
  nb::class_<FieldSpec>(module, "FieldSpec", R"(One named field of a sample.

Shapes  `shape` is of one sample, without the batch axis; None is an extent that differs
        from sample to sample.)")
      .def(
          "__init__",
          [](FieldSpec* self, std::string name, const std::string& dtype, const Extents& shape) {
            new (self) FieldSpec{std::move(name), parse_dtype(dtype), parse_shape(shape.given)};
          },
          "name"_a, "dtype"_a, nb::arg("shape").sig("()") = nb::tuple(),
          R"(`dtype` is "u8", "f32" and so on, or numpy's name for it.

Errors  ValueError  no such dtype, or not a shape)")
      .def(ExplainedConstructor())
      .def_ro("name", &FieldSpec::name)
      .def_prop_ro(
          "dtype", [](const FieldSpec& self) { return std::string(name_of(self.dtype)); },
          R"("u8", "f32" and so on.)")
      .def_prop_ro(
          "shape", [](const FieldSpec& self) { return to_tuple(self.shape); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"), "Of one sample.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const FieldSpec& self) { return nb::hash(nb::cast(self.to_string())); })
      .def("__str__", &FieldSpec::to_string, R"("image u8 [224,224,3]".)")
      .def("__repr__", [](const FieldSpec& self) {
        return nb::str("FieldSpec({!r}, {!r}, {!r})")
            .format(self.name, std::string(name_of(self.dtype)), to_tuple(self.shape));
      });
}

void bind_identities(nb::module_& module) {
  nb::class_<SampleId>(module, "SampleId",
                       "Which sample this is: (source, epoch, number), and which draw of it.")
      .def_ro("number", &SampleId::number, "0 to N-1 in its source.")
      .def_ro("epoch", &SampleId::epoch, "Passes over the source before this one.")
      .def_ro("source", &SampleId::source, "Which source of the plan.")
      .def_ro("draw", &SampleId::draw,
              "0, or 1 + the position in the output of the outermost `sample`, or `select` that "
              "repeats.")
      .def("__getstate__",
           [](const SampleId& self) {
             return std::tuple(self.number, self.epoch, self.source, self.draw);
           })
      .def("__setstate__",
           [](SampleId& self,
              const std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t>& state) {
             const auto& [number, epoch, source, draw] = state;
             new (&self) SampleId{.number = number, .epoch = epoch, .source = source, .draw = draw};
           })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const SampleId& self) {
             return nb::hash(nb::make_tuple(self.number, self.epoch, self.source, self.draw));
           })
      .def("__repr__", [](const SampleId& self) {
        if (self.draw == 0)
          return nb::str("SampleId(number={}, epoch={}, source={})")
              .format(self.number, self.epoch, self.source);
        return nb::str("SampleId(number={}, epoch={}, source={}, draw={})")
            .format(self.number, self.epoch, self.source, self.draw);
      });

  nb::class_<Fault>(module, "Fault", "What is known about a bad sample: which one, where, and why.")
      .def_prop_ro(
          "reason", [](const Fault& self) { return text_of(self.reason); },
          R"("premature end of JPEG file", ...)")
      .def_prop_ro(
          "file",
          [](const Fault& self) {
            return nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(
                self.file.data(), static_cast<Py_ssize_t>(self.file.size())));
          },
          "Path, or shard and member; empty where there is no file. As os.fsdecode() makes it.")
      .def_ro("offset", &Fault::offset, "Byte offset in that file; 0 where it says nothing.")
      .def_ro("sample", &Fault::sample)
      .def_ro("step", &Fault::step)
      .def_ro("row", &Fault::row, "Row of the global batch.")
      .def_ro("out_of_memory", &Fault::out_of_memory,
              "Whether memory was out, which says nothing of the sample: raised under every "
              "policy. So is a MemoryError.")
      .def_prop_ro(
          "cause",
          [](const Fault& self) -> nb::object {
            nb::object cause = python_cause(self.cause);
            return cause.is_valid() ? cause : nb::none();
          },
          nb::sig("def cause(self) -> BaseException | None"),
          "What your function raised, if that was it.")
      .def(
          "__getstate__",
          [](const Fault& self) {
            const auto bytes = [](const std::string& text) {
              return nb::bytes(text.data(), text.size());
            };
            return nb::make_tuple(bytes(self.reason), bytes(self.file), self.offset, self.sample,
                                  self.step, self.row, self.transient, self.out_of_memory);
          },
          nb::sig(
              "def __getstate__(self) -> tuple[bytes, bytes, int, SampleId, int, int, bool, bool]"))
      .def("__setstate__",
           [](Fault& self, const std::tuple<nb::bytes, nb::bytes, std::uint64_t, SampleId,
                                            std::uint64_t, std::uint64_t, bool, bool>& state) {
             const auto& [reason, file, offset, sample, step, row, transient, out_of_memory] =
                 state;
             const auto text = [](const nb::bytes& bytes) {
               return std::string(bytes.c_str(), bytes.size());
             };
             new (&self) Fault{.reason = text(reason),
                               .file = text(file),
                               .offset = offset,
                               .sample = sample,
                               .step = step,
                               .row = row,
                               .transient = transient,
                               .out_of_memory = out_of_memory,
                               .cause = {}};
           })
      .def(
          "__str__", [](const Fault& self) { return text_of(self.to_string()); },
          R"("sample 17 (epoch 0), cats/7.jpg at byte 512: premature end of JPEG file".)")
      .def("__repr__", [](const Fault& self) {
        return nb::str("Fault({!r})").format(text_of(self.to_string()));
      });
}

void bind_devices(nb::module_& module) {
  nb::class_<Device>(module, "Device", R"(The name of a place that batches go to: host:i or cuda:i.

Host devices are real devices: a program for four GPUs runs on host:0 to host:3.)")
      .def(
          "__init__",
          [](Device* self, const std::string& name) { new (self) Device(Device::parse(name)); },
          "name"_a, R"("host:0", "cuda:1"; "cuda" alone is cuda:0.

Errors  ValueError  anything else)")
      .def(ExplainedConstructor())
      .def_prop_ro(
          "kind",
          [](const Device& self) {
            return std::string(self.kind == Device::Kind::host ? "host" : "cuda");
          },
          nb::sig("def kind(self) -> typing.Literal['host', 'cuda']"))
      .def_ro("index", &Device::index)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Device& self) { return nb::hash(nb::str(self.to_string().c_str())); })
      .def("__str__", &Device::to_string)
      .def("__repr__",
           [](const Device& self) { return nb::str("Device({!r})").format(self.to_string()); });

  module.def("host_devices", &host_devices, "count"_a, "host:0 to host:count-1.");
  module.def("parse_devices", &parse_devices, "spec"_a,
             R"("auto" (every GPU, or host:0), "host:4" (four host devices), "cuda:0,1".

Errors  ValueError  not such a string)");
  module.def(
      "image_libraries",
      [] {
        nb::dict libraries;
        for (const ImageLibrary& library : image_libraries())
          libraries[nb::cast(library.name)] = library.version;
        return libraries;
      },
      nb::sig("def image_libraries() -> dict[str, str]"),
      R"(The versions of the optional libraries that decode images in this build, by name: giflib, libheif (HEIC
and AVIF), libjxl and libtiff. Their pixels may differ from version to version; a saved state has these
versions, and load_state_dict() warns where they were others.)");
  module.def("_default_threads", &default_threads, "As many threads as a loader has by default.");
  module.def("gpu_count", &gpu_count,
             R"(GPUs that can be used here; 0 without a driver or in a build without CUDA.

Errors  CudaError  there is a driver, and it does not work; says why)");
  module.def(
      "numa_node", &numa_node, "device"_a,
      R"(The NUMA node whose memory is nearest to a GPU; None for a host device, and where the
machine has one node or does not say.)");
  module.def(
      "all_gpus_or_host", [] { return all_gpus_or_host(); },
      R"(Every GPU there is, or host:0. Where torchrun, mpirun or srun started several processes on
this machine, this one's share of the GPUs.

Errors  Error  the launchers' variables contradict each other)");
}

void bind_process(nb::module_& module) {
  nb::class_<InputContext> context = def_struct<InputContext>(module);
  context
      .def_static(
          "from_environment", [] { return InputContext::from(); }, docs::input_context_from)
      .def("per_replica_batch_size", &InputContext::per_replica_batch_size, "global_batch"_a,
           docs::input_context_per_replica_batch_size);

  nb::class_<PyThreadBudget>(module, "ThreadBudget", docs::ThreadBudget)
      .def(
          "__init__",
          [](PyThreadBudget* self, int threads) {
            new (self) PyThreadBudget{std::make_shared<ThreadBudget>(threads)};
          },
          "threads"_a, docs::thread_budget_init)
      .def(ExplainedConstructor())
      .def_prop_ro("threads", [](const PyThreadBudget& self) { return self.budget->threads(); });
}

}  // namespace

void bind_core(nb::module_& module) {
  bind_fields(module);
  bind_identities(module);
  bind_devices(module);
  bind_process(module);
}

}  // namespace penstock::python
