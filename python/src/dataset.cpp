// The plan of an input pipeline.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bucket_fields.hpp"
#include "casters.hpp"
#include "header_docs.hpp"
#include "host_array.hpp"
#include "loader_handle.hpp"
#include "python_exchange.hpp"
#include "python_source.hpp"
#include "remote_rows.hpp"
#include "waiting.hpp"
#include "worker_pool.hpp"

namespace penstock::python {

template <>
struct PythonClass<RandomErasing> {
  static constexpr const char* kName = "RandomErasing";
  static constexpr const char* kByPosition[] = {"probability"};
};

/// A penstock.remote.Workers; none where it is not valid.
struct RemoteWorkers {
  nb::object object;
};
template <>
struct PythonValue<RemoteWorkers> {
  static std::string type() { return "typing.Any"; }
  static std::string text(const RemoteWorkers&) { return "None"; }
  /// Errors  nb::type_error  something else
  static RemoteWorkers value(nb::handle given, const char*) {
    if (given.is_none()) return {};
    if (nb::isinstance<nb::type_object>(given) || !nb::hasattr(given, "attach"))
      throw nb::type_error(("remote: expected a penstock.remote.Workers, such as "
                            "penstock.remote.Processes(4), found " +
                            repr_of(given))
                               .c_str());
    return {nb::borrow(given)};
  }
};
/// Numbers, or the name of the field that has them.
template <>
struct PythonValue<PerSample<double>> {
  static std::string type() { return "str | " + type_of<std::vector<double>>(); }
  static PerSample<double> value(nb::handle given, const char* argument) {
    if (nb::isinstance<nb::str>(given)) return from_python<std::string>(given, argument);
    return from_python<std::vector<double>>(given, argument);
  }
};

template <>
struct PythonValue<LoaderHandle> {
  static std::string type() { return "Loader"; }
};

template <>
struct PythonValue<Exchange> {
  static std::string type() { return "collections.abc.Callable[[str], list[str]] | None"; }
  static std::string text(const Exchange&) { return "None"; }
  static Exchange value(nb::handle given, const char*) {
    if (given.is_none()) return {};
    if (PyCallable_Check(given.ptr()) == 0) throw nb::next_overload();
    return exchange_of(given);
  }
};

/// New names of fields: a mapping of fields to names, or to sequences of them.
template <>
struct PythonValue<std::vector<FieldName>> {
  static std::string type() {
    return "collections.abc.Mapping[str, str | collections.abc.Sequence[str]]";
  }
  /// Errors  nb::type_error  something else
  static std::vector<FieldName> value(nb::handle given, const char* argument) {
    if (PyMapping_Check(given.ptr()) == 0 || !nb::hasattr(given, "items"))
      throw nb::type_error(
          ("expected new names by fields, such as {'image': 'mask'}, found " + repr_of(given))
              .c_str());
    std::vector<FieldName> all;
    for (const nb::handle item : given.attr("items")()) {
      std::string field;
      if (!nb::try_cast(item[0], field))
        throw nb::type_error(("expected the name of a field, found " + repr_of(item[0])).c_str());
      try {
        for (std::string& name : from_python<std::vector<std::string>>(item[1], argument))
          all.push_back({field, std::move(name)});
      } catch (const nb::builtin_exception&) {  // of another type
        throw nb::type_error(utf8_of("expected a new name of '" + field +
                                     "', or a list of them, found " + repr_of(item[1]))
                                 .c_str());
      }
    }
    return all;
  }
};

namespace {

using namespace nb::literals;

nb::object split(nb::handle self, nb::handle fractions, std::uint64_t seed, nb::handle by,
                 nb::handle group) {
  return nb::module_::import_("penstock._split").attr("split")(self, fractions, seed, by, group);
}

// A list, or the name of a field.
PerSample<std::int64_t> classes_of(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
  return nb::cast<std::vector<std::int64_t>>(given);
}

// Texts as Python has names of files: bytes that are no UTF-8 are kept.
nb::object values_of(const Dataset& self, const std::string& name) {
  const auto values = interruptibly([&] { return self.column(name); });
  if (const auto* const numbers = std::get_if<Column>(&values))
    return copy_to_numpy(
        {numbers->bytes.data(),
         numbers->spec.dtype,
         {static_cast<std::int64_t>(numbers->bytes.size() / size_of(numbers->spec.dtype))}});
  nb::list texts;
  for (const std::string& text : std::get<std::vector<std::string>>(values))
    texts.append(nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                                "surrogateescape")));
  return texts;
}

Dataset where_of(const Dataset& self, const std::string& condition) {
  return interruptibly([&] { return self.where(condition); });
}

Dataset joined(const Dataset& self, const Dataset& table, const JoinOptions& options) {
  return interruptibly([&] { return self.join(table, options); });
}

