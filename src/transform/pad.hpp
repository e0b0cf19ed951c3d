// transform/pad: rows of different lengths made one length, for an operation of another name.
#pragma once

#include <string>

#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// As penstock::pad. `too_long` ends the Fault of a sample that has more rows: "and <too_long>".
[[nodiscard]] TransformPtr pad(PadOptions options, std::string too_long);

}  // namespace penstock::transform
