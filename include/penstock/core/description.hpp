// core/description: what a source or a transform was made of, so that it can be made again in
// another process.
#pragma once

#include <string>

namespace penstock {

/// A name and options, for plans that are written as JSON (Dataset::to_json) and compared when a
/// state is restored. A Registry makes the thing again from both.
struct Description {
  std::string name{};          ///< "image_folder", "decode_image"; that of a Registry entry
  std::string options = "{}";  ///< a JSON object; what changes speed only stands below "speed"
  std::string text{};          ///< for people; empty: name and options
};

}  // namespace penstock
