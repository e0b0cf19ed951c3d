// core/write_file: small files that are replaced whole: states, reports, lists.
#pragma once

#include <filesystem>
#include <string_view>

namespace penstock {

/// Afterwards the file holds `text`, or what it held before, also when the machine stops in between.
/// A symbolic link stays one, and the file that it names is replaced; that keeps its owner and its
/// permissions. Devices, pipes and what /dev/stdout is are written to.
///
/// Threads  any
/// Errors   Error  the file cannot be written; says why
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace penstock
