// Plans as JSON and as pickles.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "python_source.hpp"
#include "python_table.hpp"
#include "python_transform.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// Ctrl-C ends it; but what is unpickled runs in the thread that asked for it.
template <class Open>
Dataset open_plan(bool allow_pickle, Open open) {
  return allow_pickle ? without_gil(open) : interruptibly(open);
}
using Path = std::filesystem::path;
using Moved = std::map<std::string, std::string>;

constexpr const char* kPythonFunction = "python_function";
constexpr const char* kPythonItems = "python_items";
constexpr const char* kPythonTable = "python_table";

nb::object plan_module() { return nb::module_::import_("penstock._plan"); }

// Opening and writing may take long, and others work meanwhile: all of it runs without the GIL,
// which the functions here take again. They share `objects`; the call that makes the options keeps them
// until it has the GIL back.
using Objects = std::shared_ptr<const nb::object>;

Objects share(nb::object objects) {
  return objects.is_none() ? nullptr : std::make_shared<const nb::object>(std::move(objects));
}

nb::object object_or_none(const Objects& objects) { return objects ? *objects : nb::none(); }

nb::list listed(std::span<const FieldSpec> fields) {
  nb::list all;
  for (const FieldSpec& field : fields) {
    nb::list extents;
    for (const std::int64_t extent : field.shape.extents()) extents.append(extent);
    all.append(nb::make_tuple(field.name, std::string(name_of(field.dtype)), extents));
  }
  return all;
}

// What becomes of Python functions and data sets: each is appended to `objects`, or pickled, or refused. `ask`
// has the GIL, and returns the options as JSON.
template <class Ask>
Description describe_object(const char* kind, const std::string& what, const Objects& objects,
                            bool allow_pickle, Ask&& ask) {
  if (!objects && !allow_pickle)
    throw Error("the Python " + what +
                " travels by pickle only: pickle the Dataset, or allow it with allow_pickle=True");
  const nb::gil_scoped_acquire gil;
  try {
    const nb::object text = ask(plan_module(), object_or_none(objects));
    return {.name = kind, .options = nb::cast<std::string>(text), .text = {}};
  } catch (nb::python_error& error) {
    rethrow(error);
  }
}

PlanJsonOptions writing(nb::object given, bool allow_pickle) {
  PlanJsonOptions options{.registry = plan_registry()};
  const Objects objects = share(std::move(given));
  options.describe_transform =
      [objects, allow_pickle](const Transform& transform) -> std::optional<Description> {
    const auto* const own = dynamic_cast<const PythonTransform*>(&transform);
    if (own == nullptr) return std::nullopt;
    const MapFunctionOptions& made_of = own->options();
    return describe_object(kPythonFunction, "function '" + made_of.name + "'", objects,
                           allow_pickle, [&](const nb::object& plans, const nb::object& list) {
                             return plans.attr("describe_function")(
                                 own->function(), made_of.name, made_of.inputs,
                                 listed(made_of.outputs), own->takes_rng(), list);
                           });
  };
  options.describe_source = [objects,
                             allow_pickle](const Source& source) -> std::optional<Description> {
    if (const auto* const table = dynamic_cast<const PythonTable*>(&source))
      return describe_object(kPythonTable, "table", objects, allow_pickle,
                             [&](const nb::object& plans, const nb::object& list) {
                               return plans.attr("describe_table")(object_of(table->made_of()),
                                                                   list);
                             });
    const auto* const own = dynamic_cast<const PythonSource*>(&source);
    if (own == nullptr) return std::nullopt;
    const PythonItems& items = own->items();
    return describe_object(kPythonItems, "data set " + items.name, objects, allow_pickle,
                           [&](const nb::object& plans, const nb::object& list) {
                             return plans.attr("describe_items")(
                                 object_of(items.items), listed(items.fields), items.workers,
                                 items.lengths, items.concurrent, list);
                           });
  };
  return options;
}

// Calls `use` with what `make` of penstock._plan makes of such options.
template <class Use>
auto with_object(const char* make, const char* what, std::string_view text, const Objects& objects,
                 bool allow_pickle, Use&& use) {
  const std::string copy(text);
  if (!objects && !allow_pickle)
    throw Error(
        std::string("a Python ") + what +
        " is pickled in it, and unpickling runs code: allow it with allow_pickle=True if you "
        "trust where the plan comes from");
  const nb::gil_scoped_acquire gil;
  try {
    return use(nb::object(plan_module().attr(make)(copy, object_or_none(objects))));
  } catch (nb::python_error& error) {
    rethrow(error);
  }
}

PlanJsonOptions reading(const std::optional<Moved>& moved, const std::optional<DeviceList>& devices,
                        const std::optional<PyJpegIndex>& index, nb::object given,
                        bool allow_pickle) {
  PlanJsonOptions options{.registry = plan_registry()};
  if (index) options.registry.use_jpeg_index(index->store);
  if (moved) options.moved.assign(moved->begin(), moved->end());
  if (devices) options.devices = devices->value();
  const Objects objects = share(std::move(given));
  options.registry.add_transform(kPythonFunction, [=](std::string_view text) -> TransformPtr {
    return with_object(
        "make_function", "function", text, objects, allow_pickle,
        [](const nb::object& made) { return nb::cast<const PyTransform&>(made).transform; });
  });
  options.registry.add_source(kPythonItems, [=](std::string_view text) -> SourcePtr {
    return with_object(
        "make_items", "data set", text, objects, allow_pickle, [](const nb::object& made) {
          return source_of_items(made[0], made[1], nb::none(), nb::cast<int>(made[2]), made[3],
                                 nb::cast<bool>(made[4]));
        });
  });
  options.registry.add_source(kPythonTable, [=](std::string_view text) -> SourcePtr {
    return with_object("make_table", "table", text, objects, allow_pickle,
                       [](const nb::object& made_of) { return remake_table(made_of); });
  });
  return options;
}

}  // namespace

