#include "src/source/mds/index_json.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/json_fields.hpp"
#include "src/core/printable.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/source/shards/shard_names.hpp"

namespace penstock::source {

namespace {

using core::Json;

constexpr std::string_view kMdsIndexName = "index.json";
constexpr std::uint64_t kMostShardBytes = UINT32_MAX;  // offsets are u32

// What lies deeper is left out.
Json parse_up_to(std::string_view text, int deepest) {
  return Json::parse(
      text, [&](int depth, Json::parse_event_t, Json&) { return depth < deepest; }, false);
}

// What both kinds of index.json need.
class IndexReader {
 protected:
  IndexReader(const std::string& file, const std::string& folder, MdsIndex& index)
      : file_(file), folder_(folder), index_(index) {}

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(fmt::format("{}: {}", file_, core::printable(reason)));
  }
  static std::string shown(const Json& value) { return core::shorten(value); }

  const Json& member(const Json& object, const char* key, const std::string& where) const {
    const auto found = object.find(key);
    if (found == object.end())
      fail(fmt::format("{}expected '{}', as MosaicML's streaming or LitData writes it, found none",
                       where, key));
    return *found;
  }

  std::uint64_t number(const Json& object, const char* key, const std::string& where) const {
    const Json& value = member(object, key, where);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostShardBytes)
      fail(fmt::format("{}expected '{}' to be an integer from 0 to {}, found {}", where, key,
                       kMostShardBytes, shown(value)));
    return value.get<std::uint64_t>();
  }

  std::string text(const Json& value, std::string_view what, const std::string& where) const {
    if (!value.is_string())
      fail(fmt::format("{}expected {} to be a string, found {}", where, what, shown(value)));
    return value.get<std::string>();
  }

  // Its name leads to nowhere but into the folder.
  std::string name_of_file(const Json& value, std::string_view what,
                           const std::string& where) const {
    std::string name = text(value, what, where);
    const std::filesystem::path path = name;
    const bool leaves = name.empty() || name.ends_with('/') || path.is_absolute() ||
                        name.find('\0') != std::string::npos ||
                        std::ranges::find(path, "..") != path.end();
    if (leaves)
      fail(fmt::format("{}expected {} to be a file in the folder, found '{}'", where, what,
                       core::valid_text(Json(name))));
    return name;
  }

  void require_columns(std::vector<MdsColumnType> columns, const std::string& where) {
    const std::span<const MdsColumnType> known = index_.columns.all();
    const bool is_same = std::ranges::equal(known, columns, [](const auto& a, const auto& b) {
      return a.name == b.name && a.encoding == b.encoding && a.size == b.size;
    });
    if (known.empty()) {
      index_.columns = MdsColumns(std::move(columns));
    } else if (!is_same) {
      fail(
          fmt::format("{}its columns are {}, and before it they are {}: shards of one data set "
                      "must have the same columns; read the others as a data set of their own",
                      where, describe_mds_columns(columns), describe_mds_columns(known)));
    }
  }

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] MdsIndex& index() const noexcept { return index_; }

 private:
  const std::string& file_;
  const std::string& folder_;
  MdsIndex& index_;
};

class MdsIndexReader : IndexReader {
 public:
  MdsIndexReader(const std::string& file, const std::string& folder, MdsIndex& index)
      : IndexReader(file, folder, index) {}

  void read(const Json& all) {
    require_version(all);
    const Json& shards = member(all, "shards", "");
    if (!shards.is_array())
      fail(fmt::format("expected shards to be a list, found {}", shown(shards)));
    for (std::size_t i = 0; i < shards.size(); ++i) add(shards[i], fmt::format("shard {}: ", i));
  }

 private:
  void require_version(const Json& object) const {
    const Json& version = member(object, "version", "");
    if (version != 2)
      fail(
          fmt::format("expected version 2 of MDS, found {}: write the data set again with "
                      "streaming's MDSWriter",
                      shown(version)));
  }

