#include "src/source/arrow/arrow_files.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/source/arrow/arrow_table.hpp"
#include "src/source/arrow/huggingface.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/tables/table_images.hpp"

namespace penstock::source {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostJson = std::uint64_t{64} << 20;

std::string read_json_text(const fs::path& path) {
  auto text = storage::read_text_file(path.string(), kMostJson);
  if (!text) throw_table_error(text.fault());
  return std::move(*text);
}

template <class T>
T require_parsed(Result<T> result) {
  if (!result) throw_table_error(result.fault());
  return std::move(*result);
}

// The numbers of rows that select(), shuffle() and others left in a file of their own.
void add_rows(const std::string& path, std::vector<std::uint64_t>& rows) {
  ArrowTable table(path);
  table.set_fields(resolve_arrow_columns(table.schema(), {}, path));
  if (table.fields().size() != 1 || table.fields()[0].spec != FieldSpec{"indices", DType::u64, {}})
    throw Error(
        fmt::format("{}: expected one column 'indices' of UInt64, the rows of the data set", path));
  if (!table.has_end())
    throw Error(
        fmt::format("{}: the rows of the data set have no end mark of a stream, so some may "
                    "be missing: save it again",
                    path));
  ArrowBatchCache cache(0);
  for (std::uint64_t row = 0; row < table.rows(); ++row) {
    const auto [batch, number] = table.place(row);
    const auto opened = table.open(batch, 0, cache);
    if (!opened) throw_table_error(opened.fault());
    try {
      const ArrowColumn& column = table.column(**opened, 0);
      if (column.is_null(number))
        throw Error(fmt::format("{}: row {} of the rows of the data set is null: save it again",
                                path, row));
      rows.push_back(static_cast<std::uint64_t>(column.integer(number)));
    } catch (const DataError& error) {
      throw_table_error(error.fault());
    }
  }
}

std::vector<std::string> splits_of(const fs::path& folder) {
  const fs::path dict = folder / "dataset_dict.json";
  return require_parsed(parse_huggingface_splits(read_json_text(dict), dict.string()));
}

void add_saved(const fs::path& folder, ArrowFiles& found) {
  const fs::path file = folder / "state.json";
  const HuggingFaceState state =
      require_parsed(parse_huggingface_state(read_json_text(file), file.string()));
  for (const std::string& name : state.data_files) found.paths.push_back((folder / name).string());
  if (state.indices_files.empty()) return;
  found.has_rows = true;
  for (const std::string& name : state.indices_files)
    add_rows((folder / name).string(), found.rows);
}

// A folder that Hugging Face's datasets wrote; false: another.
bool add_folder(const fs::path& folder, ArrowFiles& found) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  if (fs::exists(folder / "state.json", error)) {
    add_saved(folder, found);
    return true;
  }
  if (fs::exists(folder / "dataset_dict.json", error))
    throw Error(
        fmt::format("{} is a data set of several splits, {}; give the folder of one of them",
                    folder.string(), fmt::join(splits_of(folder), ", ")));
  if (fs::exists(folder / "dataset_info.json", error))
    throw Error(fmt::format(
        "{} is a folder of the cache of datasets, which may have files of several splits and of "
        "earlier calls of map(); name the files of one, as in '{}/*-train*.arrow', or save the "
        "data set by save_to_disk(), and give that folder",
        folder.string(), folder.string()));
  return false;
}

}  // namespace

ArrowFiles find_arrow_files(const ShardPaths& paths) {
  for (const std::string& path : paths.as_given())
    if (path.find("://") != path.npos)
      throw std::invalid_argument(fmt::format(
          "{}: Arrow files are mapped, from local disks only; copy it to one, or write it as "
          "Parquet, which parquet() reads from buckets",
          storage::split_web_url(path).plain));
  if (paths.as_given().empty())
    throw std::invalid_argument("no files given; expected a path, a folder or a pattern");
  const storage::Storage storage{ObjectStorageOptions{}};
  ArrowFiles found;
  std::vector<std::string> plain;
  for (const std::string& path : paths.as_given()) {
    const std::size_t before = found.paths.size();
    if (!add_folder(path, found)) {
      std::ranges::move(find_shards(path, is_arrow_name, "*.arrow", storage).paths,
                        std::back_inserter(found.paths));
      plain.push_back(path);
    } else if (found.paths.size() == before) {
      throw Error(fmt::format("{}: its state.json names no file", path));
    }
    if (found.has_rows && paths.as_given().size() > 1)
      throw Error(
          fmt::format("{} has chosen rows of its files, which its state.json names: open it "
                      "alone, and concatenate the data sets",
                      path));
  }
  // Of all paths together: a folder that one leaves out may be another.
  if (!plain.empty()) found.notices = find_shards(plain, is_arrow_name, "*.arrow", storage).notices;
  return found;
}

SourcePtr arrow_images(const ShardPaths& files, std::optional<std::int64_t> optional_label) {
  constexpr const char* kCall = "arrow()";
  const std::string file = find_arrow_files(files).paths.front();
  const ArrowTable table(file);
  const auto has_classes = [&](const std::string& column) {
    return !arrow_class_names(table.schema(), column).empty();
  };
  ArrowOptions options{.columns = choose_image_columns(list_arrow_columns(table.schema()),
                                                       has_classes, file, kCall)};
  for (const ArrowTableField& field : resolve_arrow_columns(table.schema(), options.columns, file))
    require_image_field(field, file, kCall);
  set_optional_label(options.columns, optional_label);
  return arrow(files, std::move(options));
}

}  // namespace penstock::source