Registry plan_registry() {
  Registry registry;
  add_synthetic_images(registry);
  return registry;
}

void bind_plans(nb::class_<Dataset>& dataset) {
  dataset
      .def(
          "to_json",
          [](const Dataset& self, bool allow_pickle) {
            const PlanJsonOptions options = writing(nb::none(), allow_pickle);
            return without_gil([&] { return self.to_json(options); });
          },
          nb::kw_only(), "allow_pickle"_a = false,
          R"(The plan as JSON, from which from_json makes it again: in another process, or in C++.
Settings that change only speed (indexes, statistics, threads) and credentials are left out.

`allow_pickle`: Python functions are pickled into it; C++ does not read these.

Errors  Error  data in memory, a stream, a Python function; names the operation)")
      .def_static(
          "from_json",
          [](const std::string& text, const std::optional<Moved>& moved,
             const std::optional<DeviceList>& devices, const std::optional<PyJpegIndex>& index,
             bool allow_pickle) {
            const PlanJsonOptions options =
                reading(moved, devices, index, nb::none(), allow_pickle);
            return open_plan(allow_pickle, [&] { return Dataset::from_json(text, options); });
          },
          "text"_a, nb::kw_only(), "moved"_a.none() = nb::none(), "devices"_a.none() = nb::none(),
          "index"_a.none() = nb::none(), "allow_pickle"_a = false,
          R"(Opens the sources; everything is checked as if the plan were written here.

`moved`: {"/there": "/here"}, for data that have moved. `devices` replace the plan's own. `index`
is used by all decode_image of the plan. Unpickling runs code, so it needs `allow_pickle`.

Errors  Error  not a plan, or one of a newer version; an unknown operation, name or
               field; a source that is not there or holds other data; names the operation)")
      .def(
          "save",
          [](const Dataset& self, const Path& file, bool allow_pickle) {
            const PlanJsonOptions options = writing(nb::none(), allow_pickle);
            without_gil([&] { self.save(file, options); });
          },
          "file"_a, nb::kw_only(), "allow_pickle"_a = false,
          R"(to_json in a file, which appears when it is complete; lists of more than 1,000 numbers
(select, sample, filter) become .npy files beside it. penstock-throughput --plan reads it.

Errors  as to_json; Error  the file cannot be written)")
      .def_static(
          "load",
          [](const Path& file, const std::optional<Moved>& moved,
             const std::optional<DeviceList>& devices, const std::optional<PyJpegIndex>& index,
             bool allow_pickle) {
            const PlanJsonOptions options =
                reading(moved, devices, index, nb::none(), allow_pickle);
            return open_plan(allow_pickle, [&] { return Dataset::load(file, options); });
          },
          "file"_a, nb::kw_only(), "moved"_a.none() = nb::none(), "devices"_a.none() = nb::none(),
          "index"_a.none() = nb::none(), "allow_pickle"_a = false, R"(from_json of a file.

Errors  as from_json; Error  the file cannot be read)")
      .def(
          "__reduce__",
          [](const Dataset& self) {
            const nb::list functions;
            const PlanJsonOptions options = writing(functions, true);
            const std::string text = without_gil([&] { return self.to_json(options); });
            const bool learns = self.jpeg_index() != nullptr;
            return nb::make_tuple(plan_module().attr("unpickle"),
                                  nb::make_tuple(text, functions, learns));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"))
      .def("__copy__", [](const Dataset& self) { return self; })
      .def(
          "__deepcopy__", [](const Dataset& self, nb::handle) { return self; }, "memo"_a)
      .def_static(
          "_unpickle",
          [](const std::string& text, nb::object functions, bool learns) {
            std::optional<PyJpegIndex> index;
            if (learns) index = PyJpegIndex{std::make_shared<MemoryJpegIndex>()};
            const bool has_functions = nb::len(functions) > 0;
            const PlanJsonOptions options = reading({}, {}, index, std::move(functions), true);
            return open_plan(has_functions, [&] { return Dataset::from_json(text, options); });
          },
          "text"_a, "functions"_a, "learns"_a);
}

nb::tuple reduce_transform(const Transform& transform) {
  if (const auto* const own = dynamic_cast<const PythonTransform*>(&transform)) {
    const MapFunctionOptions& made_of = own->options();
    return nb::make_tuple(plan_module().attr("unpickle_function"),
                          nb::make_tuple(own->function(), nb::cast(made_of.inputs),
                                         nb::cast(listed(made_of.outputs)), made_of.name));
  }
  const Description description = transform.description();
  return nb::make_tuple(plan_module().attr("unpickle_transform"),
                        nb::make_tuple(description.name, description.options));
}

}  // namespace penstock::python
