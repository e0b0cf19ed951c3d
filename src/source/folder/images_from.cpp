#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/source/images.hpp>

#include "src/core/interruption.hpp"
#include "src/core/lower_case.hpp"
#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/source/catalog.hpp"
#include "src/source/csv/csv_rows.hpp"
#include "src/source/csv/csv_text.hpp"
#include "src/source/described.hpp"
#include "src/source/folder/form_of_tables.hpp"
#include "src/source/folder/label_texts.hpp"
#include "src/source/folder/listing.hpp"
#include "src/source/folder/some_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/tables/table_row.hpp"
#include "src/source/zip.hpp"
#include "src/storage/retry.hpp"
#include "src/storage/storage.hpp"

namespace penstock {

namespace {

constexpr std::size_t kShownOfPath = 200;  // bytes in a message

[[noreturn]] void refuse_table(const std::string& what) {
  throw std::invalid_argument("images_from: " + what);
}

// What a table says of its files.
struct TableKeys {
  std::string file;  // the table, for messages
  std::string noun;  // of a row's place in it
  std::vector<std::string> paths{};
  std::vector<std::uint64_t> places{};  // of the rows
  // One of these for each row, where there is a column of labels.
  std::vector<std::int64_t> integers{};
  std::vector<std::string> texts{};
  std::vector<std::string> class_names{};

  [[noreturn]] void fail(std::uint64_t place, const std::string& what) const {
    throw Error(fmt::format("images_from: {} {} {}: {}", file, noun, place, what));
  }
};

TableKeys keys_of_csv(std::string_view text, const std::string& file,
                      const ImagesFromOptions& options) {
  TableKeys keys{.file = file, .noun = "line"};
  std::vector<std::string> columns{options.path};
  if (!options.label.empty()) columns.push_back(options.label);
  source::read_csv(text, file, columns,
                   [&](std::uint64_t line, std::span<source::CsvField> values) {
                     keys.places.push_back(line);
                     keys.paths.push_back(value_of(std::move(values[0])));
                     if (values.size() == 1) return;
                     keys.texts.push_back(value_of(std::move(values[1])));
                   });
  return keys;
}

// The fields of records, one by one.
class KeyReader {
 public:
  KeyReader(const Source& table, TableKeys& keys) : table_(table), keys_(keys) {}

  [[nodiscard]] std::size_t find(const std::string& name) const {
    const auto fields = table_.fields();
    const auto found = std::ranges::find(fields, name, &FieldSpec::name);
    if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
    std::string all;
    for (const FieldSpec& field : fields) all += (all.empty() ? "" : ", ") + field.to_string();
    refuse_table(fmt::format("the table has no field '{}': there are {}", name, all));
  }

  void add_path(const ConstTensorView& value, const std::string& column) {
    if (is_text(value))
      keys_.paths.push_back(text_of(value));
    else if (is_integer(value))
      keys_.paths.push_back(fmt::to_string(integer(value, column)));
    else
      refuse_table(
          fmt::format("the column '{}' has {}, and paths are texts, or integers with "
                      "an ending",
                      column, describe_type(value)));
  }

  void add_label(const ConstTensorView& value, const std::string& column) {
    if (is_text(value))
      keys_.texts.push_back(text_of(value));
    else if (is_integer(value))
      keys_.integers.push_back(integer(value, column));
    else if (is_real(value))
      keys_.integers.push_back(whole(value, column));
    else
      refuse_table(fmt::format(
          "the column '{}' has {}, and a label is an integer or the name of a class: leave label "
          "out (\"\"), and name the column in columns",
          column, describe_type(value)));
  }

