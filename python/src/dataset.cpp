// The plan of an input pipeline.
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "casters.hpp"
#include "header_docs.hpp"
#include "loader_handle.hpp"
#include "python_exchange.hpp"
#include "python_source.hpp"
#include "remote_rows.hpp"
#include "worker_pool.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Seed = std::optional<std::uint64_t>;
// One for all channels, or one for each.
using Numbers = std::variant<float, std::vector<float>>;

// What C++ calls stddev is std here, in messages too.
template <class Call>
auto with_pythons_names(const Call& call) {
  try {
    return call();
  } catch (const std::invalid_argument& error) {
    std::string message = error.what();
    const std::string_view theirs = "stddev";
    if (const auto at = message.find(theirs); at != message.npos)
      message.replace(at, theirs.size(), "std");
    throw std::invalid_argument(message);
  }
}

std::vector<float> listed(const Numbers& numbers) {
  if (const float* const one = std::get_if<float>(&numbers)) return {*one};
  return std::get<std::vector<float>>(numbers);
}

Dataset filtered(const Dataset& self, nb::callable keep) {
  return self.filter([&](const RecordInfo& info) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return nb::cast<bool>(nb::bool_(keep(info)));
  });
}

// Names, or names with what to pad with.
std::vector<ByLengthOptions::Field> padded_fields(nb::handle fields) {
  std::vector<ByLengthOptions::Field> padded;
  if (nb::isinstance<nb::str>(fields)) return {{.name = nb::cast<std::string>(fields)}};
  try {
    if (nb::hasattr(fields, "items")) {
      for (const nb::handle item : nb::iter(fields.attr("items")()))
        padded.push_back(
            {.name = nb::cast<std::string>(item[0]), .value = nb::cast<double>(item[1])});
    } else {
      for (const nb::handle name : nb::iter(fields))
        padded.push_back({.name = nb::cast<std::string>(name)});
    }
  } catch (const std::bad_cast&) {
    throw nb::type_error(("fields: expected names such as ['tokens'], or names with numbers to pad "
                          "with such as {'tokens': 0}, found " +
                          repr_of(fields))
                             .c_str());
  }
  return padded;
}

LoaderHandle run(const Dataset& self, const Choice<OnFault>& on_fault,
                 std::optional<std::uint64_t> max_faults, std::optional<double> max_fault_rate,
                 const std::optional<InputContext>& context, const Choice<InputMode>& mode,
                 const Choice<ShardPolicy>& shards, bool digest, bool digest_transformed,
                 int threads, std::optional<int> io_threads, int attempts, double initial_backoff_s,
                 const std::optional<PyThreadBudget>& thread_budget, std::size_t budget_bytes,
                 nb::handle exchange, nb::handle remote, bool decode_on_gpu) {
  if (!(initial_backoff_s >= 0 && initial_backoff_s <= 3600))
    throw std::invalid_argument("initial_backoff_s is a wait of 0 to 3600 seconds");
  const LoaderOptions options{
      .faults = {.policy = on_fault.value("on_fault"),
                 .max_count = max_faults,
                 .max_rate = max_fault_rate},
      .context = context,
      .mode = mode.value("mode"),
      .exchange = exchange.is_none() ? Exchange() : exchange_of(exchange),
      .shards = shards.value("shards"),
      .digest = digest,
      .digest_transformed = digest_transformed,
      .decode_on_gpu = decode_on_gpu,
      .threads = threads,
      .io_threads = io_threads,
      .retry = {.attempts = attempts,
                .initial_backoff =
                    std::chrono::milliseconds(static_cast<std::int64_t>(initial_backoff_s * 1e3))},
      .thread_budget = thread_budget ? thread_budget->budget : nullptr,
      .budget_bytes = budget_bytes,
  };
  if (!remote.is_none() &&
      (nb::isinstance<nb::type_object>(remote) || !nb::hasattr(remote, "attach")))
    throw nb::type_error(("remote: expected a penstock.remote.Workers, such as "
                          "penstock.remote.Processes(4), found " +
                          repr_of(remote))
                             .c_str());
  LoaderHandle loader(without_gil([&] { return self.loader(options); }));
  if (!remote.is_none()) remote.attr("attach")(nb::cast(self), nb::cast(PyRowTasks(loader)));
  return loader;
}

