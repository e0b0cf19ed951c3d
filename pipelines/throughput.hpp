// penstock-throughput as a function: the program runs it, and so does `python -m penstock throughput`.
#pragma once

#include <string>
#include <vector>

#include "program_output.hpp"

namespace throughput {

using programs::Output;

/// Runs with these flags, without the program's name, until it is done, or interrupted by SIGINT or SIGTERM, whose handlers
/// are as before afterwards. Returns the exit status: 0; 1 for an error in the data; 2 for wrong flags; 130 when
/// interrupted.
///
/// Threads  one at a time, since it takes signals
[[nodiscard]] int run_program(std::vector<std::string> flags, const Output& output);

}  // namespace throughput
