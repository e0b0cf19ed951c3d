// source/folder/image_folder: image folders that others know by another name.
#pragma once

#include <filesystem>

#include <penstock/core/description.hpp>
#include <penstock/core/export.hpp>
#include <penstock/source/images.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace source {

/// As image_folder(), with a description of its own.
[[nodiscard]] SourcePtr described_image_folder(const std::filesystem::path& root,
                                               const ImageFolderOptions& options,
                                               Description description);

}  // namespace source
}  // namespace penstock