 private:
  static bool is_text(const ConstTensorView& value) {
    return value.dtype() == DType::u8 && value.shape().rank() == 1;
  }
  static bool is_real(const ConstTensorView& value) {
    return value.shape().rank() == 0 &&
           (value.dtype() == DType::f32 || value.dtype() == DType::f64);
  }
  static bool is_integer(const ConstTensorView& value) {
    return value.shape().rank() == 0 && !is_real(value) && value.dtype() != DType::f16 &&
           value.dtype() != DType::bf16;
  }
  static std::string describe_type(const ConstTensorView& value) {
    return fmt::format("{} {}", name_of(value.dtype()), value.shape().to_string());
  }
  static std::string text_of(const ConstTensorView& value) {
    return value.byte_size() == 0
               ? std::string()
               : std::string(reinterpret_cast<const char*>(value.raw()), value.byte_size());
  }

  [[nodiscard]] std::int64_t integer(const ConstTensorView& value,
                                     const std::string& column) const {
    if (value.dtype() == DType::boolean) return value.raw()[0] == std::byte{0} ? 0 : 1;
    const auto found = source::integer_of(value.dtype(), value.raw());
    if (!found)
      keys_.fail(keys_.places.back(), fmt::format("the column '{}' is above 2^63-1", column));
    return *found;
  }

  // A column of integers in which one was missing is often one of reals.
  [[nodiscard]] std::int64_t whole(const ConstTensorView& value, const std::string& column) const {
    double real = 0;
    if (value.dtype() == DType::f32) {
      float single = 0;
      std::memcpy(&single, value.raw(), sizeof single);
      real = single;
    } else {
      std::memcpy(&real, value.raw(), sizeof real);
    }
    constexpr double kInexact = 1LL << 53;
    if (std::trunc(real) != real || !(std::abs(real) < kInexact))
      keys_.fail(keys_.places.back(),
                 fmt::format("the column '{}' is {}, and a label is an integer", column, real));
    return static_cast<std::int64_t>(real);
  }

