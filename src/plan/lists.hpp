// plan/lists: the long lists of a plan (positions, weights, sizes), in its JSON or in files
// beside it.
#pragma once

#include <filesystem>
#include <string>

#include "src/core/json_fields.hpp"
#include "src/plan/operations.hpp"

namespace penstock::plan {

/// 16 hexadecimal digits over the bytes of a list.
template <class T>
[[nodiscard]] std::string hash_of(const std::vector<T>& list);

/// {"count": 8, "hash": "…"}.
template <class T>
[[nodiscard]] core::Json summary_of(const std::vector<T>& list);

/// The numbers or sizes; or where there are more than 1,000 of them and a folder is given, a summary that
/// names the file in it that holds them.
///
/// Errors  Error  the file cannot be written
template <class T>
[[nodiscard]] core::Json write_list(const std::vector<T>& list,
                                    const std::filesystem::path& folder);

/// Errors  Error  no such list; its file is missing or holds something else; begins with `where`
template <class T>
[[nodiscard]] List<T> read_list(const core::Json& json, const std::filesystem::path& folder,
                                const std::string& where);

}  // namespace penstock::plan
