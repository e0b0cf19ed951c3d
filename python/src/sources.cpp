// Data that is stored somewhere: folders, shards, arrays.
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "header_docs.hpp"
#include "host_array.hpp"
#include "python_table.hpp"

namespace penstock::python {

template <>
struct PythonClass<WebDatasetField> {
  static constexpr const char* kName = "WebDatasetField";
  static constexpr const char* kByPosition[] = {"name", "extensions"};
};
template <>
struct PythonClass<ExampleField> {
  static constexpr const char* kName = "ExampleField";
  static constexpr const char* kByPosition[] = {"name", "features"};
};
template <>
struct PythonClass<TableColumn> {
  static constexpr const char* kName = "TableColumn";
  static constexpr const char* kByPosition[] = {"name", "column"};
};
template <>
struct PythonClass<MdsColumn> {
  static constexpr const char* kName = "MdsColumn";
  static constexpr const char* kByPosition[] = {"name", "column"};
};
template <>
struct PythonClass<ArrayField> {
  static constexpr const char* kName = "ArrayField";
  static constexpr const char* kByPosition[] = {"path"};
};

namespace {

// The names and values of a mapping.
std::vector<std::pair<std::string, nb::object>> items_of(nb::handle given) {
  if (PyMapping_Check(given.ptr()) == 0 || !nb::hasattr(given, "items")) throw nb::next_overload();
  std::vector<std::pair<std::string, nb::object>> items;
  for (const nb::handle item : given.attr("items")())
    items.emplace_back(nb::cast<std::string>(nb::str(nb::handle(item[0]))),
                       nb::borrow(nb::handle(item[1])));
  return items;
}

}  // namespace

/// The fields of arrays: a mapping of their names to files.
template <>
struct PythonValue<std::vector<ArrayField>> {
  static std::string type() {
    return "collections.abc.Mapping[str, str | os.PathLike[str] | ArrayField]";
  }
  /// Errors  std::invalid_argument  a value that is no path and no ArrayField
  static std::vector<ArrayField> value(nb::handle given, const char*) {
    std::vector<ArrayField> fields;
    for (const auto& [name, item] : items_of(given)) {
      ArrayField field;
      if (!nb::try_cast(item, field.path) && !nb::try_cast(item, field))
        throw std::invalid_argument(
            "arrays: the field '" + name + "' is expected to be a path or an ArrayField, found " +
            nb::cast<std::string>(nb::str(nb::handle(item.type()).attr("__name__"))) +
            "; memory() takes arrays");
      field.name = name;
      fields.push_back(std::move(field));
    }
    return fields;
  }
};

/// The columns of a table: names, or structs such as TableColumn; one, or several.
template <class Column>
struct ColumnsOf {
  static std::string name() { return PythonClass<Column>::kName; }
  static std::string type() {
    return "str | collections.abc.Sequence[str | " + name() + "] | None";
  }
  static std::string returned() { return "list[" + name() + "]"; }
  static std::string text(const std::vector<Column>&) { return "None"; }
  /// Errors  nb::type_error  something else
  static std::vector<Column> value(nb::handle given, const char*) {
    if (given.is_none()) return {};
    const auto refuse = [](nb::handle found) {
      throw nb::type_error(("columns: expected names of columns, such as ['image', 'label'], or " +
                            name() + "s, found " + repr_of(found))
                               .c_str());
    };
    std::vector<Column> columns;
    const auto add = [&](nb::handle one) {
      Column column;
      if (nb::isinstance<nb::str>(one))
        column.name = nb::cast<std::string>(one);
      else if (!nb::try_cast(one, column))
        refuse(one);
      columns.push_back(std::move(column));
    };
    if (nb::isinstance<nb::str>(given) || nb::isinstance<Column>(given)) {
      add(given);
      return columns;
    }
    if (PySequence_Check(given.ptr()) == 0 || nb::isinstance<nb::bytes>(given)) refuse(given);
    for (const nb::handle one : nb::iter(given)) add(one);
    if (columns.empty())
      throw nb::type_error("columns is empty: name at least one, or leave it out for all");
    return columns;
  }
};
template <>
struct PythonValue<std::vector<TableColumn>> : ColumnsOf<TableColumn> {};
template <>
struct PythonValue<std::vector<MdsColumn>> : ColumnsOf<MdsColumn> {};

namespace {

// The path that a str, bytes or os.PathLike is.
std::optional<std::string> path_of(nb::handle given) {
  if (!nb::isinstance<nb::str>(given) && !nb::isinstance<nb::bytes>(given) &&
      !nb::hasattr(given, "__fspath__"))
    return std::nullopt;
  return nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(given));
}

}  // namespace