Dataset filtered(const Dataset& self, nb::callable keep) {
  return self.filter([&](const RecordInfo& info) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return nb::cast<bool>(nb::bool_(keep(info)));
  });
}

LoaderHandle run(const Dataset& self, const LoaderOptions& options, const RemoteWorkers& remote) {
  std::vector<Notice> notices;
  LoaderHandle loader(without_gil([&] {
    Loader made = self.loader(options);
    const InputContext context = options.context ? *options.context : InputContext::from();
    if (context.input_pipeline_id == 0) notices = made.notices();  // once, not in every process
    return made;
  }));
  warn_of(notices);
  if (remote.object.is_valid())
    remote.object.attr("attach")(nb::cast(self), nb::cast(PyRowTasks(loader)));
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
      .def_prop_ro("packed", &Dataset::packed, docs::dataset_packed)
      .def(
          "split",
          [](nb::handle self, nb::dict fractions, std::uint64_t seed, nb::handle by,
             nb::handle group) { return split(self, fractions, seed, by, group); },
          "fractions"_a, nb::kw_only(), "seed"_a = 0, "by"_a.none() = nb::none(),
          "group"_a.none() = nb::none(),
          nb::sig("def split(self, fractions: dict[str, float], *, seed: int = 0, by: typing.Any = "
                  "None, group: typing.Any = None) -> dict[str, Dataset]"))
      .def(
          "split",
          [](nb::handle self, nb::handle fractions, std::uint64_t seed, nb::handle by,
             nb::handle group) { return split(self, fractions, seed, by, group); },
          "fractions"_a, nb::kw_only(), "seed"_a = 0, "by"_a.none() = nb::none(),
          "group"_a.none() = nb::none(),
          nb::sig("def split(self, fractions: float | collections.abc.Sequence[float], *, seed: "
                  "int = 0, "
                  "by: typing.Any = None, group: typing.Any = None) -> list[Dataset]"),
          R"(Splits the samples at random into disjoint parts: train, valid = dataset.split(0.9). Each part is this
plan with one select(), which keeps the samples in their order, so shuffle the parts. It comes before every operation
that changes the samples or their order from epoch to epoch.

`fractions`  of the samples; they add up to 1. One number f is (f, 1 - f). {"train": 0.9, "valid": 0.1} gives the parts
             by these names.
`seed`       which split it is; the same one for the same samples, on any machine and in C++.
`by`         a class of each sample, of which each part gets its fraction (stratified): the name of a field of integers or
             texts, a sequence or an array with a value for each sample, or a function of its RecordInfo, as of filter.
`group`      the same for groups, such as patients: all samples of a group go to one part. Not with `by`.

With two parts the number of samples in each, in all and of each class, is its fraction to within one sample; with
three to within two, with more to within a few; with `group` to within about the largest group.

Memory  8 bytes a sample, in the lists of all parts together: 10 MB for 1.2 million; 34 MB more during the call, and
        Python's own for `by` and `group`
Errors  ValueError  fractions that are not above 0, or do not add up to 1; a part without samples; not one class or group
                    for each sample, or both; a stream; an operation before it that has another order in each epoch,
                    or batch
        Error       a record that cannot be read for `by` or `group`)")
      .def(
          "labels",
          [](const Dataset& self) {
            const std::vector<std::int64_t> labels = without_gil([&] { return self.labels(); });
            return copy_to_numpy({std::as_bytes(std::span(labels)).data(),
                                  DType::i64,
                                  {static_cast<std::int64_t>(labels.size())}});
          },
          nb::sig("def labels(self) -> numpy.ndarray"), docs::dataset_labels)
      .def("column", &values_of, "name"_a,
           nb::sig("def column(self, name: str) -> numpy.ndarray | list[str]"),
           (std::string(docs::dataset_column) +
            "\n\nAn array of numpy, or a list of str, in which bytes that are not UTF-8 are as "
            "os.fsdecode() has them.")
               .c_str())
      .def(
          "_classify",
          [](const Dataset& self, nb::callable class_of) {
            return self.classify([&](const RecordInfo& info) {
              if (PyErr_CheckSignals() != 0) throw nb::python_error();
              return nb::cast<std::int64_t>(class_of(info));
            });
          },
          "class_of"_a)
      .def(
          "_split",
          [](const Dataset& self, const std::vector<double>& fractions, std::uint64_t seed,
             nb::handle by, nb::handle group) {
            const SplitOptions options{
                .seed = seed, .by = classes_of(by), .group = classes_of(group)};
            return interruptibly([&] { return self.split(fractions, options); });
          },
          "fractions"_a, "seed"_a, "by"_a, "group"_a);
  const auto where = calls::dataset_where();
  def(dataset, Call{where.name, WithGil{&where_of}, where.doc, std::get<0>(where.parameters)});
  def(dataset, calls::dataset_blocks(), {"length"});
  def(dataset, calls::dataset_pack(), {"length"});
  const auto join = calls::dataset_join();
  def(dataset,
      Call{join.name, WithGil{&joined}, join.doc, std::get<0>(join.parameters),
           std::get<1>(join.parameters)},
      {"on"});
  def(dataset, calls::dataset_partners(), {"count"});
  def(dataset, calls::dataset_rename().with(
                   R"(    photos, masks = ps.image_folder("photos"), ps.image_folder("masks")
    ps.zip([photos, masks.rename({"image": "mask", "label": "mask_label"})])

Under several names: {"image": ("image", "second")}.)"));
}

void bind_batching(nb::class_<Dataset>& dataset) {
  dataset.def(
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
      "transform"_a, nb::kw_only(), "outputs"_a.none() = nb::none(), "inputs"_a.none() = nb::none(),
      "name"_a.none() = nb::none(),
      nb::sig("def map(self, transform: Transform | collections.abc.Callable[..., typing.Any], "
              "*, outputs: collections.abc.Sequence[FieldSpec] | "
              "collections.abc.Mapping[str, tuple[str, collections.abc.Sequence[int | None]]] | "
              "None = None, inputs: collections.abc.Sequence[str] | None = None, name: str | "
              "None = None) -> Dataset"),
      R"(One more transform of every sample: a Transform, or a Python function with its `outputs`,
see map_function. Before or after shuffle makes no difference.

Errors  ValueError  a function without outputs; as map_function; a field that it takes is missing)");
  def(dataset,
      Call{"loader", WithGil{&run}, docs::dataset_loader,
           Parameter<LoaderOptions>{.name = "options"},
           Parameter<RemoteWorkers>{.name = "remote",
                                    .by_default = RemoteWorkers{},
                                    .sentence = "workers that make rows of the steps, too, such as "
                                                "penstock.ray.Workers(8): the batches are the same",
                                    .keyword_only = true}});
}

void bind_joins(nb::module_& module) {
  def(module, calls::mix());
  def(module, calls::concatenate());
  def(module, calls::zip());
}

}  // namespace

