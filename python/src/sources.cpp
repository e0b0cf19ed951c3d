// Data that lies somewhere: folders, shards, arrays.
#include <map>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"
#include "python_object.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using Path = std::filesystem::path;

// ---- what the factories are told ----

void bind_field_options(nb::module_& module) {
  nb::class_<WebDatasetField>(module, "WebDatasetField",
                              "One field of a WebDataset's records, made of one member of each.")
      .def(
          "__init__",
          [](WebDatasetField* self, std::string name, std::vector<std::string> extensions,
             const Choice<WebDatasetField::Type>& type, bool required, std::int64_t default_value) {
            new (self) WebDatasetField{std::move(name), std::move(extensions), type.value("type"),
                                       required, default_value};
          },
          "name"_a, "extensions"_a, nb::kw_only(),
          "type"_a = Choice<WebDatasetField::Type>{"bytes"}, "required"_a = true,
          "default_value"_a = 0,
          R"(`extensions`: what follows the first dot of the member's name, "jpg" or
"seg.png"; of several the first that a sample has is taken. `type` is "bytes", u8 [?], or
"integer", the member's text as i64 []. A sample without a `required` one is a fault;
without an optional one the field is empty, or `default_value`.)")
      .def(ExplainedConstructor())
      .def_ro("name", &WebDatasetField::name)
      .def_ro("extensions", &WebDatasetField::extensions)
      .def_prop_ro("type",
                   [](const WebDatasetField& self) {
                     return Choice<WebDatasetField::Type>{name_of(self.type)};
                   })
      .def_ro("required", &WebDatasetField::required)
      .def_ro("default_value", &WebDatasetField::default_value);

  nb::class_<ExampleField>(
      module, "ExampleField",
      "One field of a TFRecord's records, made of one feature of each Example.")
      .def(
          "__init__",
          [](ExampleField* self, std::string name, std::vector<std::string> features,
             const std::string& dtype, const Extents& shape, bool required, double default_value) {
            new (self) ExampleField{std::move(name),    std::move(features),
                                    parse_dtype(dtype), parse_shape(shape.given),
                                    required,           default_value};
          },
          "name"_a, "features"_a, nb::kw_only(), "dtype"_a = "u8",
          nb::arg("shape").sig("()") = nb::tuple(), "required"_a = true, "default_value"_a = 0.0,
          R"(Of several `features` the first that an Example has is taken. `dtype` u8 is the one
value of a bytes_list, i64 an int64_list, f32 a float_list. `shape`: exactly so many values;
of u8 () is as many bytes as there are.)")
      .def(ExplainedConstructor())
      .def_ro("name", &ExampleField::name)
      .def_ro("features", &ExampleField::features)
      .def_prop_ro("dtype",
                   [](const ExampleField& self) { return std::string(name_of(self.dtype)); })
      .def_prop_ro(
          "shape", [](const ExampleField& self) { return to_tuple(self.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_ro("required", &ExampleField::required)
      .def_ro("default_value", &ExampleField::default_value);

  nb::class_<ArrayField>(module, "ArrayField",
                         "One array file whose rows are one field of the records.")
      .def(
          "__init__",
          [](ArrayField* self, Path path, const std::optional<std::string>& dtype,
             const Extents& shape, std::uint64_t offset) {
            new (self)
                ArrayField{.name = {},
                           .path = std::move(path),
                           .dtype = dtype ? std::optional(parse_dtype(*dtype)) : std::nullopt,
                           .shape = parse_shape(shape.given),
                           .offset = offset};
          },
          "path"_a, nb::kw_only(), "dtype"_a.none() = nb::none(),
          nb::arg("shape").sig("()") = nb::tuple(), "offset"_a = 0,
          R"(For a raw file, one that is not .npy: `dtype`, the `shape` of a row, and the `offset` of
the first row in bytes. For a .npy file they may be left out; if given, they are checked.)")
      .def(ExplainedConstructor())
      .def_ro("path", &ArrayField::path)
      .def_prop_ro("dtype",
                   [](const ArrayField& self) {
                     return self.dtype ? std::optional(std::string(name_of(*self.dtype)))
                                       : std::nullopt;
                   })
      .def_prop_ro(
          "shape", [](const ArrayField& self) { return to_tuple(self.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_ro("offset", &ArrayField::offset);

  nb::class_<RecordInfo>(module, "RecordInfo", "What is known of a record without decoding it.")
      .def_ro("key", &RecordInfo::key, "Its name in the data set; its location where it has none.")
      .def_ro("label", &RecordInfo::label)
      .def_ro("bytes", &RecordInfo::bytes, "That the record takes where it is stored.");
}

// ---- the factories ----

Dataset open_arrays(nb::handle given) {
  if (PyMapping_Check(given.ptr()) == 0 || !nb::hasattr(given, "items"))
    throw std::invalid_argument("arrays: expected a mapping such as {'x': 'x.npy'}");
  std::vector<ArrayField> fields;
  for (const nb::handle item : given.attr("items")()) {
    ArrayField field;
    Path path;
    const std::string name = nb::cast<std::string>(nb::str(nb::handle(item[0])));
    if (nb::try_cast(nb::handle(item[1]), path))
      field.path = path;
    else if (!nb::try_cast(nb::handle(item[1]), field))
      throw std::invalid_argument(
          "arrays: the field '" + name + "' is expected to be a path or an ArrayField, found " +
          nb::cast<std::string>(nb::str(nb::handle(item[1].type()).attr("__name__"))) +
          "; memory() takes arrays");
    field.name = name;
    fields.push_back(std::move(field));
  }
  return interruptibly([&] { return arrays(std::move(fields)); });
}

Dataset open_memory(nb::handle given) {
  if (PyMapping_Check(given.ptr()) == 0 || !nb::hasattr(given, "items"))
    throw std::invalid_argument("memory: expected a mapping of names to arrays, such as {'x': x}");
  std::vector<Column> columns;
  for (const nb::handle item : given.attr("items")())
    columns.push_back(column_of(nb::cast<std::string>(nb::str(nb::handle(item[0]))), item[1]));
  return Dataset(source::memory(std::move(columns)));
}

Dataset make_synthetic(std::uint64_t count, std::uint64_t seed, int classes,
                       const std::optional<Path>& cache, int threads, nb::object progress) {
  SyntheticImagesOptions options{.count = count,
                                 .seed = seed,
                                 .classes = classes,
                                 .cache = cache.value_or(Path()),
                                 // On the calling thread, now and then: so Ctrl-C is seen.
                                 .progress =
                                     [&](std::uint64_t done, std::uint64_t total) {
                                       const nb::gil_scoped_acquire gil;
                                       if (PyErr_CheckSignals() != 0) throw nb::python_error();
                                       if (!progress.is_none()) progress(done, total);
                                     },
                                 .threads = threads};
  return without_gil([&] { return synthetic_images(options); });
}

IndexOptions index_options(const Choice<IndexPlace>& place, const std::optional<Path>& cache,
                           int threads) {
  return {.place = place.value("index"), .cache = cache.value_or(Path()), .threads = threads};
}

ImageFolderOptions folder_options(const std::optional<Path>& labels,
                                  const std::optional<std::vector<std::string>>& extensions,
                                  std::uint64_t max_file_bytes, bool follow_symlinks) {
  ImageFolderOptions options{.labels = labels.value_or(Path()),
                             .max_file_bytes = max_file_bytes,
                             .follow_symlinks = follow_symlinks};
  if (extensions) options.extensions = *extensions;
  return options;
}

void bind_factories(nb::module_& module) {
  module.def(
      "images",
      [](const Path& path, const std::optional<Path>& labels,
         const std::optional<std::vector<std::string>>& extensions, std::uint64_t max_file_bytes,
         bool follow_symlinks) {
        const auto options = folder_options(labels, extensions, max_file_bytes, follow_symlinks);
        return interruptibly([&] { return images(path.string(), options); });
      },
      "path"_a, nb::kw_only(), "labels"_a.none() = nb::none(), "extensions"_a.none() = nb::none(),
      "max_file_bytes"_a = std::uint64_t{256} << 20, "follow_symlinks"_a = true,
      R"(Labelled images, stored in any of these forms: a folder of image files, tar shards or
TFRecord files (a folder of them, or a pattern such as "train-{000000..000099}.tar").

Decided by names alone: .tar; .tfrecord, .tfrecords, .tfrec or "-of-"; anything else is a
folder of images, for which the options are.

Shapes  image u8 [?] (encoded), label i64 [].
Errors  as image_folder, webdataset or tfrecord)");

  module.def(
      "image_folder",
      [](const Path& folder, const std::optional<Path>& labels,
         const std::optional<std::vector<std::string>>& extensions, std::uint64_t max_file_bytes,
         bool follow_symlinks) {
        const auto options = folder_options(labels, extensions, max_file_bytes, follow_symlinks);
        return interruptibly([&] { return image_folder(folder, options); });
      },
      "folder"_a, nb::kw_only(), "labels"_a.none() = nb::none(), "extensions"_a.none() = nb::none(),
      "max_file_bytes"_a = std::uint64_t{256} << 20, "follow_symlinks"_a = true,
      R"(Images in a folder, class per sub-folder as in torchvision's ImageFolder, or flat.

`labels` is for a flat folder: a text file with one "name label" per line. `extensions`:
endings of image files; by default .jpg, .jpeg, .png and .webp.

Shapes  image u8 [?] (the file's bytes), label i64 [].
Errors  Error       no such folder, or no images in it; says what was looked for
        ValueError  labels for a folder that has classes)");

  module.def(
      "webdataset",
      [](const Shards& shards, std::optional<std::vector<WebDatasetField>> fields,
         std::uint64_t max_record_bytes, const Choice<IndexPlace>& index,
         const std::optional<Path>& index_cache, int index_threads) {
        WebDatasetOptions options{.max_record_bytes = max_record_bytes,
                                  .index = index_options(index, index_cache, index_threads)};
        if (fields) options.fields = std::move(*fields);
        const ShardPaths paths = shards.value();
        return interruptibly([&] { return webdataset(paths, options); });
      },
      "shards"_a, nb::kw_only(), "fields"_a.none() = nb::none(),
      "max_record_bytes"_a = std::uint64_t{256} << 20, "index"_a = Choice<IndexPlace>{"beside"},
      "index_cache"_a.none() = nb::none(), "index_threads"_a = 0,
      R"(Samples of tar shards in the WebDataset layout, with random access through an index.

`shards`: a path, a folder, a pattern such as "train-{000000..000099}.tar", or a list of
these. The index is made once and kept "beside" the shards, in the "cache" folder
`index_cache`, or only in "memory".

Shapes  image u8 [?], label i64 []; else as `fields` say.
Errors  Error       a shard is missing, cannot be read when it needs to be indexed, or is
                    compressed
        ValueError  no shard, no field, a name used twice)");

  module.def(
      "tfrecord",
      [](const Shards& files, std::optional<std::vector<ExampleField>> fields, bool verify,
         std::uint64_t max_record_bytes, const Choice<IndexPlace>& index,
         const std::optional<Path>& index_cache, int index_threads) {
        TfRecordOptions options{.verify = verify,
                                .max_record_bytes = max_record_bytes,
                                .index = index_options(index, index_cache, index_threads)};
        if (fields) options.fields = std::move(*fields);
        const ShardPaths paths = files.value();
        return interruptibly([&] { return tfrecord(paths, options); });
      },
      "files"_a, nb::kw_only(), "fields"_a.none() = nb::none(), "verify"_a = true,
      "max_record_bytes"_a = std::uint64_t{256} << 20, "index"_a = Choice<IndexPlace>{"beside"},
      "index_cache"_a.none() = nb::none(), "index_threads"_a = 0,
      R"(tf.train.Examples of TFRecord files, read at random through an index; see webdataset.

`verify`: whether a record's checksum is compared when it is read.

Shapes  image u8 [?], label i64 []; else as `fields` say.
Errors  as webdataset)");

  module.def(
      "token_files",
      [](const Shards& files, const std::optional<std::string>& dtype,
         std::optional<std::uint64_t> document_end, std::uint64_t offset,
         const Choice<IndexPlace>& index, const std::optional<Path>& index_cache,
         int index_threads) {
        const ShardPaths paths = files.value();
        const TokenFileOptions options{
            .dtype = dtype ? std::optional(parse_dtype(*dtype)) : std::nullopt,
            .document_end = document_end,
            .offset = offset,
            .index = index_options(index, index_cache, index_threads)};
        return interruptibly([&] { return Dataset(source::token_files(paths, options)); });
      },
      "files"_a, nb::kw_only(), "dtype"_a.none() = nb::none(), "document_end"_a.none() = nb::none(),
      "offset"_a = 0, "index"_a = Choice<IndexPlace>{"beside"}, "index_cache"_a.none() = nb::none(),
      "index_threads"_a = 0,
      R"(Documents of token files: raw (nanoGPT's train.bin), .npy of one dimension, or with llm.c's
header; each is known by its first bytes, and mapped. A folder stands for its *.bin and *.npy files.
Go on with blocks or pack.

`dtype` of a raw file: any integer type, by default u16. `document_end`: the token that ends a
document, such as 50256 for GPT-2; the files are read once, by all cores, to find them, and an index
keeps where they end: "beside" each file, in the "cache" folder `index_cache`, or only in "memory".
Without document_end each file is one document. `offset`: bytes before the tokens of a raw file.

Shapes  tokens, of the files' type, [?].
Errors  Error       a file cannot be opened, is cut short, or of another type than given or than
                    the first file
        ValueError  no integer type; an offset that is no multiple of its size, or into a file with
                    a header; a document_end that the type cannot hold)");
  module.def(
      "megatron",
      [](const Shards& prefixes) {
        const ShardPaths paths = prefixes.value();
        return interruptibly([&] { return Dataset(source::megatron(paths)); });
      },
      "prefixes"_a,
      R"(Sequences of Megatron-LM's and NeMo's indexed data sets: `path.bin` has the tokens and
`path.idx` says where each sequence lies; both are mapped. A sequence is a document, unless it was
preprocessed with --split-sentences. The path may end in .bin or .idx; a folder stands for its *.idx
files. Go on with pack or blocks.

Shapes  tokens, of the files' type, [?].
Errors  Error  a file cannot be opened; an index that is none, is cut short, or has a type that is
               no integer, or another than the first)");
  module.def(
      "documents",
      [](nb::handle tokens, nb::handle offsets) {
        Column values = column_of("tokens", tokens);
        std::vector<std::uint64_t> ends = whole_numbers("offsets", offsets);
        return without_gil(
            [&] { return Dataset(source::documents(std::move(values), std::move(ends))); });
      },
      "tokens"_a, "offsets"_a,
      nb::sig("def documents(tokens: typing.Any, offsets: collections.abc.Sequence[int] | "
              "typing.Any) -> Dataset"),
      R"(Documents in memory: number i has tokens[offsets[i]:offsets[i + 1]]. `tokens` is a numpy array
of one dimension; nothing is copied, so do not change it meanwhile. As Arrow lays lists out.

Shapes  tokens, of the array's type, [?].
Errors  ValueError  offsets that fall, do not begin at 0, or end beyond the tokens)");
  module.def("arrays", &open_arrays, "fields"_a,
             nb::sig("def arrays(fields: collections.abc.Mapping[str, str | os.PathLike[str] | "
                     "ArrayField]) -> Dataset"),
             R"(Memory-mapped .npy or raw files, one row a sample: {"x": "x.npy", "y": "y.npy"}.

Shapes  as in the files, without the first axis.
Errors  Error       a file cannot be opened, is cut short, has another type or shape than
                    given, or another number of rows than the first)");
  module.def("memory", &open_memory, "columns"_a,
             nb::sig("def memory(columns: collections.abc.Mapping[str, typing.Any]) -> Dataset"),
             R"(Arrays in memory, one row a sample: {"x": x, "label": y}. numpy arrays, or what it
makes arrays of. Nothing is copied, so do not change the arrays meanwhile. Rows may overlap:
numpy.lib.stride_tricks.sliding_window_view(tokens, 1025) of a memory-mapped file works.

Shapes  as the arrays, without the first axis; bool comes as u8.
Errors  ValueError  arrays of different lengths, a dtype that penstock has not, rows that are not
                    dense in memory)");
  module.def("synthetic_images", &make_synthetic, "count"_a = 1000, nb::kw_only(), "seed"_a = 0,
             "classes"_a = 10, "cache"_a.none() = nb::none(), "threads"_a = 0,
             "progress"_a.none() = nb::none(),
             nb::sig("def synthetic_images(count: int = 1000, *, seed: int = 0, classes: int = 10, "
                     "cache: str | os.PathLike[str] | None = None, threads: int = 0, progress: "
                     "collections.abc.Callable[[int, int], object] | None = None) -> Dataset"),
             R"(Generated photographs with learnable classes, written to a cache folder once.

`progress(done, total)` is called now and then while images are being written.

Shapes  image u8 [?], label i64 [].
Units   about 110 KB of disk and 10 ms of one core per image, once.
Errors  Error  the cache cannot be written, or has no room)");
}

}  // namespace

void bind_sources(nb::module_& module) {
  nb::class_<PyStream>(module, "Stream",
                       "Records that arrive one after another, once. For Dataset().");
  bind_field_options(module);
  bind_factories(module);
}

}  // namespace penstock::python