/// A table in memory.
struct TableObject {
  nb::object object;
};
template <>
struct PythonValue<TableObject> {
  static std::string type() { return "typing.Any"; }
  static TableObject value(nb::handle given, const char*) { return {nb::borrow(given)}; }
};
/// Numbers of its rows, or None.
struct RowNumbers {
  nb::object object = nb::none();
};
template <>
struct PythonValue<RowNumbers> {
  static std::string type() { return "collections.abc.Sequence[int] | numpy.ndarray | None"; }
  static std::string text(const RowNumbers&) { return "None"; }
  static RowNumbers value(nb::handle given, const char*) { return {nb::borrow(given)}; }
};

/// Paths, as they were passed.
struct PathList {
  std::vector<std::string> paths;
};
template <>
struct PythonValue<PathList> {
  static std::string type() { return "collections.abc.Iterable[str | os.PathLike[str]]"; }
  /// Errors  nb::type_error  something else
  static PathList value(nb::handle given, const char*) {
    std::string path;
    if (take(given, path))  // a URL is shown without its signature
      throw nb::type_error(
          ("files takes a list of paths, found " +
           (path.find("://") == path.npos ? repr_of(given)
                                          : "'" + path.substr(0, path.find('?')) + "'") +
           ": a folder is image_folder(path)")
              .c_str());
    PathList list;
    for (const nb::handle one : list_of_items(given, "a list of paths")) {
      if (!take(one, path))
        throw nb::type_error(("files: expected a path, found " + repr_of(one)).c_str());
      list.paths.push_back(std::move(path));
    }
    return list;
  }
  /// The items of what numpy, pandas and torch have, or any other iterable.
  static nb::list list_of_items(nb::handle given, const char* expected) {
    const nb::object kinds = nb::module_::import_("collections.abc");
    if (nb::isinstance(given, kinds.attr("Mapping")))
      throw nb::type_error(("files: expected " + std::string(expected) +
                            ", found a mapping: pass list(d) for its keys, list(d.values()) for "
                            "its values")
                               .c_str());
    if (nb::isinstance(given, kinds.attr("Set")))
      throw nb::type_error(("files: expected " + std::string(expected) +
                            ", found a set, whose order differs from process to process: pass "
                            "sorted(s)")
                               .c_str());
    const nb::object items =
        nb::hasattr(given, "tolist") ? given.attr("tolist")() : nb::borrow(given);
    if (!nb::hasattr(items, "__iter__") || nb::isinstance<nb::str>(items) ||
        nb::isinstance<nb::bytes>(items))
      throw nb::type_error(
          ("files: expected " + std::string(expected) + ", found " + repr_of(given)).c_str());
    return nb::list(items);
  }

 private:
  static bool take(nb::handle given, std::string& path) {
    auto found = path_of(given);
    if (found) path = *std::move(found);
    return found.has_value();
  }
};
template <>
struct PythonValue<FileLabels> {
  static std::string type() {
    return "collections.abc.Iterable[int] | collections.abc.Iterable[str] | None";
  }
  static std::string text(const FileLabels&) { return "None"; }
  /// Errors  nb::type_error  something else
  static FileLabels value(nb::handle given, const char*) {
    FileLabels labels;
    if (given.is_none()) return labels;
    const nb::list items = PythonValue<PathList>::list_of_items(given, "a list of labels");
    for (const nb::handle one : items) {
      if (nb::isinstance<nb::str>(one))
        labels.names.push_back(nb::cast<std::string>(one));
      else if (std::int64_t number = 0;
               nb::hasattr(one, "__index__") &&
               nb::try_cast(nb::module_::import_("operator").attr("index")(one), number))
        labels.integers.push_back(number);
      else
        throw nb::type_error(("files: a label is an integer or the name of a class, found " +
                              repr_of(one) +
                              ": several numbers a file are a field beside it, zip([files(paths), "
                              "memory({'classes': array})])")
                                 .c_str());
      if (!labels.names.empty() && !labels.integers.empty())
        throw nb::type_error(("files: labels are all integers or all names of classes, found " +
                              repr_of(items[0]) + " and " + repr_of(one))
                                 .c_str());
    }
    return labels;
  }
};