  const Source& table_;
  TableKeys& keys_;
};

std::string missing(const char* what, const std::string& column, const char* how) {
  return fmt::format("the {}, in the column '{}', is {}; fill it in, or remove the row", what,
                     column, how);
}

// Of rows whose fields have these names.
TableKeys keys_of_rows(const Source& table, std::string file, const std::string& path,
                       const std::string& label) {
  TableKeys keys{.file = std::move(file), .noun = "row"};
  KeyReader reader(table, keys);
  const std::size_t path_field = reader.find(path);
  const bool has_label = !label.empty();
  const std::size_t label_field = has_label ? reader.find(label) : path_field;
  Record record;
  std::vector<std::uint8_t> wanted(table.fields().size());
  wanted[path_field] = 1;
  wanted[label_field] = 1;
  record.set_wanted_fields(wanted);
  record.set_leaves_out_nulls(true);
  core::ProgressCounter progress(fmt::format("reading the paths of {}", keys.file), "rows",
                                 table.size());
  for (std::uint64_t row = 0; row < table.size(); ++row) {
    core::require_wanted();
    const auto result =
        storage::with_retries([&]() -> Result<void> { return table.read(row, record); });
    if (!result) keys.fail(row, result.fault().reason);
    keys.places.push_back(row);
    if (record.is_left_out(path_field)) keys.fail(row, missing("path", path, "null"));
    if (record.is_left_out(label_field)) keys.fail(row, missing("label", label, "null"));
    reader.add_path(record[path_field], path);
    if (has_label) reader.add_label(record[label_field], label);
    progress.add(1);
  }
  if (!keys.integers.empty() && label == "label")
    keys.class_names.assign(table.class_names().begin(), table.class_names().end());
  return keys;
}

void set_labels(TableKeys& keys, const ImagesFromOptions& options, FilesOptions& files) {
  const auto number = std::ranges::find_if(options.classes, source::is_integer_label);
  const bool has_number = number != options.classes.end();
  if (!keys.integers.empty()) {
    if (has_number)
      refuse_table(fmt::format(
          "the column '{}' has integers, and classes has the name '{}': make the column one of "
          "texts if it has names, or leave out classes if it has numbers",
          options.label, core::printable(*number, kShownOfPath)));
    files.labels = std::move(keys.integers);
    files.classes = options.classes.empty() ? std::move(keys.class_names) : options.classes;
    return;
  }
  if (keys.texts.empty()) return;
  for (std::size_t row = 0; row < keys.texts.size(); ++row)
    if (keys.texts[row].empty())
      keys.fail(keys.places[row], missing("label", options.label, "empty"));
  // With classes, numbers of these or their names; names alone, where numbers are among these.
  const bool are_numbers = !options.classes.empty() && !has_number &&
                           std::ranges::all_of(keys.texts, source::is_integer_label);
  const std::span<const std::string> names =
      are_numbers ? std::span<const std::string>() : std::span<const std::string>(options.classes);
  source::LabelTexts labels(
      {.file = "images_from: " + keys.file,
       .noun = keys.noun,
       .several = "several labels of an image are a field of their own: pass label=\"\", and name "
                  "the column in columns"},
      names);
  for (std::size_t row = 0; row < keys.texts.size(); ++row)
    labels.check(keys.places[row], keys.texts[row]);
  source::Labels read = std::move(labels).finish(std::move(keys.texts), keys.places);
  files.labels = std::move(read.of_file);
  files.classes = are_numbers ? options.classes : std::move(read.class_names);
}

void require_some(const Source& files, const std::string& root, const TableKeys& keys,
                  const ImagesFromOptions& options) {
  const std::uint64_t count = source::count_if_none_is_there(files);
  if (count == 0) return;
  const std::string first = files.location(0);
  std::error_code error;
  std::string hint;
  for (const std::string& ending : ImageFolderOptions{}.extensions)
    if (hint.empty() && std::filesystem::exists(first + ending, error))
      hint = fmt::format("; there is one that ends in {}: pass ending=\"{}\"", ending,
                         options.ending + ending);
  throw Error(fmt::format(
      "images_from: none of the first {} files of {} is there: looked for {} first; relative paths "
      "are below root, here {}{}",
      count, keys.file, core::printable(first, kShownOfPath), core::printable(root, kShownOfPath),
      hint.empty() ? ": pass root, the folder that they are relative to" : hint));
}

// The files alone.
SourcePtr files_of(TableKeys keys, const std::string& root, const ImagesFromOptions& options) {
  if (keys.paths.empty()) throw Error(fmt::format("images_from: {} has no rows", keys.file));
  bool all_relative = true;
  for (std::size_t row = 0; row < keys.paths.size(); ++row) {
    std::string& path = keys.paths[row];
    while (path.starts_with("./"))
      path.erase(0, std::min(path.find_first_not_of('/', 1), path.size()));
    if (path.empty()) keys.fail(keys.places[row], missing("path", options.path, "empty"));
    const storage::WebUrl url = storage::split_web_url(path);
    if (!url.plain.ends_with(options.ending))
      path = fmt::format("{}{}{}", url.plain, options.ending, url.query);
    storage::require_readable_scheme(path);
    all_relative &= !path.starts_with('/') && !storage::is_object_url(path);
  }
  FilesOptions files{
      .field = options.field, .max_file_bytes = options.max_file_bytes, .storage = options.storage};
  set_labels(keys, options, files);
  if (all_relative) {
    files.root = root;
  } else {
    for (std::string& path : keys.paths)
      if (!path.starts_with('/') && !storage::is_object_url(path))
        path = root + (root.ends_with('/') ? "" : "/") + path;
  }
  SourcePtr made = source::files(keys.paths, std::move(files));
  require_some(*made, root, keys, options);
  return made;
}

void check(const ImagesFromOptions& options) {
  if (options.path.empty()) refuse_table("name the column of the paths");
  if (options.path == options.label)
    refuse_table(fmt::format("the column '{}' is named for both paths and labels", options.path));
  if (options.label.empty() && !options.classes.empty())
    refuse_table("the option classes has the names of labels, and there is no column of these");
}

// How a table is read: its rows with these columns as fields.
using OpenTable = std::function<SourcePtr(std::vector<TableColumn> columns)>;

// Parquet or Arrow; null for a CSV file.
OpenTable open_table_of(const std::string& table, const ObjectStorageOptions& storage) {
  const auto parquet = [=](std::vector<TableColumn> columns) {
    return source::parquet(table, {.columns = std::move(columns), .storage = storage});
  };
  const auto arrow = [=](std::vector<TableColumn> columns) {
    return source::arrow(table, {.columns = std::move(columns)});
  };
  const std::string name = source::name_of_pattern(storage::split_web_url(table).plain);
  if (source::is_parquet_name(name)) return parquet;
  if (source::is_arrow_name(name)) return arrow;
  const std::string lower = core::lower_case(name);
  for (const std::string_view ending : {".csv", ".tsv", ".tab", ".txt"})
    if (lower.ends_with(ending)) return {};
  std::error_code error;
  if (!storage::is_object_url(table) && !std::filesystem::is_directory(table, error)) return {};
  switch (source::form_of_tables(table, storage)) {
    case ImageForm::parquet:
      return parquet;
    case ImageForm::arrow:
      return arrow;
    default:
      throw Error(fmt::format(
          "images_from: expected a table, a CSV file or Parquet or Arrow files, found {}",
          storage::split_web_url(table).plain));
  }
}

// Where the paths of a table are relative to by default.
std::string folder_of_table(const std::string& table) {
  std::error_code error;
  if (storage::is_object_url(table)) {
    const std::string plain(storage::split_web_url(table).plain);
    const bool is_file = source::name_of_pattern(plain).find('.') != std::string::npos;
    return is_file ? plain.substr(0, plain.rfind('/')) : plain;
  }
  const std::filesystem::path whole = std::filesystem::absolute(table);
  return (std::filesystem::is_directory(whole, error) ? whole : whole.parent_path()).string();
}

std::string root_of(const ImagesFromOptions& options, const std::string& by_default) {
  if (options.root.empty()) return by_default;
  const std::string root = options.root.string();
  if (const storage::WebUrl url = storage::split_web_url(root); !url.query.empty())
    refuse_table(
        fmt::format("the option root, {}, has a '?': give what is behind it with each path",
                    core::printable(std::string(url.plain), kShownOfPath)));
  return storage::is_object_url(root) ? root : std::filesystem::absolute(options.root).string();
}

}  // namespace

SourcePtr source::images_from(const std::filesystem::path& table, ImagesFromOptions options) {
  check(options);
  const std::string name = table.string();
  if (name.empty()) refuse_table("the table's path is empty");
  storage::require_readable_scheme(name);
  Description description = source::describe_images_from(table, options);
  const std::string root = root_of(options, folder_of_table(name));
  const std::string shown(storage::split_web_url(name).plain);
  OpenTable open = open_table_of(name, options.storage);
  std::string text;
  TableKeys keys;
  if (open) {
    std::vector<TableColumn> columns{{.name = "path", .column = options.path}};
    if (!options.label.empty()) columns.push_back({.name = "label", .column = options.label});
    keys = keys_of_rows(*open(std::move(columns)), shown, "path",
                        options.label.empty() ? "" : "label");
  } else {
    text = storage::Storage(options.storage).read_text(name);
    open = [&](std::vector<TableColumn> columns) {
      return source::csv_rows(text, shown, std::move(columns));
    };
    keys = keys_of_csv(text, shown, options);
  }
  SourcePtr made = files_of(std::move(keys), root, options);
  if (!options.columns.empty()) made = source::zip({std::move(made), open(options.columns)});
  return source::described(std::move(made), std::move(description));
}

SourcePtr source::images_from(const Source& table, ImagesFromOptions options) {
  check(options);
  if (!options.columns.empty())
    refuse_table("columns are for tables that are files: zip() what it returns with the others");
  return files_of(keys_of_rows(table, "the table", options.path, options.label),
                  root_of(options, std::filesystem::current_path().string()), options);
}

}  // namespace penstock
