// What runs: loaders, their steps and batches, where the time went.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "caller_tensor.hpp"
#include "header_docs.hpp"
#include "loader_handle.hpp"
#include "remote_rows.hpp"
#include "tensor.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// ---- batches ----

struct PyBatch {
  Lease batch;
  Lease lease;  // for tensors, which keep no data set alive
  const DeviceBatch& operator*() const { return **batch; }
  const DeviceBatch* operator->() const { return &**batch; }
};

PyBatch leased(const DeviceBatch& batch) {
  return {std::make_shared<const ForkSafe<DeviceBatch>>(batch),
          std::make_shared<const ForkSafe<DeviceBatch>>(batch.without_names())};
}

class PyStep {
 public:
  explicit PyStep(Step step) : step_(std::move(step)) {
    for (const DeviceBatch& part : *step_) parts_.push_back(leased(part));
  }
  const Step& operator*() const { return *step_; }
  const Step* operator->() const { return &*step_; }
  [[nodiscard]] const std::vector<PyBatch>& parts() const noexcept { return parts_; }
  [[nodiscard]] const PyBatch& only_part() const {
    if (parts_.size() != 1)
      throw std::invalid_argument("step['...'] is for one device, and this step has " +
                                  std::to_string(parts_.size()) +
                                  ": choose a part, step.parts[0]['...']");
    return parts_.front();
  }

 private:
  ForkSafe<Step> step_;
  std::vector<PyBatch> parts_;
};

void subtract(Digest& sum, const Digest& part) noexcept {
  if (sum.low < part.low) --sum.high;
  sum.low -= part.low;
  sum.high -= part.high;
}

// The state as it was before the last step was delivered.
LoaderState without(LoaderState state, const Step& last) {
  state.step = last.number();
  state.samples -= last.global_samples();
  state.fault_count -= last.faults().size();
  std::erase_if(state.faults, [&](const Fault& fault) { return fault.step == last.number(); });
  subtract(state.digest, last.digest());
  subtract(state.transformed_digest, last.transformed_digest());
  return state;
}

PyTensor field_of(const PyBatch& self, const std::string& name) {
  for (const FieldSpec& spec : self->fields())
    if (spec.name == name) return {self.lease, (*self)[name]};
  try {
    (void)(*self)[name];  // says which fields there are
  } catch (const std::invalid_argument& error) {
    throw nb::key_error(utf8_of(error.what()).c_str());
  }
  throw nb::key_error(utf8_of(name).c_str());
}

std::vector<std::string> names_of(const PyBatch& self) {
  std::vector<std::string> names;
  for (const FieldSpec& spec : self->fields()) names.push_back(spec.name);
  return names;
}

const PyBatch& first_part(const PyBatch& self) { return self; }
const PyBatch& first_part(const PyStep& self) { return self.parts().front(); }

void copy_field_to(const PyBatch& self, const std::string& field, nb::handle destination,
                   const std::optional<std::uintptr_t>& stream) {
  const CallerTensor into(destination, "copy_to(destination)");
  const TensorView from = field_of(self, field).view();
  if (into.view().dtype() != from.dtype())
    throw std::invalid_argument("copy_to: expected a destination of " +
                                std::string(name_of(from.dtype())) + " for '" + field +
                                "', found " + std::string(name_of(into.view().dtype())));
  const Device& here = self->device();
  const Device& there = into.device();
  if (here.kind != there.kind || (here.kind == Device::Kind::cuda && here.index != there.index))
    throw std::invalid_argument("copy_to: expected a destination on " + here.to_string() +
                                ", found one on " + there.to_string());
  const StreamHandle ordered = into.stream(stream);
  without_gil([&] {
    self->copy_to(field, into.view().raw(), into.view().byte_size(), ordered);
    return 0;
  });
}