template <>
struct PythonValue<Column> {
  static std::string type() { return "typing.Any"; }
  /// Errors  std::invalid_argument  something that is no array; names the argument
  static Column value(nb::handle given, const char* argument) { return column_of(argument, given); }
};
/// The columns of memory: a mapping of their names to arrays.
template <>
struct PythonValue<std::vector<Column>> {
  static std::string type() { return "collections.abc.Mapping[str, typing.Any]"; }
  /// Errors  std::invalid_argument  a value that is no array; names the field
  static std::vector<Column> value(nb::handle given, const char*) {
    std::vector<Column> columns;
    for (const auto& [name, item] : items_of(given)) columns.push_back(column_of(name, item));
    return columns;
  }
};

namespace {

Dataset make_files(const PathList& list, const FilesOptions& options) {
  return files(list.paths, options);
}

// A path, or a table in memory: its paths and labels as the files that they name, and its other columns beside these.
Dataset make_images_from(const TableObject& table, ImagesFromOptions options) {
  if (const auto path = path_of(table.object))
    return without_gil([&] { return images_from(*path, std::move(options)); });
  const nb::module_ arrow = nb::module_::import_("penstock._arrow");
  arrow.attr("require_table_of_files")(table.object);
  if (options.path == options.label)
    throw std::invalid_argument("images_from: the column '" + options.path +
                                "' is named for both paths and labels");
  // One stream for all: another one of a query may have its rows in another order.
  std::vector<TableColumn> columns = std::exchange(options.columns, {});
  const bool has_others = !columns.empty();
  const std::string path = options.path;
  const auto is_taken = [&] {
    return options.path == "label" ||
           std::ranges::count(columns, options.path, &TableColumn::name) > 0;
  };
  while (is_taken()) options.path += ' ';
  std::vector<FieldName> keys{{options.path, ""}};
  columns.push_back({.name = options.path, .column = path});
  if (!options.label.empty()) {
    columns.push_back({.name = "label", .column = options.label});
    keys.push_back({"label", ""});
  }
  const SourcePtr rows = source_of_table(table.object, {.columns = columns}, nb::none());
  if (options.classes.empty() && !options.label.empty())
    options.classes = nb::cast<std::vector<std::string>>(
        arrow.attr("categories_of")(table.object, options.label));
  if (!options.label.empty()) options.label = "label";
  return without_gil([&] {
    const Dataset files(source::images_from(*rows, std::move(options)));
    return has_others ? zip({files, Dataset(rows).rename(keys)}) : files;
  });
}

Dataset make_arrow_table(const TableObject& table, const ArrowOptions& options,
                         const RowNumbers& rows) {
  return Dataset(source_of_table(table.object, options, rows.object));
}

// On the calling thread, where `progress` belongs, and Ctrl-C is seen in it.
Dataset make_synthetic(SyntheticImagesOptions options) {
  options.progress = [progress = std::move(options.progress)](std::uint64_t done,
                                                              std::uint64_t total) {
    {
      const nb::gil_scoped_acquire gil;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    if (progress) progress(done, total);
  };
  return synthetic_images(options);
}

}  // namespace

void bind_sources(nb::module_& module) {
  nb::class_<PyStream>(module, "Stream",
                       "Records that arrive one after another, once. For Dataset().");
  nb::class_<RecordInfo> info(module, "RecordInfo", StructDoc<RecordInfo>::kText);
  def_members(info, "key", &RecordInfo::key, "label", &RecordInfo::label, "bytes",
              &RecordInfo::bytes);
  nb::class_<RecordName> name(module, "RecordName", StructDoc<RecordName>::kText);
  def_members(name, "key", &RecordName::key, "file", &RecordName::file, "offset",
              &RecordName::offset, "begin", &RecordName::begin, "length", &RecordName::length,
              "pieces", &RecordName::pieces);
  name.def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__str__", [](const RecordName& self) { return text_of(self.to_string()); },
          docs::record_name_to_string)
      .def("__repr__",
           [](const RecordName& self) {
             return nb::str("<penstock.RecordName {}>").format(text_of(self.to_string()));
           })
      .def("__hash__",
           [](const RecordName& self) {
             return nb::hash(nb::make_tuple(self.key, self.file, self.offset, self.begin));
           })
      .def("__getstate__",
           [](const RecordName& self) {
             return std::tuple(self.key, self.file, self.offset, self.begin, self.length,
                               self.pieces);
           })
      .def("__setstate__",
           [](RecordName& self,
              const std::tuple<std::string, std::string, std::uint64_t, std::uint64_t,
                               std::optional<std::uint64_t>, std::vector<RecordName>>& state) {
             const auto& [key, file, offset, begin, length, pieces] = state;
             new (&self) RecordName{.key = key,
                                    .file = file,
                                    .offset = offset,
                                    .begin = begin,
                                    .length = length,
                                    .pieces = pieces};
           });
  def_struct<WebDatasetField>(module);
  def_struct<ExampleField>(module);
  def_struct<TableColumn>(module);
  def_struct<MdsColumn>(module);
  def_struct<ArrayField>(module);

