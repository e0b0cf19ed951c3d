// Which types a source file defines, under which full name. Types leave no symbols, so that a linker does not see two of
// one name; the program then has one that is neither.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::layering {

/// The full names of the classes, structs, unions and enums that C++ `text` defines, sorted, each once. Left out is what
/// no other file can mean: those in an unnamed namespace or in a function. Not a compiler: a type that is defined by a
/// macro is not seen.
[[nodiscard]] std::vector<std::string> types_defined_in(std::string_view text);

/// One line for each type that more than one file of the library below `root` defines: "name: file, file".
[[nodiscard]] std::vector<std::string> types_defined_twice(const std::filesystem::path& root);

}  // namespace penstock::layering