  MdsFile file_of(const Json& object, const char* key, const std::string& where) const {
    const Json& data = member(object, key, where);
    if (!data.is_object())
      fail(fmt::format("{}expected '{}' to be an object, found {}", where, key, shown(data)));
    MdsFile file{.name = name_of_file(member(data, "basename", where), "a basename", where),
                 .bytes = number(data, "bytes", where),
                 .hashes = {}};
    if (const auto hashes = data.find("hashes"); hashes != data.end() && !hashes->empty())
      file.hashes = core::dump_json(*hashes);
    return file;
  }

  void add(const Json& object, const std::string& where) {
    if (!object.is_object())
      fail(fmt::format("{}expected an object, found {}", where, shown(object)));
    require_version(object);
    if (const Json& format = member(object, "format", where); format != "mds")
      fail(
          fmt::format("{}expected the format \"mds\", found {}, which is not read here: write the "
                      "data set again with streaming's MDSWriter",
                      where, shown(format)));
    require_columns(columns_of(object, where), where);
    MdsShard shard{.folder = folder(),
                   .rows = number(object, "samples", where),
                   .raw = file_of(object, "raw_data", where),
                   .zipped = {}};
    const auto compression = object.find("compression");
    if (compression != object.end() && !compression->is_null())
      shard.zipped = zipped_of(object, *compression, where);
    // A number of rows, and a place for each and one behind.
    constexpr std::uint64_t kPlace = sizeof(std::uint32_t);
    const std::uint64_t least =
        (shard.rows + 2) * kPlace + shard.rows * index().columns.least_bytes();
    if (shard.raw.bytes < least)
      fail(fmt::format("{}{} rows take {} bytes at least, and '{}' has {}", where, shard.rows,
                       least, shard.raw.name, shard.raw.bytes));
    index().shards.push_back(std::move(shard));
  }

  MdsFile zipped_of(const Json& object, const Json& compression, const std::string& where) const {
    const std::string name = text(compression, "compression", where);
    if (name.substr(0, name.find(':')) != "zstd")
      fail(
          fmt::format("{}expected no compression, or zstd, found '{}', which is not read here: "
                      "decompress the shards, and set compression and zip_data to null",
                      where, name));
    const auto codecs = parquet_codecs();
    if (std::ranges::find(codecs, ParquetCodec::zstd) == codecs.end())
      fail(
          fmt::format("{}it is compressed with zstd, and this build has no libzstd (Debian: "
                      "libzstd-dev): install it and build again",
                      where));
    return file_of(object, "zip_data", where);
  }

  std::vector<MdsColumnType> columns_of(const Json& object, const std::string& where) const {
    const Json& names = member(object, "column_names", where);
    const Json& encodings = member(object, "column_encodings", where);
    const Json& sizes = member(object, "column_sizes", where);
    if (!names.is_array() || !encodings.is_array() || !sizes.is_array() || names.empty() ||
        names.size() != encodings.size() || names.size() != sizes.size())
      fail(
          fmt::format("{}expected column_names, column_encodings and column_sizes to be lists of "
                      "one length, 1 or more",
                      where));
    std::vector<MdsColumnType> columns;
    std::set<std::string_view> seen;
    columns.reserve(names.size());  // names are not moved
    for (std::size_t i = 0; i < names.size(); ++i) {
      MdsColumnType column = mds_column_type(text(names[i], "a column's name", where),
                                             text(encodings[i], "an encoding", where));
      const bool has_size = sizes[i].is_number_unsigned() && sizes[i] != 0;
      const std::uint64_t size = has_size ? sizes[i].get<std::uint64_t>() : 0;
      if (!has_size && !sizes[i].is_null() && sizes[i] != 0)
        fail(fmt::format("{}expected the size of '{}' to be an integer or null, found {}", where,
                         column.name, shown(sizes[i])));
      if (column.kind == MdsKind::refused) column.size = std::min(size, kMostShardBytes);
      if (column.size != size)
        fail(fmt::format("{}the size of '{}' is {}, and values of its encoding, {}, have {} bytes",
                         where, column.name, shown(sizes[i]), column.encoding,
                         column.size == 0 ? "no fixed number of" : fmt::to_string(column.size)));
      columns.push_back(std::move(column));
      if (!seen.insert(columns.back().name).second)
        fail(fmt::format("{}two columns are called '{}'", where, columns.back().name));
    }
    return columns;
  }
};