void bind_order(nb::class_<Dataset>& dataset) {
  dataset
      .def("filter", &filtered, "keep"_a,
           nb::sig("def filter(self, keep: collections.abc.Callable[[RecordInfo], object]) -> "
                   "Dataset"),
           R"(Only the records for which `keep` is true; nothing is decoded for it. They keep their
numbers. Must come before every operation on positions. `keep` is called here, once a record.

Errors  ValueError  it comes after an operation on positions, or nothing is kept)")
      .def(
          "rename",
          [](const Dataset& self, const NamesGiven& names) { return self.rename(names.value()); },
          "names"_a,
          R"(Fields of the source under other names, {"image": "mask"}, with the same bytes: so that two sources fit
beside each other, or, under several, {"image": ("image", "second")}, so that two transforms take the same image.
What is not named keeps its name. Must come right behind the source.

    photos, masks = ps.image_folder("photos"), ps.image_folder("masks")
    ps.zip([photos, masks.rename({"image": "mask", "label": "mask_label"})])

Errors  ValueError  another operation stands before it; no such field; a name that two fields would have)")
      .def_prop_ro(
          "packed", &Dataset::packed,
          "What came of pack(): all rows, also where a later operation leaves some out. None where "
          "the plan does not begin with packed rows of its own.");
  def(dataset, calls::dataset_blocks(), {"length"});
  def(dataset, calls::dataset_pack(), {"length"});
  def(dataset, calls::dataset_seed());
  def(dataset, calls::dataset_shuffle());
  def(dataset, calls::dataset_repeat());
  def(dataset, calls::dataset_take());
  def(dataset, calls::dataset_skip());
  def(dataset, calls::dataset_shard());
  def(dataset, calls::dataset_repeat_each());
  def(dataset, calls::dataset_select());
  def(dataset, calls::dataset_sample());
}

