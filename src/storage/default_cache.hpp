// storage/default_cache: the folder for data that can be made again.
#pragma once

#include <filesystem>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace storage {

/// $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else ~/.cache/penstock, else penstock-UID in the
/// temporary folder, which this makes.
///
/// Errors  std::filesystem::filesystem_error  that last one is another user's, or others may write to it
[[nodiscard]] std::filesystem::path default_cache();

}  // namespace storage
}  // namespace penstock
