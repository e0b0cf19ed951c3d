// source/shards/shard_names: what a file's name says about its contents; one rule for all callers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::source {

/// Of the indexes that lie beside shards: photos.tar.penstock-index.
inline constexpr std::string_view kIndexEnding = ".penstock-index";

/// In any case: photos.tar.
[[nodiscard]] bool is_tar_name(std::string_view name);

/// *.parquet or *.parq, in any case.
[[nodiscard]] bool is_parquet_name(std::string_view name);

/// *.arrow, *.arrows, *.ipc or *.feather, in any case.
[[nodiscard]] bool is_arrow_name(std::string_view name);

/// A shard of MosaicML's streaming, compressed or not: *.mds, *.mds.zstd, *.mds.gz and so on.
[[nodiscard]] bool is_mds_name(std::string_view name);

/// *.tfrecord, *.tfrecords, *.tfrec, *.record, or numbered: train-00000-of-01024.
[[nodiscard]] bool is_tfrecord_name(std::string_view name) noexcept;

/// Whether a file is an image by its ending, as image_folder() has them by default.
[[nodiscard]] bool is_image_name(std::string_view name);

/// The part of a data set that a name says, by the words of Hugging Face's datasets.
struct SplitName {
  std::string_view split;  ///< "train", "validation" or "test"
  std::string word;        ///< as it is in the name: "Dev" in "Dev-00001.parquet"
};
/// Nothing of a name that says none.
[[nodiscard]] std::optional<SplitName> split_of_name(std::string_view name);

/// Of "train-00001-of-00005.parquet".
struct NumberedName {
  /// The name with * in place of its own number, "train-*-of-00005.parquet", and of what Hugging Face's datasets once put behind
  /// the count, "train-00001-of-00005-b42f6c3b.parquet".
  std::string pattern;
  std::uint64_t number = 0;
  std::uint64_t count = 0;
};
/// Nothing of a name that is not numbered so.
[[nodiscard]] std::optional<NumberedName> numbered_name(std::string_view name);

/// The last part of a path, with a 0 in place of each part of a shell pattern, so that the rules
/// above hold for patterns too: "data/train-{00..09}-of-*" gives "train-0-of-0".
[[nodiscard]] std::string name_of_pattern(std::string_view path);

}  // namespace penstock::source