void bind_batching(nb::class_<Dataset>& dataset) {
  def(dataset, calls::dataset_batch());
  def(dataset, calls::dataset_prefetch_to_devices());
  dataset
      .def(
          "map",
          [](const Dataset& self, nb::handle function, nb::handle outputs, nb::handle inputs,
             nb::handle name) {
            if (nb::isinstance<PyTransform>(function)) {
              if (!outputs.is_none() || !inputs.is_none() || !name.is_none())
                throw std::invalid_argument(
                    "map: outputs, inputs and name are for a Python function; a Transform has its "
                    "own");
              return self.map(nb::cast<const PyTransform&>(function).transform);
            }
            const std::string hint = outputs.is_none() ? hint_at(function) : "";
            if (PyCallable_Check(function.ptr()) == 0 || !hint.empty())
              throw nb::type_error(("map takes a Transform such as decode_image(...), or a Python "
                                    "function with its outputs, found " +
                                    repr_of(function) + hint)
                                       .c_str());
            if (outputs.is_none())
              throw std::invalid_argument(
                  "map: a Python function needs outputs, the fields that it returns: "
                  "map(function, outputs={'image': ('f32', (3, 224, 224))})");
            const nb::object transform =
                nb::module_::import_("penstock._map")
                    .attr("map_function")(function, "inputs"_a = inputs, "outputs"_a = outputs,
                                          "name"_a = name);
            return self.map(nb::cast<const PyTransform&>(transform).transform);
          },
          "transform"_a, nb::kw_only(), "outputs"_a.none() = nb::none(),
          "inputs"_a.none() = nb::none(), "name"_a.none() = nb::none(),
          nb::sig(
              "def map(self, transform: Transform | collections.abc.Callable[..., typing.Any], "
              "*, outputs: collections.abc.Sequence[FieldSpec] | "
              "collections.abc.Mapping[str, tuple[str, collections.abc.Sequence[int | None]]] | "
              "None = None, inputs: collections.abc.Sequence[str] | None = None, name: str | "
              "None = None) -> Dataset"),
          R"(One more transform of every sample: a Transform, or a Python function with its `outputs`,
see map_function. Before or after shuffle makes no difference.

Errors  ValueError  a function without outputs; as map_function; a field that it takes is missing)")
      .def(
          "batch_by_length",
          [](const Dataset& self, std::vector<std::int64_t> edges,
             std::optional<std::uint64_t> tokens, std::vector<std::uint64_t> rows,
             std::uint64_t multiple, nb::handle fields, std::string lengths,
             const Choice<LongSamples>& long_samples, const Choice<Remainder>& remainder,
             bool uneven, bool shuffle, Seed seed, bool reshuffle) {
            const ByLengthOptions options{.edges = std::move(edges),
                                          .tokens = tokens,
                                          .rows = std::move(rows),
                                          .multiple = multiple,
                                          .fields = padded_fields(fields),
                                          .lengths = std::move(lengths),
                                          .long_samples = long_samples.value("long_samples"),
                                          .shuffle = shuffle,
                                          .seed = seed,
                                          .reshuffle_each_epoch = reshuffle};
            const BatchOptions batch{.remainder = remainder.value("remainder"), .uneven = uneven};
            return without_gil([&] { return self.batch_by_length(options, batch); });
          },
          "edges"_a, nb::kw_only(), "tokens"_a.none() = nb::none(),
          nb::arg("rows").sig("()") = nb::tuple(), "multiple"_a = 1,
          nb::arg("fields").sig("('tokens',)") = nb::make_tuple("tokens"), "lengths"_a = "lengths",
          "long_samples"_a = Choice<LongSamples>{"refuse"},
          "remainder"_a = Choice<Remainder>{"keep"}, "uneven"_a = false, "shuffle"_a = true,
          "seed"_a.none() = nb::none(), "reshuffle_each_epoch"_a = true,
          nb::sig(
              fmt::format(
                  "def batch_by_length(self, edges: collections.abc.Sequence[int], *, "
                  "tokens: int | None = None, rows: collections.abc.Sequence[int] = (), "
                  "multiple: int = 1, fields: collections.abc.Sequence[str] | "
                  "collections.abc.Mapping[str, float] = ('tokens',), lengths: str = 'lengths', "
                  "long_samples: {} = 'refuse', remainder: {} = 'keep', "
                  "uneven: bool = False, shuffle: bool = True, "
                  "seed: int | None = None, reshuffle_each_epoch: bool = True) -> Dataset",
                  literal_of<LongSamples>().text, literal_of<Remainder>().text)
                  .c_str()),
          R"(Global batches of samples of similar lengths, each batch padded to the longest that its bucket
may have: short samples make batches of many rows, long ones of few. Which samples make up a batch is
computed here from their lengths, which are read once, by all cores; so any step can be read at once,
and is the same on any number of devices and processes. Every epoch has the same number of batches.
Comes right behind the source, or what chooses among its samples (filter, take, skip, shard, select)
and maps; instead of shuffle, and before repeat.

`edges`: bucket k has the samples longer than edges[k - 1] and at most as long as edges[k].
`tokens`: of a global batch at the most, padding counted: a batch of bucket k has tokens // edges[k]
rows, rounded down to a multiple of `multiple`: the number of replicas, or of all numbers of them that
a run will be resumed on. Or `rows`: of a global batch, one number a bucket.
`fields`: all those of shape [?, ...], which are padded: their names (with 0), or a mapping from name
to value. The first one's length is that of the sample, as its source says it, before any map (of a
zip, the source that has the field); the field `lengths` i64 [] behind it has it ("" for none).
`long_samples`, those longer than the last edge: "refuse" them here, "drop" them, or "truncate" all
their padded fields. `remainder`: of a bucket's last batch, which with "keep" may leave replicas
with fewer rows than others, or none. `shuffle`: a random order of the samples within each bucket, and
of the batches of all; False: by length, the shortest first.

Shapes  a padded field has [rows, edge, ...], both different from batch to batch
Memory  4 bytes a sample
Errors  ValueError  options that contradict each other; a plan whose samples have an order of their
                    own; a field that is not of shape [?, ...]
        Error       a length that is not known; a sample longer than the last edge
A sample that turns out longer than its bucket (a map made it so, its file was changed) is a fault.)")
      .def_prop_ro("buckets", &Dataset::buckets,
                   "What came of batch_by_length; None where the plan has none.")
      .def(
          "transform_on_device",
          [](const Dataset& self, std::string field, std::vector<Augmentation> augment,
             const std::string& dtype, const Choice<ImageLayout>& layout, const Numbers& mean,
             const Numbers& stddev, double flip, double mixup, double cutmix,
             double mix_probability, double cutmix_share, std::int64_t classes,
             double label_smoothing, std::string label, const std::optional<RandomErasing>& erase,
             bool on_consumer_stream) {
            return with_pythons_names([&] {
              return self.transform_on_device({.field = std::move(field),
                                               .augment = std::move(augment),
                                               .dtype = parse_dtype(dtype),
                                               .layout = layout.value("layout"),
                                               .mean = listed(mean),
                                               .stddev = listed(stddev),
                                               .flip = flip,
                                               .mixup = mixup,
                                               .cutmix = cutmix,
                                               .mix_probability = mix_probability,
                                               .cutmix_share = cutmix_share,
                                               .classes = classes,
                                               .label_smoothing = label_smoothing,
                                               .label = std::move(label),
                                               .erase = erase.value_or(RandomErasing{}),
                                               .on_consumer_stream = on_consumer_stream});
            });
          },
          nb::kw_only(), "field"_a = "image", nb::arg("augment").sig("()") = nb::tuple(),
          "dtype"_a = "f32", "layout"_a = Choice<ImageLayout>{"nchw"},
          nb::arg("mean").sig("()") = nb::tuple(), nb::arg("std").sig("()") = nb::tuple(),
          "flip"_a = 0.0, "mixup"_a = 0.0, "cutmix"_a = 0.0, "mix_probability"_a = 1.0,
          "cutmix_share"_a = 0.5, "classes"_a = 0, "label_smoothing"_a = 0.0, "label"_a = "label",
          "erase"_a.none() = nb::none(), "on_consumer_stream"_a = false,
          R"(Converts images for the network on their device: `augment`, then in one pass type ("f32",
"f16" or "bf16"), `layout`, normalisation, flip, mixup, cutmix, erasing. After batch.