  def(module, calls::source_images());
  def(module, calls::source_image_folder());
  def(module,
      Call{"files", &make_files, calls::source_files().doc, Parameter<PathList>{"paths"},
           Parameter<FilesOptions>{"options"}},
      {"labels"});
  def(module,
      Call{"images_from", WithGil{&make_images_from}, calls::source_images_from().doc,
           Parameter<TableObject>{"table"}, Parameter<ImagesFromOptions>{"options"}}
          .with(
              R"(    # pandas.read_csv("train.csv"), and a Dataset that opens os.path.join("train", row["id"] + ".jpg")
    ps.images_from("train.csv", path="id", label="breed", root="train", ending=".jpg")

`table` may also be a table in memory, as of arrow_table(). Relative paths are then below `root`, by default the current
folder. Where `label` is a column of categories of pandas, of an Enum of polars or of a dictionary of pyarrow, and there are
no `classes`, the classes are these, in their order. A plan in JSON has all paths and labels in it, as of files().)"),
      {"path", "label"});
  def(module,
      calls::source_coco().with(
          R"(    # A box, label, area and iscrowd for each object, as arrays of one image's length
    ps.coco("annotations/instances_train2017.json", root="train2017"))"));
  def(module, calls::source_yolo().with(
                  R"(    # Boxes are fractions: cx, cy, w, h; decode_image() makes pixels of them
    stored = ps.Instances("boxes", fields=["labels"], format="cxcywh", normalized=True)
    ps.yolo("coco8/data.yaml", split="val").map(ps.decode_image(crop=ps.letterbox(640), instances=stored)))"));
  def(module, calls::source_voc().with(R"(    ps.voc("VOCdevkit/VOC2012", split="trainval"))"));
  def(module, calls::source_webdataset());
  def(module, calls::source_tfrecord());
  def(module, calls::source_parquet());
  def(module, calls::source_arrow());
  def(module,
      Call{"arrow_table", WithGil{&make_arrow_table}, calls::source_arrow_table().doc,
           Parameter<TableObject>{"table"}, Parameter<ArrowOptions>{"options"},
           Parameter<RowNumbers>{"rows", RowNumbers{}, "the numbers of the rows that are read",
                                 true}}
          .with(
              R"(`table` has __arrow_c_stream__, as the tables of pyarrow, polars, pandas and DuckDB, or is a data set of
Hugging Face's: its table is read as it is stored, so images are encoded, for decode_image(), and the rows are those
that its select(), shuffle() and filter() left.)"));
  def(module, calls::source_mds());
  def(module, calls::source_token_files());
  def(module, calls::source_megatron());
  def(module, calls::source_documents().with(
                  "`tokens` is a numpy array of one dimension; the field is called tokens."));
  def(module, calls::source_arrays().with(
                  R"(`fields` are paths or ArrayFields by name: {"x": "x.npy", "y": "y.npy"}.)"));
  def(module,
      calls::source_memory().with(
          R"(`columns` are arrays by name, {"x": x, "label": y}: of numpy, or what numpy makes arrays of.
A dtype that penstock does not have, or rows that are not dense in memory, are a ValueError. Rows of
numpy.lib.stride_tricks.sliding_window_view(tokens, 1025), of a mapped file, are windows that overlap.)"));
  def(module,
      Call{"synthetic_images", &make_synthetic, calls::source_synthetic_images().doc,
           Parameter<SyntheticImagesOptions>{"options", {}}},
      {"count"});
}

}  // namespace penstock::python
