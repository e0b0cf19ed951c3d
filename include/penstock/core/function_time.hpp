// core/function_time: what functions of another language cost, in whose hands the samples are meanwhile.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// A function of another language that a source or a transform calls, such as one of Python.
struct FunctionTime {
  std::string name;    ///< "the Python function 'blur'"
  std::string lock;    ///< that only one thread at a time has: "the GIL"
  std::string remedy;  ///< what to do where it limits the speed
  std::uint64_t calls = 0;
  double wait_s = 0;  ///< for the lock, over all threads
  double busy_s = 0;  ///< in the function, and in handing values over
};

}  // namespace penstock
