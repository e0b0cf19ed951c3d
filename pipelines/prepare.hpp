// penstock-prepare as a function: the program runs it, and so does `python -m penstock prepare`.
#pragma once

#include <string>
#include <vector>

#include "program_output.hpp"

namespace prepare {

using programs::Output;

/// Runs with these flags, without the program's name. Returns the exit status: 0; 1 for an error in the data; 2 for wrong
/// flags.
///
/// Threads  of its own; one at a time in a folder
[[nodiscard]] int run_program(std::vector<std::string> flags, const Output& output);

}  // namespace prepare