Pixels count from 0 to 1; `mean` is subtracted, then divided by `std`: one number per
channel or one for all. `flip` is the probability of a horizontal flip. `mixup`, `cutmix`:
alpha of the Beta distribution of weights, 0 for none; with both, each row takes one of
them, cutmix with a probability of `cutmix_share`; `mix_probability` is that of being mixed at all.
With either there are two more fields: mix_row i32 [], the row of the same part that
was mixed into this one, and mix_weight f32 [], this row's own share:
loss = mix_weight * loss(label) + (1 - mix_weight) * loss(label[mix_row]).

With `classes` there is one more field, target f32 [classes]: the `label` as probabilities, of which
`label_smoothing` is shared by all classes alike, and mixed as the image is: torch's cross_entropy
takes it in place of labels.

`augment`: operations of penstock.augment, done first, to images of 1 or 3 channels: on a GPU in a few
passes behind the copy, on a host device sample by sample in the loader's threads, with the same levels. What is drawn
depends on the seed, the epoch, the sample, its draw and the view alone; augment_image draws other numbers.

Shapes  in: `field` u8 [H,W,C]; out: `field` [C,H,W], or [H,W,C] for "nhwc". Of views of an image, u8
        [views,H,W,C], each is flipped and erased by itself, and all are put out: [views,C,H,W].
