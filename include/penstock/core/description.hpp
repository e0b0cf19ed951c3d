// core/description: what a source or a transform says of itself: what it was made of, and what its functions cost.
#pragma once

#include <cstdint>
#include <string>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- what a source or a transform was made of, so that it can be made again in another process ----

/// A name and options, for plans that are written as JSON (Dataset::to_json) and compared when a
/// state is restored. A Registry makes the thing again from both.
struct Description {
  std::string name{};          ///< "image_folder", "decode_image"; that of a Registry entry
  std::string options = "{}";  ///< a JSON object; what changes speed only stands below "speed"
  std::string text{};          ///< for people; empty: name and options
};

// ---- the time that a source or a transform spends in functions of another language ----

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
