#include "src/source/descriptions.hpp"

#include "src/core/json_fields.hpp"

namespace penstock {

template <class Visitor>
void visit_fields(Visitor& visit, ObjectStorageOptions& options) {
  visit("endpoint", options.endpoint);
  visit("region", options.region);
  visit("profile", options.profile);
  visit("anonymous", options.anonymous);
  visit("path_style", options.path_style);
}

template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetField& field) {
  visit.required("name", field.name);
  visit.required("extensions", field.extensions);
  visit("type", field.type);
  visit("required", field.required);
  visit("default_value", field.default_value);
}

template <class Visitor>
void visit_fields(Visitor& visit, ExampleField& field) {
  visit.required("name", field.name);
  visit.required("features", field.features);
  visit("dtype", field.dtype);
  visit("shape", field.shape);
  visit("required", field.required);
  visit("default_value", field.default_value);
}

template <class Visitor>
void visit_fields(Visitor& visit, ArrayField& field) {
  visit.required("name", field.name);
  visit.required("path", field.path);
  visit("dtype", field.dtype);
  visit("shape", field.shape);
  visit("offset", field.offset);
}

namespace source {

namespace {

using core::Json;

constexpr const char* kImageFolder = "image_folder";
constexpr const char* kWebDataset = "webdataset";
constexpr const char* kTfRecord = "tfrecord";
constexpr const char* kArrays = "arrays";
constexpr const char* kTokenFiles = "token_files";
constexpr const char* kMegatron = "megatron";
constexpr const char* kNumbers = "numbers";
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

// The arguments of the functions that make the sources. `storage` counts for paths that are not
// local, and is written for those only.

struct ImageFolderArguments {
  std::string path;
  ImageFolderOptions options;
};

struct WebDatasetArguments {
  std::vector<std::string> shards;
  WebDatasetOptions options;
};

struct TfRecordArguments {
  std::vector<std::string> files;
  TfRecordOptions options;
};

struct ArraysArguments {
  std::vector<ArrayField> fields;
};

struct TokenFilesArguments {
  std::vector<std::string> files;
  TokenFileOptions options;
};

struct MegatronArguments {
  std::vector<std::string> prefixes;
};

struct NumbersArguments {
  std::uint64_t size = 0;
  std::size_t bytes = 16;
};

template <class Visitor>
void visit_storage(Visitor& visit, const std::vector<std::string>& paths,
                   ObjectStorageOptions& storage) {
  if (is_remote(paths)) visit("storage", storage);
}

template <class Visitor>
void visit_fields(Visitor& visit, ImageFolderArguments& all) {
  visit.required("path", all.path);
  visit("labels", all.options.labels);
  visit("extensions", all.options.extensions);
  visit("max_file_bytes", all.options.max_file_bytes);
  visit("follow_symlinks", all.options.follow_symlinks);
  visit_storage(visit, {all.path, all.options.labels.string()}, all.options.storage);
}

template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetArguments& all) {
  visit.required("shards", all.shards);
  visit("fields", all.options.fields);
  visit("max_record_bytes", all.options.max_record_bytes);
  visit_storage(visit, all.shards, all.options.storage);
}

template <class Visitor>
void visit_fields(Visitor& visit, TfRecordArguments& all) {
  visit.required("files", all.files);
  visit("fields", all.options.fields);
  visit("max_record_bytes", all.options.max_record_bytes);
  visit("verify", all.options.verify);
  visit_storage(visit, all.files, all.options.storage);
}

template <class Visitor>
void visit_fields(Visitor& visit, ArraysArguments& all) {
  visit.required("fields", all.fields);
}

template <class Visitor>
void visit_fields(Visitor& visit, TokenFilesArguments& all) {
  visit.required("files", all.files);
  visit("dtype", all.options.dtype);
  visit("document_end", all.options.document_end);
  visit("offset", all.options.offset);
}

template <class Visitor>
void visit_fields(Visitor& visit, MegatronArguments& all) {
  visit.required("prefixes", all.prefixes);
}

template <class Visitor>
void visit_fields(Visitor& visit, NumbersArguments& all) {
  visit.required("size", all.size);
  visit("bytes", all.bytes);
}

std::vector<std::string> all_absolute(std::span<const std::string> paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) all.push_back(absolute(path));
  return all;
}

