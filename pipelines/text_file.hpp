// Small files that the programs read and write whole.
#pragma once

#include <string>

namespace programs {

/// Errors  penstock::Error  cannot be read, or is longer than a gigabyte; names `what` and the file
[[nodiscard]] std::string read_text(const std::string& what, const std::string& path);

}  // namespace programs