// What a mapping of field names to Tensors has, for a batch and for a step of one device.
template <class T, class Batch>
void bind_mapping(nb::class_<T>& owner, Batch batch) {
  const auto tensor = [batch](const T& self, nb::handle field) -> PyTensor {
    if (!nb::isinstance<nb::str>(field))
      throw nb::type_error(
          ("a field is chosen by its name, and a device by step.parts[i]; found " + repr_of(field))
              .c_str());
    return field_of(batch(self), nb::cast<std::string>(field));
  };
  const auto names = [](const T& self) { return names_of(first_part(self)); };
  owner
      .def("__getitem__", tensor, "field"_a, nb::sig("def __getitem__(self, field: str) -> Tensor"),
           R"(One field of all rows.

Shapes  [size, ...]
Errors  KeyError  there is no such field; names those there are)")
      .def(
          "get",
          [names, tensor](const T& self, nb::handle field, nb::object otherwise) {
            if (nb::isinstance<nb::str>(field))
              for (const std::string& name : names(self))
                if (name == nb::cast<std::string>(field)) return nb::cast(tensor(self, field));
            return otherwise;
          },
          "field"_a, "default"_a.none() = nb::none(),
          nb::sig("def get(self, field: str, default: typing.Any = None) -> typing.Any"),
          "The field, or `default` where there is none of this name.")
      .def(
          "__contains__",
          [names](const T& self, nb::handle field) {
            if (!nb::isinstance<nb::str>(field)) return false;
            return std::ranges::count(names(self), nb::cast<std::string>(field)) != 0;
          },
          nb::sig("def __contains__(self, field: object) -> bool"))
      .def(
          "__iter__", [names](const T& self) { return nb::iter(nb::cast(names(self))); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "__len__", [names](const T& self) { return names(self).size(); }, "The number of fields.")
      .def("_repr_html_", html_of("batch_html"), nb::sig("def _repr_html_(self) -> str"))
      .def("keys", names)
      .def("values",
           [batch](const T& self) {
             std::vector<PyTensor> tensors;
             const PyBatch& part = batch(self);
             for (const std::string& name : names_of(part))
               tensors.emplace_back(part.lease, (*part)[name]);
             return tensors;
           })
      .def(
          "items",
          [batch](const T& self) {
            nb::list items;
            const PyBatch& part = batch(self);
            for (const std::string& name : names_of(part))
              items.append(nb::make_tuple(name, PyTensor(part.lease, (*part)[name])));
            return items;
          },
          nb::sig("def items(self) -> list[tuple[str, Tensor]]"));
}

template <class T>
std::vector<T> listed(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// numpy's records with the members of SampleId: one copy.
nb::object array_of(std::span<const SampleId> samples) {
  static_assert(sizeof(SampleId) == 24 && offsetof(SampleId, epoch) == 8 &&
                offsetof(SampleId, source) == 12 && offsetof(SampleId, draw) == 16);
  nb::list members;
  for (const auto& [name, type] :
       {std::pair{"number", "u8"}, {"epoch", "u4"}, {"source", "u4"}, {"draw", "u8"}})
    members.append(nb::make_tuple(name, type));
  const nb::object bytes =
      nb::steal(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(samples.data()),
                                              static_cast<Py_ssize_t>(samples.size_bytes())));
  if (!bytes.is_valid()) throw nb::python_error();
  return nb::module_::import_("numpy").attr("frombuffer")(bytes, "dtype"_a = members);
}

// What a batch and a step know of the samples in their rows.
template <class T>
void bind_rows(nb::class_<T>& owner) {
  owner
      .def_prop_ro(
          "row_numbers", [](const T& self) { return self->row_numbers(); },
          docs::device_batch_row_numbers)
      .def(
          "sample_array",
          [](const T& self, bool originals) {
            return originals ? array_of(self->original_samples()) : array_of(self->samples());
          },
          nb::kw_only(), "originals"_a = false,
          nb::sig("def sample_array(self, *, originals: bool = False) -> typing.Any"),
          R"(The samples of the rows as one array of numpy, a copy with the columns number u64, epoch u32,
source u32 and draw u64: batch.sample_array()["number"], pandas.DataFrame(batch.sample_array()).

Shapes  [len(samples)], without padding
`originals`  as they were drawn: a bad one in place of the sample that stands in for it (on_fault="replace"))")
      .def(
          "names",
          [](const T& self, bool originals) {
            return without_gil([&] { return originals ? self->original_names() : self->names(); });
          },
          nb::kw_only(), "originals"_a = false,
          R"(What the records of the rows are called and where they are stored, as a list of RecordName in the
order of `samples`; computed now, from what the data set knows: nothing is read. A masked row has the name of its
bad sample. In a data set of Python's a name is no more than a key, "Points[17]".

`originals`  of the samples as they were drawn: the name of a bad one, and not that of the sample that stands in for
             it (on_fault="replace"))");
}

void bind_batches(nb::module_& module) {
  nb::class_<PyBatch> batch(module, "DeviceBatch",
                            R"(One replica's rows of a global batch, on its device.

A Mapping of field names to Tensors: dict(batch), batch["image"].

Owns    its slot, for as long as it or any tensor made from it lives; it may outlive the loader.)");
  bind_mapping(batch, [](const PyBatch& self) -> const PyBatch& { return self; });
  bind_rows(batch);
  batch.def_prop_ro("device", [](const PyBatch& self) { return self->device(); })
      .def_prop_ro(
          "replica", [](const PyBatch& self) { return self->replica(); },
          docs::device_batch_replica)
      .def_prop_ro("step", [](const PyBatch& self) { return self->step(); })
      .def_prop_ro(
          "size", [](const PyBatch& self) { return self->size(); }, docs::device_batch_size)
      .def_prop_ro(
          "samples", [](const PyBatch& self) { return listed(self->samples()); },
          docs::device_batch_samples)
      .def_prop_ro("fields", [](const PyBatch& self) { return listed(self->fields()); })
      .def_prop_ro(
          "nbytes", [](const PyBatch& self) { return self->bytes(); }, docs::device_batch_bytes)
      .def(
          "wait_on",
          [](const PyBatch& self, std::uintptr_t stream) {
            self->wait_on(reinterpret_cast<StreamHandle>(stream));
          },
          "stream"_a,
          R"(Makes a CUDA stream wait until this part has arrived; the host does not wait.
The memory is not reused before everything given to that stream until this batch is dropped
has finished. Not needed for the stream that DLPack was given.

Stream  its address, torch.cuda.current_stream().cuda_stream, which must outlive this batch.
        Does nothing on a host device.
Errors  CudaError)")
      .def("copy_to", &copy_field_to, "field"_a, "destination"_a, nb::kw_only(),
           "stream"_a.none() = nb::none(),
           nb::sig("def copy_to(self, field: str, destination: typing.Any, *, stream: int | None = "
                   "None) -> None"),
           R"(Copies a field to the caller's memory, a numpy array or a torch tensor on the same
device, for example the static inputs of a captured CUDA graph. The memory after
a short batch stays unchanged.

Shapes  destination: of the field's dtype, dense, with at least as many elements
Stream  on a CUDA device queued on `stream`, by default torch's current one, which waits as
        with wait_on; the host does not wait. On a host device it is done on return.
Errors  KeyError  there is no such field; ValueError  another dtype or device, or too little
        room; CudaError)")
      .def(
          "synchronize",
          [](const PyBatch& self) {
            without_gil([&] {
              self->synchronize();
              return 0;
            });
          },
          docs::device_batch_synchronize)
      .def("__repr__", [](const PyBatch& self) {
        std::string text = "<penstock.DeviceBatch step " + std::to_string(self->step()) + ", " +
                           std::to_string(self->size()) + " rows on " + self->device().to_string();
        for (const FieldSpec& spec : self->fields()) text += ", " + spec.to_string();
        return text + ">";
      });

  nb::class_<PyStep> step(module, "Step",
                          R"(One step of training: a DeviceBatch for every device of this process.

With one device it is a Mapping of field names to Tensors, as the batch: step["image"], dict(step).
With several: for batch in step.parts.)");
  bind_mapping(step, [](const PyStep& self) -> const PyBatch& { return self.only_part(); });
  bind_rows(step);
  step.def_prop_ro("parts", &PyStep::parts,
                   "A DeviceBatch for every device of this process, in their order.")
      .def_prop_ro(
          "number", [](const PyStep& self) { return self->number(); }, docs::step_number)
      .def_prop_ro(
          "epoch", [](const PyStep& self) { return self->epoch(); }, docs::step_epoch)
      .def_prop_ro(
          "global_samples", [](const PyStep& self) { return self->global_samples(); },
          docs::step_global_samples)
      .def_prop_ro(
          "samples", [](const PyStep& self) { return listed(self->samples()); }, docs::step_samples)
      .def_prop_ro(
          "faults", [](const PyStep& self) { return listed(self->faults()); }, docs::step_faults)
      .def_prop_ro(
          "digest",
          [](const PyStep& self) {
            return without_gil([&] { return self->digest().to_string(); });
          },
          R"(Of this process's rows, 32 hexadecimal digits; zero unless loader(digest=True). Waits until
GPUs have hashed theirs.

Errors  CudaError  a GPU is lost)")
      .def_prop_ro(
          "transformed_digest",
          [](const PyStep& self) {
            return without_gil([&] { return self->transformed_digest().to_string(); });
          },
          docs::step_transformed_digest)
      .def("__repr__", [](const PyStep& self) {
        std::string text = "<penstock.Step " + std::to_string(self->number()) + ", epoch " +
                           std::to_string(self->epoch());
        for (const PyBatch& part : self.parts())
          text += ", " + std::to_string(part->size()) + " rows on " + part->device().to_string();
        for (const FieldSpec& spec : self.parts().front()->fields())
          text += ", " + spec.to_string();
        return text + ">";
      });
}

// ---- reports ----

double rate_of(const Stats& stats) {
  return stats.seconds > 0 ? static_cast<double>(stats.samples) / stats.seconds : 0;
}

void bind_stats(nb::module_& module) {
  nb::class_<StageTime> stage(module, "StageTime", StructDoc<StageTime>::kText);
  def_members(stage, "wait_s", &StageTime::wait_s, "busy_s", &StageTime::busy_s);
  nb::class_<RemoteStats> remote(module, "RemoteStats", StructDoc<RemoteStats>::kText);
  def_members(remote, "rows", &RemoteStats::rows, "tasks", &RemoteStats::tasks, "bytes",
              &RemoteStats::bytes, "cancelled", &RemoteStats::cancelled, "wait_s",
              &RemoteStats::wait_s, "made_s", &RemoteStats::made_s, "copy_s", &RemoteStats::copy_s);
  nb::class_<Stats> stats(module, "Stats", StructDoc<Stats>::kText);
  def_members(stats, "samples", &Stats::samples, "steps", &Stats::steps, "bytes_read",
              &Stats::bytes_read, "seconds", &Stats::seconds, "consume_s", &Stats::consume_s,
              "first_batch_s", &Stats::first_batch_s, "remote", &Stats::remote, "stall_fraction",
              &Stats::stall_fraction, "faults", &Stats::faults, "retries", &Stats::retries,
              "memory_bytes", &Stats::memory_bytes, "memory_peak_bytes", &Stats::memory_peak_bytes,
              "slots", &Stats::slots, "held_slots", &Stats::held_slots, "threads", &Stats::threads,
              "io_threads", &Stats::io_threads, "waiting_for", &Stats::waiting_for);
  stats
      .def_prop_ro(
          "stages",
          [](const Stats& self) {
            nb::dict stages;  // in this order
            for (std::size_t i = 0; i < kStages; ++i) {
              const std::string name(name_of(static_cast<Stage>(i)));
              stages[name.c_str()] = self.stages[i];
            }
            return stages;
          },
          nb::sig("def stages(self) -> dict[str, StageTime]"),
          "order, slot, read, decode, remote, copy, device_transform: what the consumer waited "
          "for, and "
          "for how long.")
      .def_prop_ro(
          "functions",
          [](const Stats& self) {
            std::map<std::string, FunctionTime> by_name;  // which several may have
            for (const FunctionTime& time : self.functions) {
              FunctionTime& all = by_name[time.name];
              all.calls += time.calls;
              all.busy_s += time.busy_s;
              all.wait_s += time.wait_s;
            }
            nb::dict functions;
            for (const auto& [name, time] : by_name) {
              nb::dict one;
              one["calls"] = time.calls;
              one["busy_s"] = time.busy_s;
              one["wait_s"] = time.wait_s;
              functions[nb::cast(name)] = one;
            }
            return functions;
          },
          nb::sig("def functions(self) -> dict[str, dict[str, float]]"),
          "Python functions and data sets: calls, busy_s in them, and wait_s for the GIL, over all "
          "threads.")
      .def_prop_ro(
          "tiers",
          [](const Stats& self) {
            nb::dict tiers;  // in this order
            for (const StorageTier& tier : self.tiers) {
              nb::dict one;
              one["reads"] = tier.reads;
              one["bytes"] = tier.bytes;
              one["entries"] = tier.entries;
              one["held_bytes"] = tier.held_bytes;
              one["budget_bytes"] = tier.budget_bytes;
              one["requests"] = tier.requests;
              one["failures"] = tier.failures;
              one["hedges"] = tier.hedges;
              const std::string name =
                  tier.folder.empty() ? tier.name : tier.name + " " + tier.folder;
              tiers[nb::cast(name)] = one;
            }
            return tiers;
          },
          nb::sig("def tiers(self) -> dict[str, dict[str, int]]"),
          "Where the bytes of the data came from: memory, the folder of a disk cache, the bucket: "
          "reads and bytes that each answered with, and what it holds of its budget_bytes; of the "
          "bucket also the requests for these reads, those that failed, and those that were hedged "
          "by a second one.")
      .def_prop_ro(
          "bottleneck", [](const Stats& self) { return std::string(self.bottleneck()); },
          R"(The stage waited for longest, or "consumer" for less than 2% of the time.)")
      .def("_repr_html_", html_of("stats_html"), nb::sig("def _repr_html_(self) -> str"))
      .def("__repr__", [](const Stats& self) {
        return fmt::format(
            "<penstock.Stats {} steps, {} samples in {:.2f} s, {:.0f} samples/s, waited for "
            "{:.1f}% of "
            "the time, bottleneck: {}>",
            self.steps, self.samples, self.seconds, rate_of(self), 100 * self.stall_fraction,
            self.bottleneck());
      });
}

// ---- loaders ----

nb::object to_dict(const LoaderState& state) {
  return nb::module_::import_("json").attr("loads")(state.to_json());
}
LoaderState to_state(nb::handle given) {
  const std::string shown = repr_of(given);
  if (nb::isinstance<nb::str>(given)) {
    const auto text = nb::cast<std::string>(given);
    if (text.find('{') == std::string::npos)
      throw std::invalid_argument(
          "load_state_dict takes what state_dict() returned, or its JSON, found " + shown +
          ": of a file, json.load(open(path))");
    return LoaderState::from_json(text);
  }
  if (PyMapping_Check(given.ptr()) == 0)
    throw nb::type_error(
        ("load_state_dict takes what state_dict() returned, or its JSON, found " + shown).c_str());
  return LoaderState::from_json(
      nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(given)));
}

