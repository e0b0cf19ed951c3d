// Small files that the programs read and write whole.
#pragma once

#include <string>

namespace programs {

/// Errors  penstock::Error  names `what` and the file
[[nodiscard]] std::string read_text(const std::string& what, const std::string& path);

/// All of the text or nothing appears under `path`, also when the machine stops in between.
///
/// Errors  penstock::Error
void write_atomically(const std::string& path, const std::string& text);

}  // namespace programs
