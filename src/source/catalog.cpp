#include "src/source/catalog.hpp"

#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/core/call_text.hpp"
#include "src/core/json_fields.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::source {

namespace {

using core::Json;

constexpr const char* kZip = "zip";

bool is_local(const std::string& path) { return path.find("://") == path.npos; }

std::string absolute(const std::string& path) {
  if (path.empty() || !is_local(path)) return path;
  return std::filesystem::absolute(path).string();
}

bool is_remote(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (!is_local(path)) return true;
  return false;
}

// What each source is made of: a kName, its arguments, and the source that is made of them. `storage` counts for paths that
// are not local, and is written for those only.

template <class Visitor>
void visit_storage(Visitor& visit, const std::vector<std::string>& paths,
                   ObjectStorageOptions& storage) {
  if (is_remote(paths)) visit("storage", storage);
}

struct ImageFolderArguments {
  static constexpr const char* kName = "image_folder";
  std::string path;
  ImageFolderOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, ImageFolderArguments& all) {
  visit.required("path", all.path);
  visit_fields(visit, all.options);
  visit_storage(visit, {all.path, all.options.labels.string()}, all.options.storage);
}
SourcePtr make(ImageFolderArguments all) { return image_folder(all.path, std::move(all.options)); }

struct FilesArguments {
  static constexpr const char* kName = "files";
  std::vector<std::string> paths;
  FilesOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, FilesArguments& all) {
  visit.required("paths", all.paths);
  visit_fields(visit, all.options);
  visit_storage(visit, {all.options.root.string()}, all.options.storage);
}
SourcePtr make(FilesArguments all) { return files(all.paths, std::move(all.options)); }

struct ImagesFromArguments {
  static constexpr const char* kName = "images_from";
  std::string table;
  ImagesFromOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, ImagesFromArguments& all) {
  visit.required("table", all.table);
  visit_fields(visit, all.options);
  visit("storage", all.options.storage);  // the table may name objects
}
SourcePtr make(ImagesFromArguments all) { return images_from(all.table, std::move(all.options)); }

struct CocoArguments {
  static constexpr const char* kName = "coco";
  std::string annotations;
  CocoOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, CocoArguments& all) {
  visit.required("annotations", all.annotations);
  visit_fields(visit, all.options);
  visit("storage", all.options.storage);  // the file may name objects
}
SourcePtr make(CocoArguments all) { return coco(all.annotations, std::move(all.options)); }

struct YoloArguments {
  static constexpr const char* kName = "yolo";
  std::string data;
  YoloOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, YoloArguments& all) {
  visit.required("data", all.data);
  visit_fields(visit, all.options);
}
SourcePtr make(YoloArguments all) { return yolo(all.data, std::move(all.options)); }

struct VocArguments {
  static constexpr const char* kName = "voc";
  std::string root;
  VocOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, VocArguments& all) {
  visit.required("root", all.root);
  visit_fields(visit, all.options);
}
SourcePtr make(VocArguments all) { return voc(all.root, std::move(all.options)); }

struct WebDatasetArguments {
  static constexpr const char* kName = "webdataset";
  std::vector<std::string> shards;
  WebDatasetOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetArguments& all) {
  visit.required("shards", all.shards);
  visit_fields(visit, all.options);
  visit_storage(visit, all.shards, all.options.storage);
}
SourcePtr make(WebDatasetArguments all) {
  return webdataset(std::move(all.shards), std::move(all.options));
}

struct TfRecordArguments {
  static constexpr const char* kName = "tfrecord";
  std::vector<std::string> files;
  TfRecordOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, TfRecordArguments& all) {
  visit.required("files", all.files);
  visit_fields(visit, all.options);
  visit_storage(visit, all.files, all.options.storage);
}
SourcePtr make(TfRecordArguments all) {
  return tfrecord(std::move(all.files), std::move(all.options));
}

struct ParquetArguments {
  static constexpr const char* kName = "parquet";
  std::vector<std::string> files;
  ParquetOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, ParquetArguments& all) {
  visit.required("files", all.files);
  visit_fields(visit, all.options);
  visit_storage(visit, all.files, all.options.storage);
}
SourcePtr make(ParquetArguments all) {
  return parquet(std::move(all.files), std::move(all.options));
}

struct ArrowArguments {
  static constexpr const char* kName = "arrow";
  std::vector<std::string> files;
  ArrowOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, ArrowArguments& all) {
  visit.required("files", all.files);
  visit_fields(visit, all.options);
}
SourcePtr make(ArrowArguments all) { return arrow(std::move(all.files), std::move(all.options)); }
struct MdsArguments {
  static constexpr const char* kName = "mds";
  std::vector<std::string> folders;
  MdsOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, MdsArguments& all) {
  visit.required("folders", all.folders);
  visit_fields(visit, all.options);
  visit_storage(visit, all.folders, all.options.storage);
}
SourcePtr make(MdsArguments all) { return mds(std::move(all.folders), std::move(all.options)); }

struct ArraysArguments {
  static constexpr const char* kName = "arrays";
  std::vector<ArrayField> fields;
};
template <class Visitor>
void visit_fields(Visitor& visit, ArraysArguments& all) {
  visit.required("fields", all.fields);
}
SourcePtr make(ArraysArguments all) { return arrays(std::move(all.fields)); }

struct TokenFilesArguments {
  static constexpr const char* kName = "token_files";
  std::vector<std::string> files;
  TokenFileOptions options;
};
template <class Visitor>
void visit_fields(Visitor& visit, TokenFilesArguments& all) {
  visit.required("files", all.files);
  visit_fields(visit, all.options);
}
SourcePtr make(TokenFilesArguments all) { return token_files(std::move(all.files), all.options); }

struct MegatronArguments {
  static constexpr const char* kName = "megatron";
  std::vector<std::string> prefixes;
};
template <class Visitor>
void visit_fields(Visitor& visit, MegatronArguments& all) {
  visit.required("prefixes", all.prefixes);
}
SourcePtr make(MegatronArguments all) { return megatron(std::move(all.prefixes)); }

struct NumbersArguments {
  static constexpr const char* kName = "numbers";
  std::uint64_t size = 0;
  std::size_t bytes = 16;
};
template <class Visitor>
void visit_fields(Visitor& visit, NumbersArguments& all) {
  visit.required("size", all.size);
  visit("bytes", all.bytes);
}
SourcePtr make(NumbersArguments all) { return numbers(all.size, all.bytes); }

using MakeSource = std::function<SourcePtr(std::string_view)>;

template <class... Arguments>
std::map<std::string, MakeSource> makers_of() {
  return {{Arguments::kName,
           [](std::string_view options) { return make(core::read_call<Arguments>(options)); }}...};
}

std::vector<std::string> all_absolute(std::span<const std::string> paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) all.push_back(absolute(path));
  return all;
}

}  // namespace

