// penstock-throughput as a function: the program runs it, and so does `python -m penstock throughput`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace throughput {

/// Where the program writes.
struct Output {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;  ///< and shows progress
};

/// Runs with these flags, without the program's name, until it is done, or interrupted by SIGINT or SIGTERM, whose handlers
/// are as before afterwards. Returns the exit status: 0; 1 for an error in the data; 2 for wrong flags; 130 when
/// interrupted.
///
/// Threads  one at a time, since it takes signals
[[nodiscard]] int run_program(std::vector<std::string> flags, const Output& output);

}  // namespace throughput