[[noreturn]] void end_iteration() { throw nb::stop_iteration(); }

PyStep next_step(const LoaderHandle& self) {
  std::optional<Step> step = self->next();
  if (!step) end_iteration();
  return PyStep(*std::move(step));
}

void refuse_second_loop(const LoaderHandle& self) {
  if (without_gil([&] { return self->loader().has_ended(); }))
    throw std::logic_error(
        "this loader has ended: all its steps are delivered, or stop() was called, as `with` does "
        "at its end; call "
        "rewind() to begin again, load_state_dict() to continue from a state, or put repeat() into "
        "the plan and loop "
        "over loader.epochs()");
}

struct PyEpoch {
  LoaderHandle loader;
  std::uint32_t number;
};

struct PyEpochs {
  LoaderHandle loader;
  std::optional<std::uint32_t> current;
};

PyEpoch next_epoch(PyEpochs& self) {
  std::optional<std::uint32_t> upcoming = self.loader->next_epoch();
  while (upcoming && upcoming == self.current) {
    (void)self.loader->next();
    upcoming = self.loader->next_epoch();
  }
  self.current = upcoming;
  if (!upcoming) end_iteration();
  return {self.loader, *upcoming};
}

class PyDeviceLoader {
 public:
  PyDeviceLoader(LoaderHandle loader, std::size_t part)
      : loader_(std::move(loader)), device_(loader_->loader().device(part)) {}