template <class Arguments>
Arguments read_arguments(std::string_view options, const char* name) {
  return core::read_options<Arguments>(core::parse_json(options, name), name);
}

}  // namespace

Description describe_image_folder(const std::filesystem::path& root,
                                  const ImageFolderOptions& options) {
  ImageFolderArguments all{absolute(root.string()), options};
  if (!options.labels.empty()) all.options.labels = absolute(options.labels.string());
  return core::describe_call(kImageFolder, all);
}

Description describe_webdataset(const ShardPaths& shards, const WebDatasetOptions& options) {
  return core::describe_call(kWebDataset,
                             WebDatasetArguments{all_absolute(shards.as_given()), options});
}

Description describe_tfrecord(const ShardPaths& files, const TfRecordOptions& options) {
  return core::describe_call(kTfRecord, TfRecordArguments{all_absolute(files.as_given()), options});
}

Description describe_arrays(const std::vector<ArrayField>& fields) {
  ArraysArguments all{fields};
  for (ArrayField& field : all.fields) field.path = absolute(field.path.string());
  return core::describe_call(kArrays, all);
}

Description describe_token_files(const ShardPaths& files, const TokenFileOptions& options) {
  return core::describe_call(kTokenFiles,
                             TokenFilesArguments{all_absolute(files.as_given()), options});
}

Description describe_megatron(const ShardPaths& prefixes) {
  return core::describe_call(kMegatron, MegatronArguments{all_absolute(prefixes.as_given())});
}

Description describe_numbers(std::uint64_t size, std::size_t bytes) {
  return core::describe_call(kNumbers, NumbersArguments{size, bytes});
}

Description describe_zip(const std::vector<Description>& parts) {
  Json sources = Json::array();
  std::string text;
  for (const Description& part : parts) {
    sources.push_back(core::write_description(part, part.name));
    text += (text.empty() ? "" : ", ") + part.text;
  }
  const Json all{{"sources", std::move(sources)}};
  return {.name = kZip, .options = core::dump_json(all), .text = fmt::format("zip({})", text)};
}

std::map<std::string, std::function<SourcePtr(std::string_view)>> describable_sources() {
  return {
      {kImageFolder,
       [](std::string_view options) {
         auto all = read_arguments<ImageFolderArguments>(options, kImageFolder);
         return image_folder(all.path, std::move(all.options));
       }},
      {kWebDataset,
       [](std::string_view options) {
         auto all = read_arguments<WebDatasetArguments>(options, kWebDataset);
         return webdataset(std::move(all.shards), std::move(all.options));
       }},
      {kTfRecord,
       [](std::string_view options) {
         auto all = read_arguments<TfRecordArguments>(options, kTfRecord);
         return tfrecord(std::move(all.files), std::move(all.options));
       }},
      {kArrays,
       [](std::string_view options) {
         return arrays(read_arguments<ArraysArguments>(options, kArrays).fields);
       }},
      {kTokenFiles,
       [](std::string_view options) {
         auto all = read_arguments<TokenFilesArguments>(options, kTokenFiles);
         return token_files(std::move(all.files), all.options);
       }},
      {kMegatron,
       [](std::string_view options) {
         return megatron(read_arguments<MegatronArguments>(options, kMegatron).prefixes);
       }},
      {kNumbers,
       [](std::string_view options) {
         const auto all = read_arguments<NumbersArguments>(options, kNumbers);
         return numbers(all.size, all.bytes);
       }},
  };
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

}  // namespace source
}  // namespace penstock