Description describe_image_folder(const std::filesystem::path& root,
                                  const ImageFolderOptions& options) {
  ImageFolderArguments all{absolute(root.string()), options};
  if (!options.labels.empty()) all.options.labels = absolute(options.labels.string());
  return core::describe_call(all);
}

Description describe_files(std::vector<std::string> paths, FilesOptions options) {
  FilesArguments all{std::move(paths), std::move(options)};
  const Json json = core::write_json(all);
  // As Python has it, where labels are one list.
  std::string labels;
  if (!all.options.labels.integers.empty()) labels = core::value_text(all.options.labels.integers);
  if (!all.options.labels.names.empty()) labels = core::value_text(all.options.labels.names);
  all.options.labels = {};
  std::string text = core::call_text(all.kName, core::changed_arguments(all), 1);
  if (!labels.empty()) {
    text.pop_back();
    text += fmt::format(", labels={})", labels);
  }
  return {.name = all.kName, .options = core::dump_json(json), .text = std::move(text)};
}

Description describe_images_from(const std::filesystem::path& table,
                                 const ImagesFromOptions& options) {
  ImagesFromArguments all{absolute(table.string()), options};
  all.options.root = absolute(options.root.string());
  return core::describe_call(all);
}

Description describe_coco(const std::filesystem::path& annotations, const CocoOptions& options) {
  CocoArguments all{absolute(annotations.string()), options};
  all.options.root = absolute(options.root.string());
  Description made = core::describe_call(all);
  // The query of a URL, in which there may be a signature, is not for people.
  all.annotations = std::string(storage::split_web_url(all.annotations).plain);
  made.text = core::describe_call(all).text;
  return made;
}