  PyBatch next() {
    (void)loader_.get();
    std::optional<DeviceBatch> batch;
    wait_in_slices([&](std::chrono::nanoseconds slice) {
      if (!device_.wait_for(slice)) return false;
      batch = device_.next();
      return true;
    });
    if (!batch) end_iteration();
    return leased(*batch);
  }
  bool wait_for(std::optional<double> timeout_s) {
    (void)loader_.get();
    return wait_in_slices(timeout_s,
                          [&](std::chrono::nanoseconds slice) { return device_.wait_for(slice); });
  }
  [[nodiscard]] const Device& device() const { return device_.device(); }
  [[nodiscard]] std::size_t part() const { return device_.part(); }

 private:
  LoaderHandle loader_;
  DeviceLoader device_;
};

nb::object itself(nb::object self) { return self; }

void bind_iterators(nb::module_& module) {
  nb::class_<PyDeviceLoader>(module, "DeviceLoader", docs::DeviceLoader)
      .def("__iter__", &itself, nb::sig("def __iter__(self) -> DeviceLoader"))
      .def("__next__", &PyDeviceLoader::next)
      .def("wait_for", &PyDeviceLoader::wait_for, "timeout"_a.none() = nb::none(),
           "As Loader.wait_for.")
      .def_prop_ro("device", &PyDeviceLoader::device)
      .def_prop_ro("part", &PyDeviceLoader::part);

  nb::class_<PyEpoch>(module, "Epoch", docs::Epoch)
      .def_ro("number", &PyEpoch::number)
      .def("__iter__", &itself, nb::sig("def __iter__(self) -> Epoch"))
      .def("__next__", [](const PyEpoch& self) {
        if (self.loader->next_epoch() != self.number) end_iteration();
        return next_step(self.loader);
      });
  nb::class_<PyEpochs>(module, "Epochs", docs::Epochs)
      .def("__iter__", &itself, nb::sig("def __iter__(self) -> Epochs"))
      .def("__next__", &next_epoch);
}

