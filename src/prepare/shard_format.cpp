#include "src/prepare/shard_format.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/shards.hpp>

#include "src/source/parquet/parquet_images.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_names.hpp"

namespace penstock::prepare {

namespace {

std::string beside(PrepareFormat format, const std::string& name) {
  return format == PrepareFormat::parquet ? "." + name : name;
}

}  // namespace

std::string shard_name(const PrepareOptions& options, std::uint64_t shard, std::uint64_t shards) {
  if (options.format == PrepareFormat::tar) return fmt::format("{}-{:06}.tar", options.name, shard);
  // More digits for more shards, so that the order of the names is that of the shards.
  const std::string all = fmt::format("{:05}", shards);
  return fmt::format("{}-{:0{}}-of-{}.parquet", options.name, shard, all.size(), all);
}

std::string jpeg_index_name(PrepareFormat format, const std::string& shard) {
  return beside(format, std::filesystem::path(shard).replace_extension(".jpegindex").string());
}

std::string shard_index_name(PrepareFormat format, const std::string& shard) {
  return source::index_path(
      format == PrepareFormat::parquet ? source::ShardKind::parquet : source::ShardKind::tar,
      shard);
}

std::string record_name(PrepareFormat format) { return beside(format, "penstock-prepare.json"); }

bool is_own_name(const PrepareOptions& options, const std::string& file) {
  return file.starts_with(options.name + "-") ||
         file.starts_with(beside(options.format, options.name + "-")) ||
         file.starts_with(record_name(options.format));
}

bool is_shard_name(PrepareFormat format, const std::string& file) {
  if (file.starts_with('.')) return false;
  return format == PrepareFormat::parquet ? source::is_parquet_name(file) : file.ends_with(".tar");
}

std::unique_ptr<ShardWriter> make_shard_writer(PrepareFormat format,
                                               std::unique_ptr<core::ByteSink> to,
                                               const Input& input) {
  return format == PrepareFormat::parquet ? parquet_shard_writer(std::move(to), input)
                                          : tar_shard_writer(std::move(to));
}

SourcePtr open_shards(PrepareFormat format, const std::string& folder,
                      const ObjectStorageOptions& storage) {
  if (format == PrepareFormat::parquet)
    return source::parquet_images(folder, {.storage = storage}, 0);
  return source::webdataset(folder, {.storage = storage});
}

}  // namespace penstock::prepare
