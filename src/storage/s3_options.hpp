// storage/s3_options: which options are of s3:// paths alone.
#pragma once

#include <penstock/storage/object_storage.hpp>

namespace penstock::storage {

/// The name of the first of them that is set; null where none is.
[[nodiscard]] inline const char* s3_option_in(const ObjectStorageOptions& options) noexcept {
  if (!options.endpoint.empty()) return "endpoint";
  if (!options.region.empty()) return "region";
  if (!options.profile.empty()) return "profile";
  if (options.path_style.has_value()) return "path_style";
  return options.requester_pays ? "requester_pays" : nullptr;
}

/// The others, for hf:// and https:// paths of a call that has s3:// paths, too.
[[nodiscard]] inline ObjectStorageOptions without_s3_options(ObjectStorageOptions options) {
  options.endpoint.clear();
  options.region.clear();
  options.profile.clear();
  options.path_style.reset();
  options.requester_pays = false;
  return options;
}

}  // namespace penstock::storage