template <class Call>
auto reading(Call call) {
  return [call](const LoaderHandle& self) {
    const Loader& loader = self->loader();
    return without_gil([&] { return call(loader); });
  };
}

void bind_running(nb::module_& module) {
  nb::class_<LoaderHandle>(
      module, "Loader",
      R"(The running input pipeline: an iterator over Steps, decoded ahead by its own threads.

Waiting releases the GIL; Ctrl-C interrupts it. Dropping a loader at any moment joins its
threads; batches that are still held stay valid. A loader cannot be used after a fork.

Threads  any; threads that share one take turns, and each gets different steps.)")
      .def(
          "__iter__",
          [](nb::object self) {
            refuse_second_loop(nb::cast<const LoaderHandle&>(self));
            return self;
          },
          nb::sig("def __iter__(self) -> Loader"), R"(Loops over what is left.

Errors  RuntimeError  the loader has ended: a second loop is an error, not silence)")
      .def(
          "__aiter__",
          [](nb::object self) {
            refuse_second_loop(nb::cast<const LoaderHandle&>(self));
            return nb::module_::import_("penstock._steps").attr("AsyncSteps")(self);
          },
          nb::sig("def __aiter__(self) -> collections.abc.AsyncIterator[Step]"),
          "async for step in loader: as the loop without async; other tasks run while it waits.")
      .def("_repr_html_", html_of("loader_html"), nb::sig("def _repr_html_(self) -> str"))
      .def("__repr__",
           [](const LoaderHandle& self) {
             const Loader& loader = self->loader();
             return without_gil([&] {
               const auto size = loader.size();
               std::string text =
                   fmt::format("<penstock.Loader, {} steps delivered in this run, {} in all, on",
                               loader.stats().steps, size ? std::to_string(*size) : "endless");
               for (const Device& device : loader.devices()) text += " " + device.to_string();
               for (const FieldSpec& field : loader.fields()) text += ", " + field.to_string();
               return text + ">";
             });
           })
      .def("__next__", &next_step, R"(The next step.

Errors  DataError  a fault that the policy does not tolerate, at its step and on every later call
        CudaError  a copy could not be queued; and on every later call
        Error      every slot is in a batch that you still hold: it would wait forever)")
      .def(
          "__len__",
          [](const LoaderHandle& self) {
            const auto steps = without_gil([&] { return self->loader().size(); });
            if (!steps) throw nb::type_error("this loader is endless: it has no len()");
            return *steps;
          },
          R"(Steps from the very start to the end of the plan.

Errors  TypeError  the plan is endless)")
      .def_prop_ro("size", reading([](const Loader& loader) { return loader.size(); }),
                   docs::loader_size)
      .def(
          "epochs",
          [](const LoaderHandle& self) {
            refuse_second_loop(self);
            return PyEpochs{self, std::nullopt};
          },
          R"(for epoch in loader.epochs(): for step in epoch: ...

A step belongs to the epoch of its first sample. Advancing to the next epoch skips what is
left of the current one.)")
      .def(
          "next_epoch", [](const LoaderHandle& self) { return self->next_epoch(); },
          docs::loader_next_epoch)
      .def(
          "wait_for",
          [](const LoaderHandle& self, std::optional<double> timeout) {
            return self->wait_for(timeout);
          },
          "timeout"_a.none() = nb::none(),
          R"(Waits up to `timeout` until the next step is ready; says whether it is. True also at the
end of the data, where next() returns at once.

Units   `timeout` in seconds; None: no limit.
Errors  as __next__)")
      .def("has_ended", reading([](const Loader& loader) { return loader.has_ended(); }),
           docs::loader_has_ended)
      .def(
          "device",
          [](const LoaderHandle& self, std::size_t part) {
            (void)self.get();
            return PyDeviceLoader(self, part);
          },
          "part"_a, docs::loader_device)
      .def(
          "start",
          [](const LoaderHandle& self) {
            without_gil([&] {
              self->loader().start();
              return 0;
            });
          },
          docs::loader_start)
      .def(
          "stop",
          [](const LoaderHandle& self) {
            without_gil([&] {
              self->stop();
              return 0;
            });
          },
          docs::loader_stop)
      .def("__enter__", &itself, nb::sig("def __enter__(self) -> Loader"))
      .def(
          "__exit__",
          [](const LoaderHandle& self, nb::handle, nb::handle, nb::handle) {
            without_gil([&] {
              self->stop();
              return 0;
            });
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object, /) -> None"),
          "stop().")
      .def(
          "facts",
          [](const LoaderHandle& self) {
            nb::dict facts;
            for (const Fact& fact : without_gil([&] { return self->loader().facts(); }))
              facts[fact.name.c_str()] = fact.value;
            return facts;
          },
          nb::sig("def facts(self) -> dict[str, str]"), docs::loader_facts)
      .def(
          "state_dict",
          [](const LoaderHandle& self) {
            return to_dict(without_gil([&] { return self->loader().state(); }));
          },
          nb::sig("def state_dict(self) -> dict[str, typing.Any]"),
          R"(What was delivered so far, not what was read ahead: plain values, a few hundred bytes as
JSON, the same format as in C++. The state of any process can be restored in any world. With
digests it waits as `digest` does.)")
      .def(
          "load_state_dict",
          [](const LoaderHandle& self, nb::handle state, bool other_maps) {
            self->restore(to_state(state), {.other_maps = other_maps});
          },
          "state"_a, nb::kw_only(), "other_maps"_a = false,
          nb::sig(
              "def load_state_dict(self, state: collections.abc.Mapping[str, typing.Any] | str, *, "
              "other_maps: bool = False) -> None"),
          docs::loader_restore)
      .def("_state_in_last_step_of_pass",
           [](const LoaderHandle& self) {
             LoaderState state = without_gil([&] { return self->loader().state(); });
             state.in_last_step_of_pass = true;
             return to_dict(state);
           })
      .def(
          "_seek",
          [](const LoaderHandle& self, std::uint64_t step) {
            LoaderState state = without_gil([&] { return self->loader().state(); });
            state.step = step;
            self->restore(state);
          },
          "step"_a)
      .def(
          "_give_back",
          [](const LoaderHandle& self, const PyStep& step) {
            self->restore(without_gil([&] { return without(self->loader().state(), *step); }));
          },
          "step"_a)
      .def(
          "row_tasks", [](const LoaderHandle& self) { return PyRowTasks(self); },
          nb::sig("def row_tasks(self) -> RowTasks"),
          "For workers elsewhere that make rows of its steps: see penstock.remote.")
      .def(
          "rewind", [](const LoaderHandle& self) { self->rewind(); }, docs::loader_rewind)
      .def(
          "set_weights",
          [](const LoaderHandle& self, std::uint64_t step, std::vector<double> weights) {
            self->set_weights(step, std::move(weights));
          },
          "step"_a, "weights"_a, docs::loader_set_weights)
      .def(
          "batch_at",
          [](const LoaderHandle& self, std::uint64_t step) {
            const Loader& loader = self->loader();
            return PyStep(interruptibly([&] { return loader.batch_at(step); }));
          },
          "step"_a, docs::loader_batch_at)
      .def_prop_ro("seed", reading([](const Loader& loader) { return loader.seed(); }),
                   docs::loader_seed)
      .def_prop_ro("devices",
                   reading([](const Loader& loader) { return listed(loader.devices()); }))
      .def_prop_ro("fields", reading([](const Loader& loader) { return listed(loader.fields()); }))
      .def("stats", reading([](const Loader& loader) { return loader.stats(); }))
      .def(
          "report", reading([](const Loader& loader) { return Report::of(loader); }),
          R"(How the run went so far: a page to print, as JSON, and advice on what limits the speed. Waits as
digest does.)")
      .def(
          "progress",
          [](const LoaderHandle& self, double window) {
            const Stats stats = self->recent(window);
            nb::dict progress;
            progress["samples_per_s"] = std::round(10 * rate_of(stats)) / 10;
            progress["stall"] = std::round(1000 * stats.stall_fraction) / 1000;
            progress["bottleneck"] = std::string(stats.bottleneck());
            return progress;
          },
          nb::kw_only(), "window"_a = 5.0,
          nb::sig("def progress(self, *, window: float = 5.0) -> dict[str, typing.Any]"),
          R"(Samples a second, the share of the time that the loop waited, and the stage that it waited for longest,
or "consumer" where the input keeps up. Short, for tqdm's set_postfix(loader.progress()).

Units  of the time since a call `window` seconds ago, or up to twice that: call it at each step or every few)")
      .def("samples_per_device",
           reading([](const Loader& loader) { return loader.samples_per_device(); }),
           docs::loader_samples_per_device)
      .def("faults", reading([](const Loader& loader) { return loader.faults(); }),
           docs::loader_faults)
      .def_prop_ro(
          "digest", reading([](const Loader& loader) { return loader.digest().to_string(); }),
          R"(Sum over everything delivered since the very start, 32 hexadecimal digits; zero
unless loader(digest=True). Waits until GPUs have hashed what was delivered; the next step
never waits for that.

Errors  CudaError  a GPU is lost)")
      .def_prop_ro("transformed_digest", reading([](const Loader& loader) {
                     return loader.transformed_digest().to_string();
                   }),
                   docs::loader_transformed_digest);
}

}  // namespace

void bind_loader(nb::module_& module) {
  bind_batches(module);
  bind_stats(module);
  bind_iterators(module);
  bind_running(module);
  module.def("_stop_all", &stop_all_loaders);
  // The loop of a C++ program, for measuring what Python's costs.
  module.def("_run_through", [](const LoaderHandle& self) {
    Loader& loader = self->loader();
    return without_gil([&] {
      std::uint64_t steps = 0;
      while (loader.next()) ++steps;
      return steps;
    });
  });
}

}  // namespace penstock::python
