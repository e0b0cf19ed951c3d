// source/webdataset/tar_samples: which members of a tar file make one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/source/shards/index_files.hpp"

namespace penstock::source {

/// A member's name, taken apart.
struct SampleName {
  std::string_view key;        ///< up to the first dot of the last component, folders included
  std::string_view extension;  ///< behind that dot, with its case
};

/// As the webdataset package does: nothing for names without a dot, and for its own notes, whose
/// names begin with __something__.
///
/// Source  webdataset 1.0.2, tariterators.base_plus_ext and tar_file_iterator.
[[nodiscard]] std::optional<SampleName> split_name(std::string_view name) noexcept;

/// Whether macOS has added a member to hold a file's attributes: "._name" in any folder, and all
/// that is below __MACOSX/.
[[nodiscard]] bool is_apple_member(std::string_view name) noexcept;

/// What a text such as " 17\n" says, as Python's int() reads it: blanks around, a sign.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// Names in messages are cut off here: a pax header may hold one of a megabyte.
inline constexpr std::size_t kMostShownName = 200;

/// What to do, with GNU tar and with others: macOS has bsdtar, which knows neither --sort nor --hard-dereference.
inline constexpr std::string_view kPackSorted =
    "pack the files in the order of their names: tar --sort=name with GNU tar, or find . -type f | "
    "LC_ALL=C sort | "
    "tar -cf ../shard.tar -T - with any";
inline constexpr std::string_view kPackHardLinks =
    "tar --hard-dereference with GNU tar, or pack a copy of the folder that cp -RL has made";

/// The samples of a tar file: neighbouring members with one key. `labels` names extensions,
/// alternatives separated by a blank, whose members are read as integers.
///
/// A damaged stretch belongs to the sample that it lies in, or that lacks what the shard's other
/// samples have, and so moves no other sample; only where no neighbour lacks anything it counts as
/// a sample of its own. Links, devices and pipes make no sample; they are hints at why one lacks something, or, behind the last
/// record, at why there is none.
///
/// Errors  Error  as scan_tar
[[nodiscard]] ScannedShard scan_tar_samples(const storage::StoredFile& file,
                                            const std::string& path,
                                            std::span<const std::string> labels);

/// What is damaged, in words.
[[nodiscard]] std::string describe_tar_damage(const Damage& damage);

/// What a hint says of a sample whose key and first header are these, with what to do.
[[nodiscard]] std::string describe_tar_hint(const Hint& hint, std::string_view key,
                                            std::uint64_t begin);

}  // namespace penstock::source