Stream  on a GPU the loader's own, or with `on_consumer_stream` the one that first waits.
Errors  ValueError  before batch; no such image; options out of range)")
      .def("loader", &run, nb::kw_only(), "on_fault"_a = Choice<OnFault>{"raise"},
           "max_faults"_a.none() = nb::none(), "max_fault_rate"_a.none() = nb::none(),
           "context"_a.none() = nb::none(), "mode"_a = Choice<InputMode>{"one"},
           "shards"_a = Choice<ShardPolicy>{"data"}, "digest"_a = false,
           "digest_transformed"_a = false, "threads"_a = 0, "io_threads"_a.none() = nb::none(),
           "attempts"_a = 5, "initial_backoff_s"_a = 0.05, "thread_budget"_a.none() = nb::none(),
           "budget_bytes"_a = 0, "exchange"_a.none() = nb::none(), "remote"_a.none() = nb::none(),
           "decode_on_gpu"_a = false,
           R"(The running iterator. Reading starts with its first step, or with start().

`on_fault`: "raise" a DataError at the step that a bad sample belongs to, "replace" it by
another sample, or "mask" its row, which is zero-filled and marked in the field "valid".
More than `max_faults`, or a larger share than `max_fault_rate`, raise under every policy.
`context`: this process's place; by default from the launcher. `mode`, `shards`: whether
all processes share "one" order or have their own, and over which samples. `digest`: sums a
digest of all fields of the samples, before transform_on_device; on GPUs of what has arrived there.
`digest_transformed`: sums another one, of the images that transform_on_device made.

A read that fails with a transient error, as on a network disk, is retried, up to
`attempts` in all: after `initial_backoff_s`, then twice as long each time.

Speed only: `threads` that decode, by default one per core; `io_threads` that read ahead of
them, by default 4 for files, 32 for objects (s3://) and 0 for what lies in memory; a `thread_budget` shared with
other loaders; `budget_bytes`, the most that the loader may hold, 0 for no limit. With `decode_on_gpu`, CUDA
devices decode JPEGs that the index of decode_image has; the CPU decodes the others, into the same batches. It takes
at most 1 GiB of a GPU's memory.

`exchange`: gives every process the texts of all, in the order of their ranks, such as
`penstock.sync.connect().exchange`. With one, the first step, and the first after load_state_dict
or rewind, compares facts() of all processes: where plan, data, seed or position differ, that is
an Error in each that names both. It is called once in every process, on the thread of that step.

`remote`: others that make rows of the steps, too, such as penstock.ray.Workers(8): the batches are the same.

Errors  ValueError  no batch in the plan; options that do not fit it or each other
        CudaError   a device that cannot be used
        Error       the byte budget is too small for two slots)");
}

void bind_joins(nb::module_& module) {
  def(module, calls::mix());
  def(module, calls::concatenate());
  def(module, calls::zip());
}

}  // namespace