Description describe_yolo(const std::filesystem::path& data, const YoloOptions& options) {
  return core::describe_call(YoloArguments{absolute(data.string()), options});
}

Description describe_voc(const std::filesystem::path& root, const VocOptions& options) {
  return core::describe_call(VocArguments{absolute(root.string()), options});
}

Description describe_webdataset(const ShardPaths& shards, const WebDatasetOptions& options) {
  return core::describe_call(WebDatasetArguments{all_absolute(shards.as_given()), options});
}

Description describe_tfrecord(const ShardPaths& files, const TfRecordOptions& options) {
  return core::describe_call(TfRecordArguments{all_absolute(files.as_given()), options});
}

Description describe_parquet(const ShardPaths& files, const ParquetOptions& options) {
  return core::describe_call(ParquetArguments{all_absolute(files.as_given()), options});
}

Description describe_arrow(const ShardPaths& files, const ArrowOptions& options) {
  return core::describe_call(ArrowArguments{all_absolute(files.as_given()), options});
}

Description describe_mds(const ShardPaths& folders, const MdsOptions& options) {
  return core::describe_call(MdsArguments{all_absolute(folders.as_given()), options});
}

Description describe_arrays(const std::vector<ArrayField>& fields) {
  ArraysArguments all{fields};
  for (ArrayField& field : all.fields) field.path = absolute(field.path.string());
  return core::describe_call(all);
}

Description describe_token_files(const ShardPaths& files, const TokenFileOptions& options) {
  return core::describe_call(TokenFilesArguments{all_absolute(files.as_given()), options});
}

Description describe_megatron(const ShardPaths& prefixes) {
  return core::describe_call(MegatronArguments{all_absolute(prefixes.as_given())});
}

Description describe_numbers(std::uint64_t size, std::size_t bytes) {
  return core::describe_call(NumbersArguments{size, bytes});
}

Description describe_zip(const std::vector<Description>& parts) {
  Json sources = Json::array();
  std::string text;
  for (const Description& part : parts) {
    sources.push_back(core::write_description(part, part.name));
    text += (text.empty() ? "" : ", ") + core::text_of(part);
  }
  const Json all{{"sources", std::move(sources)}};
  return {.name = kZip, .options = core::dump_json(all), .text = fmt::format("zip([{}])", text)};
}

std::map<std::string, MakeSource> makers_of_sources() {
  return makers_of<ImageFolderArguments, FilesArguments, ImagesFromArguments, CocoArguments,
                   YoloArguments, VocArguments, WebDatasetArguments, TfRecordArguments,
                   ParquetArguments, ArrowArguments, MdsArguments, ArraysArguments,
                   TokenFilesArguments, MegatronArguments, NumbersArguments>();
}

std::vector<Description> parts_of_zip(std::string_view options) {
  const Json all = core::parse_json(options, kZip);
  const auto sources = all.find("sources");
  if (!all.is_object() || all.size() != 1 || sources == all.end() || !sources->is_array())
    core::refuse_value(kZip, "{\"sources\": [...]}", all);
  std::vector<Description> parts;
  for (const Json& part : *sources) parts.push_back(core::read_description(part, "zip: 'sources'"));
  return parts;
}

}  // namespace penstock::source
