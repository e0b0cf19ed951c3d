// source/folder/form_of_tables: the kind of the tables in a folder that may have images, too.
#pragma once

#include <filesystem>

#include <penstock/source/images.hpp>

namespace penstock::source {

/// As image_form(), but images beside the tables, or in folders beside them, are left alone: those are what the tables name.
///
/// Errors  Error  files of several kinds; of s3:// and hf:// folders: they cannot be listed
[[nodiscard]] ImageForm form_of_tables(const std::filesystem::path& path,
                                       const ObjectStorageOptions& storage);

}  // namespace penstock::source