// Before the factories, which return one.
void declare_dataset(nb::module_& module) {
  def_struct<RandomErasing>(module);
  nb::class_<PackSummary> packed(module, "PackSummary", StructDoc<PackSummary>::kText);
  def_members(packed, "rows", &PackSummary::rows, "documents", &PackSummary::documents, "tokens",
              &PackSummary::tokens, "dropped", &PackSummary::dropped, "max_documents_per_row",
              &PackSummary::max_documents_per_row, "padding_fraction",
              &PackSummary::padding_fraction);
  packed.def("__repr__", [](const PackSummary& self) {
    return fmt::format(
        "PackSummary(rows={}, documents={}, tokens={}, dropped={}, "
        "max_documents_per_row={}, padding_fraction={:.4f})",
        self.rows, self.documents, self.tokens, self.dropped, self.max_documents_per_row,
        self.padding_fraction);
  });
  declare_buckets(module);
  nb::class_<Dataset> dataset(module, "Dataset", docs::Dataset);
  dataset.def(
      "__init__",
      [](Dataset* self, nb::handle data, nb::handle fields, nb::handle names, int workers,
         nb::handle lengths, bool concurrent) {
        if (nb::isinstance<PyStream>(data)) {
          if (!fields.is_none() || !names.is_none() || workers != 0 || !lengths.is_none() ||
              concurrent)
            throw std::invalid_argument(
                "Dataset: fields, names, workers, lengths and concurrent are for an object with "
                "items; a stream has its own fields");
          new (self) Dataset(nb::cast<const PyStream&>(data).stream);
        } else {
          new (self) Dataset(source_of_items(data, fields, names, workers, lengths, concurrent));
        }
      },
      "data"_a, nb::kw_only(), "fields"_a.none() = nb::none(), "names"_a.none() = nb::none(),
      "workers"_a = 0, "lengths"_a.none() = nb::none(), "concurrent"_a = false,
      nb::sig(
          "def __init__(self, data: Stream | typing.Any, *, fields: "
          "collections.abc.Sequence[FieldSpec] | collections.abc.Mapping[str, tuple[str, "
          "collections.abc.Sequence[int | None]]] | None = None, names: "
          "collections.abc.Sequence[str] | None = None, workers: int = 0, lengths: "
          "collections.abc.Sequence[int] | typing.Any = None, concurrent: bool = False) -> None"),
      R"(The items of any object with __len__ and __getitem__: a PyTorch or Hugging Face data set, a
list; shuffled, sharded, repeated and resumed as any source. Or the records of a stream, as they
arrive: Dataset(queue).

An item is a dict by field name; a tuple, whose parts `names` names; or a single value, the field
"item". Values are arrays and tensors, numbers, bytes and strings (u8 [?]), PIL images (RGB as u8 [H,W,3],
grey levels as u8 [H,W]), and the dicts {"bytes", "path"} of Hugging Face's encoded images (u8 [?]).
`fields` says what they are, as in map_function, and (None, None, 3) or 1 or 4 what PIL images of any mode
become; by default the first, the middle and the last
item do, and an extent in which these differ may differ.

One of the loader's threads at a time calls data[i]. `concurrent`: several threads do at once, for code that gives
up the GIL, as reading files and Pillow's decoding do, and that several threads may run: each item opens its own
file, and the data set keeps nothing between calls. Where the code holds the GIL for long, give `workers`:
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
  bind_buckets(dataset);
  def_all(dataset, calls::methods_of_dataset(),
          {"where", "join", "rename", "partners", "blocks", "pack", "batch_by_length"});
  dataset.def_prop_ro("size", &Dataset::size, docs::dataset_size)
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
      .def_prop_ro("samples", &Dataset::samples, docs::dataset_samples)
      .def_prop_ro("is_stream", &Dataset::is_stream, docs::dataset_is_stream)
      .def_prop_ro(
          "_form_of_boxes",  // their format, whether they are normalized, the field of their masks, the flip_index
          [](const Dataset& self) {
            ImageFields found;
            for (const ImageFields& fields : self.image_fields())
              if (fields.boxes == "boxes") found = fields;
            return nb::make_tuple(
                EnumNames<BoxFormat>::kNames[static_cast<std::size_t>(found.format)].second,
                found.normalized, found.masks, found.flip_index);
          })
      .def_prop_ro("batch_size", &Dataset::batch_size, docs::dataset_batch_size)
      .def_prop_ro(
          "remainder",
          [](const Dataset& self) -> std::optional<Choice<Remainder>> {
            const auto remainder = self.remainder();
            if (!remainder) return std::nullopt;
            return Choice<Remainder>{name_of(*remainder)};
          },
          "\"keep\", \"drop\" or \"pad\", as batch says it; None where there is no batch yet.")
      .def_prop_ro("devices", &Dataset::devices, docs::dataset_devices)
      .def_prop_ro(
          "jpeg_index",
          [](const Dataset& self) -> nb::object {
            auto index = self.jpeg_index();
            if (auto memory = std::dynamic_pointer_cast<MemoryJpegIndex>(index))
              return nb::cast(PyMemoryJpegIndex{{memory}, memory});
            return index ? nb::cast(PyJpegIndex{std::move(index)}) : nb::none();
          },
          nb::sig("def jpeg_index(self) -> JpegIndex | None"),
          (std::string(docs::dataset_jpeg_index) +
           " A pickled plan has an empty one of its own in its place.")
              .c_str())
      .def("__bool__", [](const Dataset&) { return true; })
      // What users of other libraries type first.
      .def(
          "__iter__",
          [](const Dataset&) -> nb::object {
            throw nb::type_error(
                "a Dataset is a plan: for step in dataset.batch(8).loader(), or batches of tensors "
                "by penstock.torch.DataLoader(dataset.batch(8))");
          },
          nb::sig("def __iter__(self) -> typing.NoReturn"))
      .def(
          "__getitem__",
          [](const Dataset&, nb::handle) -> nb::object {
            throw nb::type_error(
                "a Dataset is a plan, which has no [...]: dataset.select([7]) chooses samples, and "
                "next(dataset.batch(8).loader())[\"image\"] is a field of the first batch");
          },
          "key"_a, nb::sig("def __getitem__(self, key: typing.Any) -> typing.NoReturn"))
      .def_prop_ro("fields", &Dataset::fields, docs::dataset_fields)
      .def_prop_ro(
          "class_names",
          [](const Dataset& self) {
            nb::list names;
            for (const std::string& name : self.source().class_names()) names.append(name);
            return names;
          },
          nb::sig("def class_names(self) -> list[str]"),
          "Where labels have names: label i is class_names[i].")
      .def(
          "name", [](const Dataset& self, const SampleId& sample) { return self.name(sample); },
          "sample"_a, docs::dataset_name)
      .def("describe", &Dataset::describe, docs::dataset_describe)
      .def("__repr__", &Dataset::describe, "As describe().")
      .def("_repr_html_", html_of("plan_html"), nb::sig("def _repr_html_(self) -> str"));
  bind_plans(dataset);
}

void bind_dataset(nb::module_& module) {
  bind_joins(module);
  bind_image_sizes(module);
  module.def("_serve_items", &serve_items, "items"_a, "fields"_a, "socket"_a, "blocks"_a, "seed"_a);
}

}  // namespace penstock::python