// Before the factories, which return one.
void declare_dataset(nb::module_& module) {
  nb::class_<RandomErasing>(module, "RandomErasing",
                            "A rectangle of each image that is painted over, as in torchvision. "
                            "For Dataset.transform_on_device.")
      .def(
          "__init__",
          [](RandomErasing* self, double probability, std::pair<double, double> area,
             std::pair<double, double> ratio, const Numbers& value) {
            new (self) RandomErasing{.probability = probability,
                                     .min_area = area.first,
                                     .max_area = area.second,
                                     .min_ratio = ratio.first,
                                     .max_ratio = ratio.second,
                                     .value = listed(value)};
          },
          "probability"_a, nb::kw_only(),
          nb::arg("area").sig("(0.02, 0.33)") = std::pair(0.02, 0.33),
          nb::arg("ratio").sig("(0.3, 3.3)") = std::pair(0.3, 3.3),
          nb::arg("value").sig("()") = nb::tuple(),
          R"(`area` is the share of the image's, `ratio` height over width. `value`: one number per
channel or one for all, in normalised units; by default 0, which is the mean.

Source  Zhong, Zheng, Kang, Li, Yang: Random Erasing Data Augmentation (AAAI 2020))")
      .def(ExplainedConstructor())
      .def_ro("probability", &RandomErasing::probability)
      .def(
          "__reduce__",
          [](const RandomErasing& self) {
            nb::dict options;
            options["area"] = nb::make_tuple(self.min_area, self.max_area);
            options["ratio"] = nb::make_tuple(self.min_ratio, self.max_ratio);
            options["value"] = nb::cast(self.value);
            return reduced(nb::type<RandomErasing>(), nb::make_tuple(self.probability), options);
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__repr__", [](const RandomErasing& self) {
        return fmt::format("RandomErasing({}, area=({}, {}), ratio=({}, {}), value=[{}])",
                           self.probability, self.min_area, self.max_area, self.min_ratio,
                           self.max_ratio, fmt::join(self.value, ", "));
      });
  nb::class_<PackSummary>(module, "PackSummary", "What came of packing: Dataset.packed.")
      .def_ro("rows", &PackSummary::rows)
      .def_ro("documents", &PackSummary::documents, "Of the source.")
      .def_ro("tokens", &PackSummary::tokens, "In rows.")
      .def_ro("dropped", &PackSummary::dropped,
              "Tokens that are in no row: long_documents 'truncate' or 'drop'.")
      .def_ro("most_documents", &PackSummary::most_documents,
              "In a row; parts of split ones count. 0 for wrap without cu_seqlens: not counted.")
      .def_ro("padding_share", &PackSummary::padding_share, "Of the tokens of all rows.")
      .def("__repr__", [](const PackSummary& self) {
        return fmt::format(
            "PackSummary(rows={}, documents={}, tokens={}, dropped={}, "
            "most_documents={}, padding_share={:.4f})",
            self.rows, self.documents, self.tokens, self.dropped, self.most_documents,
            self.padding_share);
      });
  nb::class_<ByLengthSummary::Bucket>(module, "LengthBucket", "One of LengthBuckets.buckets.")
      .def_ro("edge", &ByLengthSummary::Bucket::edge, "What its batches are padded to.")
      .def_ro("rows", &ByLengthSummary::Bucket::rows, "Of a full global batch.")
      .def_ro("samples", &ByLengthSummary::Bucket::samples)
      .def("__repr__", [](const ByLengthSummary::Bucket& self) {
        return fmt::format("LengthBucket(edge={}, rows={}, samples={})", self.edge, self.rows,
                           self.samples);
      });
  nb::class_<ByLengthSummary>(module, "LengthBuckets",
                              "What came of batch_by_length: Dataset.buckets.")
      .def_ro("buckets", &ByLengthSummary::buckets)
      .def_ro("batches", &ByLengthSummary::batches, "Of an epoch.")
      .def_ro("samples", &ByLengthSummary::samples, "In them.")
      .def_ro("dropped", &ByLengthSummary::dropped,
              "Samples in none: long_samples 'drop', and in each epoch others by remainder 'drop'.")
      .def_ro(
          "padding_share", &ByLengthSummary::padding_share,
          "Of the tokens of all sorted samples, those that remainder 'drop' leaves out among them.")
      .def("__repr__", [](const ByLengthSummary& self) {
        return fmt::format(
            "LengthBuckets({} buckets, batches={}, samples={}, dropped={}, padding_share={:.4f})",
            self.buckets.size(), self.batches, self.samples, self.dropped, self.padding_share);
      });
  declare_aspects(module);
  nb::class_<Dataset> dataset(
      module, "Dataset",
      R"(What to read, in which order, how to transform and batch it, and where it goes.

Immutable: every call returns a new plan. A plan that cannot work fails in the call that
makes it so; the message says what to do. Nothing is read before a Loader runs.)");
  dataset.def(
      "__init__",
      [](Dataset* self, nb::handle data, nb::handle fields, nb::handle names, int workers,
         nb::handle lengths) {
        if (nb::isinstance<PyStream>(data)) {
          if (!fields.is_none() || !names.is_none() || workers != 0 || !lengths.is_none())
            throw std::invalid_argument(
                "Dataset: fields, names, workers and lengths are for an object with items; a "
                "stream has its own fields");
          new (self) Dataset(nb::cast<const PyStream&>(data).stream);
        } else {
          new (self) Dataset(source_of_items(data, fields, names, workers, lengths));
        }
      },
      "data"_a, nb::kw_only(), "fields"_a.none() = nb::none(), "names"_a.none() = nb::none(),
      "workers"_a = 0, "lengths"_a.none() = nb::none(),
      nb::sig("def __init__(self, data: Stream | typing.Any, *, fields: "
              "collections.abc.Sequence[FieldSpec] | collections.abc.Mapping[str, tuple[str, "
              "collections.abc.Sequence[int | None]]] | None = None, names: "
              "collections.abc.Sequence[str] | None = None, workers: int = 0, lengths: "
              "collections.abc.Sequence[int] | typing.Any = None) -> None"),
      R"(The items of any object with __len__ and __getitem__: a PyTorch or Hugging Face data set, a
list; shuffled, sharded, repeated and resumed as any source. Or the records of a stream, as they
arrive: Dataset(queue).

An item is a dict by field name; a tuple, whose parts `names` names; or a single value, the field
"item". Values are arrays and tensors, PIL images (u8 [H,W,C]), numbers, bytes and strings (u8 [?]).
`fields` says what they are, as in map_function; by default the first, the middle and the last
item do, and an extent in which these differ may differ.

The loader's threads call data[i], with the GIL. Where the code holds it for long, give `workers`:
so many processes (spawn; the data set must pickle, and the program needs its
if __name__ == "__main__"), with the fields in shared memory. A worker seeds random, numpy and torch
from (seed, epoch, number, draw) before each item, so that what is random in it resumes; with
threads such randomness is different in every run.

`lengths`: the number of tokens of each item, in the field that is packed, for pack and blocks, which
compute with them before an item is read. Fields of one dimension then differ in length.

Errors  TypeError   no __len__ or __getitem__
        ValueError  no items and no fields, tuples without names, values of which no array can be
                    made; not one length for each item)");
  dataset.def(ExplainedConstructor());
  bind_order(dataset);
  bind_batching(dataset);
  bind_aspects(dataset);
  dataset
      .def_prop_ro("size", &Dataset::size,
                   "Samples, or after batch global batches; None when endless.")
      .def(
          "__len__",
          [](const Dataset& self) {
            const auto size = self.size();
            if (!size)
              throw nb::type_error(
                  self.is_stream()
                      ? "this dataset reads a stream, which ends when it ends: it has no len()"
                      : "this dataset is endless: it has no len()");
            return *size;
          },
          R"(The same.

Errors  TypeError  the plan is endless, or reads a stream)")
      .def_prop_ro(
          "samples", &Dataset::samples,
          "Samples in all, also after batch: at the most, where a batch at the end is smaller and "
          "skip or take chose among the batches. None when endless.")
      .def_prop_ro("is_stream", &Dataset::is_stream,
                   "Whether the records come once, as they arrive: a Queue or a generator.")
      .def_prop_ro("batch_size", &Dataset::batch_size,
                   "Samples in a global batch; None where there is no batch yet.")
      .def_prop_ro(
          "remainder",
          [](const Dataset& self) -> std::optional<Choice<Remainder>> {
            const auto remainder = self.remainder();
            if (!remainder) return std::nullopt;
            return Choice<Remainder>{name_of(*remainder)};
          },
          "\"keep\", \"drop\" or \"pad\", as batch says it; None where there is no batch yet.")
      .def_prop_ro("devices", &Dataset::devices, "Those of prefetch_to_devices; empty before it.")
      .def_prop_ro(
          "jpeg_index",
          [](const Dataset& self) -> nb::object {
            auto index = self.jpeg_index();
            if (auto memory = std::dynamic_pointer_cast<MemoryJpegIndex>(index))
              return nb::cast(PyMemoryJpegIndex{{memory}, memory});
            return index ? nb::cast(PyJpegIndex{std::move(index)}) : nb::none();
          },
          nb::sig("def jpeg_index(self) -> JpegIndex | None"),
          R"(The index of the plan's first decode_image or decode_views that has one. It does not travel with the plan: a
pickled plan has an empty one of its own in its place.)")
      .def("__bool__", [](const Dataset&) { return true; })
      .def_prop_ro("fields", &Dataset::fields,
                   "The fields of a sample, after the transforms so far.")
      .def_prop_ro(
          "class_names",
          [](const Dataset& self) {
            const auto names = self.source().class_names();
            return std::vector<std::string>(names.begin(), names.end());
          },
          "Where labels have names: label i is class_names[i].")
      .def(
          "describe", &Dataset::describe,
          R"doc(One operation a piece: "image_folder(...).shuffle(seed=7).repeat().batch(256)".)doc")
      .def("__repr__", shown_by("plan_text"), nb::sig("def __repr__(self) -> str"),
           "As Python that makes the plan, with penstock as ps; describe() where there is none.")
      .def("_repr_html_", shown_by("plan_html"), nb::sig("def _repr_html_(self) -> str"));
  bind_plans(dataset);
}

void bind_dataset(nb::module_& module) {
  bind_joins(module);
  bind_image_sizes(module);
  module.def("_serve_items", &serve_items, "items"_a, "fields"_a, "socket"_a, "blocks"_a, "seed"_a);
}

}  // namespace penstock::python