// A pytree of LitData's: its leaves are the columns.
class LitDataIndexReader : IndexReader {
 public:
  LitDataIndexReader(const std::string& file, const std::string& folder, MdsIndex& index)
      : IndexReader(file, folder, index) {}

  void read(const Json& all) {
    const Json& config = member(all, "config", "");
    if (!config.is_object())
      fail(fmt::format("expected config to be an object, found {}", shown(config)));
    require_plain(config);
    require_columns(columns_of(config), "");
    const Json& chunks = member(all, "chunks", "");
    if (!chunks.is_array())
      fail(fmt::format("expected chunks to be a list, found {}", shown(chunks)));
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const std::string where = fmt::format("chunk {}: ", i);
      if (!chunks[i].is_object())
        fail(fmt::format("{}expected an object, found {}", where, shown(chunks[i])));
      // Tokens, of versions that do not name the loader.
      if (const auto dim = chunks[i].find("dim"); dim != chunks[i].end() && !dim->is_null())
        refuse_loader("\"TokensLoader\"");
      index().shards.push_back(
          {.folder = folder(),
           .rows = number(chunks[i], "chunk_size", where),
           // Its number of bytes leaves the header out in older versions.
           .raw = {.name = name_of_file(member(chunks[i], "filename", where), "a filename", where),
                   .bytes = 0,
                   .hashes = {}},
           .zipped = {}});
    }
  }

 private:
  void require_plain(const Json& config) const {
    for (const char* key : {"compression", "ipc_compression", "encryption"}) {
      const auto found = config.find(key);
      if (found == config.end() || found->is_null()) continue;
      fail(fmt::format(
          "its chunks have the {} {}, which is not read here: write them again with "
          "litdata.optimize without it, or read them by penstock.torch.from_dataset of a "
          "litdata.StreamingDataset",
          key, shown(*found)));
    }
    const auto loader = config.find("item_loader");
    if (loader == config.end() || loader->is_null() || *loader == "PyTreeLoader") return;
    refuse_loader(shown(*loader));
  }

  [[noreturn]] void refuse_loader(const std::string& name) const {
    fail(
        fmt::format("its chunks were written for LitData's {}, which is not read here: read "
                    "Parquet with parquet(), and other data by penstock.torch.from_dataset of a "
                    "litdata.StreamingDataset",
                    name));
  }

  std::vector<MdsColumnType> columns_of(const Json& config) const {
    const Json& formats = member(config, "data_format", "");
    if (!formats.is_array() || formats.empty())
      fail(fmt::format("expected data_format to be a list of 1 or more, found {}", shown(formats)));
    std::vector<std::string> names;
    // Each level of fields is two of JSON.
    constexpr int kDeepestSpec = 64;
    const Json spec =
        parse_up_to(text(member(config, "data_spec", ""), "data_spec", ""), kDeepestSpec);
    if (!spec.is_array() || spec.size() != 2)
      fail(fmt::format("expected data_spec to be a tree of fields, found {}", shown(spec)));
    add_names(spec[1], "", names);
    if (names.size() != formats.size())
      fail(
          fmt::format("data_spec has {} fields, and data_format {}", names.size(), formats.size()));
    std::vector<MdsColumnType> columns;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!seen.insert(names[i]).second) fail(fmt::format("two fields are called '{}'", names[i]));
      columns.push_back(litdata_column_type(names[i], text(formats[i], "a format", "")));
    }
    return columns;
  }

  // "box.left" and so on; elements of lists and tuples have their numbers as names, and a single value is "value".
  void add_names(const Json& tree, const std::string& name, std::vector<std::string>& names) const {
    if (!tree.is_object() || !tree.contains("children_spec") || !tree["children_spec"].is_array())
      fail(fmt::format("expected data_spec to be a tree of fields, found {}", shown(tree)));
    const Json& children = tree["children_spec"];
    const auto type = tree.find("type");
    if (type == tree.end() || type->is_null()) {
      names.push_back(name.empty() ? "value" : name);
      return;
    }
    constexpr int kDeepestKeys = 4;
    Json keys;
    if (const auto context = tree.find("context"); context != tree.end() && context->is_string())
      keys = parse_up_to(context->get<std::string>(), kDeepestKeys);
    // Of a defaultdict, beside its factory.
    if (keys.is_object() && keys.contains("dict_context")) keys = Json(keys["dict_context"]);
    const bool has_keys = keys.is_array() && keys.size() == children.size();
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::string key = !has_keys             ? fmt::to_string(i)
                              : keys[i].is_string() ? keys[i].get<std::string>()
                                                    : core::dump_json(keys[i]);
      add_names(children[i], name.empty() ? key : name + "." + key, names);
    }
  }
};

