// core/description: what a source or a transform says of itself: what it was made of, what its functions cost, and where its bytes come from.
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

// ---- where the bytes of a source come from ----

/// A place that reads are answered from. Each is asked before the next one: memory, then a cache on a disk, then the bucket.
struct StorageTier {
  std::string name;      ///< "memory", "disk" or "bucket"
  std::string folder{};  ///< of a cache on a disk; else empty
  std::uint64_t reads =
      0;  ///< that it answered; one that two places answered in part counts for the later one
  std::uint64_t bytes = 0;  ///< that came from it
  std::uint64_t entries =
      0;  ///< that it holds; a folder also those of others. Of the bucket: records of the data
  std::uint64_t held_bytes =
      0;  ///< likewise; of the bucket an estimate, by the mean of the samples delivered
  std::uint64_t budget_bytes = 0;  ///< that it may hold; 0 of the bucket
  /// Of the bucket, for these reads: requests sent, those that failed and may have been repeated, and those sent a second
  /// time since the first was late.
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;
  std::uint64_t hedges = 0;
  std::string warning{};  ///< why it takes nothing more, after an error; else empty
};

}  // namespace penstock
