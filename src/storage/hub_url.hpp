// storage/hub_url: paths in data sets of the Hugging Face Hub, "hf://datasets/owner/name@revision/path".
#pragma once

#include <string>
#include <string_view>

#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// A data set at one of its branches, tags or commits.
struct HubRevision {
  std::string id;  ///< "owner/name"
  std::string revision = "main";

  /// Whether the revision is the whole hash of a commit.
  [[nodiscard]] bool is_commit() const noexcept;
};

[[nodiscard]] inline bool is_hub_url(std::string_view path) noexcept {
  return path.starts_with("hf://");
}

/// The bucket is what names the data set and the revision. A revision ends at a slash, but for "refs/pr/3" and
/// "refs/convert/parquet"; slashes of others are written %2F. The path is taken as it is, without escapes.
///
/// Errors  std::invalid_argument  not "hf://datasets/owner/name"; says what was found in its place, and the right form
[[nodiscard]] ObjectName parse_hub_url(std::string_view url);

/// Of the bucket of such a name.
[[nodiscard]] HubRevision hub_revision_of(std::string_view bucket);

/// Why a path on the Hub is not written to.
[[nodiscard]] std::string cannot_write_to_hub(std::string_view path);

}  // namespace penstock::storage