// What lies there may be the folders of several splits.
std::string split_in(const std::string& folder) {
  if (storage::is_object_url(folder)) return {};
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::set<std::string> names;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::exists(entries->path() / kMdsIndexName, ignored))
      names.insert(entries->path().filename().string());
  }
  if (names.empty()) return {};
  return fmt::format("; name a split in it, such as {}{}", folder, *names.begin());
}

}  // namespace

void read_mds_index(std::string_view text, const std::string& file, const std::string& folder,
                    MdsIndex& index) {
  // Nothing deeper is read, and messages show what is there.
  constexpr int kDeepest = 16;
  const Json all = parse_up_to(text, kDeepest);
  if (all.is_discarded() || !all.is_object())
    throw Error(fmt::format("{}: expected a JSON object, found other text", file));
  if (all.contains("chunks"))
    LitDataIndexReader(file, folder, index).read(all);
  else
    MdsIndexReader(file, folder, index).read(all);
}

MdsIndex open_mds_indexes(std::span<const std::string> folders, const storage::Storage& storage) {
  if (folders.empty())
    throw std::invalid_argument("no folder given; expected one with an index.json, or a list");
  MdsIndex index;
  for (const std::string& given : folders) {
    if (given.empty()) throw std::invalid_argument("an empty path: expected a folder");
    storage::require_readable_scheme(given);
    if (const storage::WebUrl url = storage::split_web_url(given); !url.query.empty())
      throw std::invalid_argument(fmt::format(
          "{}: what is behind a '?' is of one file, and a data set has several: give the "
          "URL of the folder without it, with a login in ~/.netrc where one is needed",
          url.plain));
    std::string folder = given;
    if (given.ends_with("/" + std::string(kMdsIndexName)) || given == kMdsIndexName)
      folder.resize(given.size() - kMdsIndexName.size());
    if (!folder.empty() && !folder.ends_with('/')) folder += '/';
    const std::string file = folder + std::string(kMdsIndexName);
    std::string text;
    try {
      text = storage.read_text(file);
    } catch (const Error& error) {
      std::error_code ignored;
      if (is_mds_name(given) && !std::filesystem::is_directory(given, ignored))
        throw Error(
            fmt::format("expected a folder with an index.json, found a shard, {}: give the "
                        "folder that index.json is in",
                        given));
      throw Error(fmt::format("expected a folder of an MDS data set, with an index.json: {}{}",
                              error.what(), split_in(folder)));
    }
    if (index.file.empty()) index.file = file;
    read_mds_index(text, file, folder, index);
  }
  if (index.shards.empty())
    throw Error(
        fmt::format("{}: there are no shards: nothing was written to the data set", index.file));
  return index;
}

}  // namespace penstock::source
