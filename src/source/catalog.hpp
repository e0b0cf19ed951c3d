// source/catalog: the sources that a plan can name: their descriptions, and sources made of these.
//
// Paths are absolute. What changes speed only (where indexes are kept, caches, timeouts, threads)
// is not in it, nor are credentials.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/source/annotations.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/tables.hpp>
#include <penstock/source/tokens.hpp>

namespace penstock::source {

[[nodiscard]] Description describe_image_folder(const std::filesystem::path& root,
                                                const ImageFolderOptions& options);
/// `paths` are relative to options.root, which is absolute.
[[nodiscard]] Description describe_files(std::vector<std::string> paths, FilesOptions options);
[[nodiscard]] Description describe_images_from(const std::filesystem::path& table,
                                               const ImagesFromOptions& options);
[[nodiscard]] Description describe_coco(const std::filesystem::path& annotations,
                                        const CocoOptions& options);
[[nodiscard]] Description describe_yolo(const std::filesystem::path& data,
                                        const YoloOptions& options);
[[nodiscard]] Description describe_voc(const std::filesystem::path& root,
                                       const VocOptions& options);
[[nodiscard]] Description describe_webdataset(const ShardPaths& shards,
                                              const WebDatasetOptions& options);
[[nodiscard]] Description describe_tfrecord(const ShardPaths& files,
                                            const TfRecordOptions& options);
[[nodiscard]] Description describe_parquet(const ShardPaths& files, const ParquetOptions& options);
[[nodiscard]] Description describe_arrow(const ShardPaths& files, const ArrowOptions& options);
[[nodiscard]] Description describe_mds(const ShardPaths& folders, const MdsOptions& options);
[[nodiscard]] Description describe_arrays(const std::vector<ArrayField>& fields);
[[nodiscard]] Description describe_token_files(const ShardPaths& files,
                                               const TokenFileOptions& options);
[[nodiscard]] Description describe_megatron(const ShardPaths& prefixes);
[[nodiscard]] Description describe_numbers(std::uint64_t size, std::size_t bytes);
[[nodiscard]] Description describe_zip(const std::vector<Description>& parts);

/// Functions that make a source of the options of its description, by its name.
///
/// Errors  Error  options that are missing, unknown or out of range; and as the sources
[[nodiscard]] std::map<std::string, std::function<SourcePtr(std::string_view)>> makers_of_sources();

/// Errors  Error  no such options
[[nodiscard]] std::vector<Description> parts_of_zip(std::string_view options);

}  // namespace penstock::source
