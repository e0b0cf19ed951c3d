// transform/crop_json: crops and colours as plans hold them: {"center_crop": {"size": [224, 224], "resize": 256}}.
#pragma once

#include <string>
#include <vector>

#include <penstock/transform/crop.hpp>

#include "src/core/json_fields.hpp"

namespace penstock::transform {

/// No fields where the crop is empty.
[[nodiscard]] core::Json write_crop(const Crop& crop);
/// Errors  Error                  no such crop, or options that are missing or unknown; begins with
///                                `where`
///         std::invalid_argument  options out of range
[[nodiscard]] Crop read_crop(const core::Json& json, const std::string& where);

/// Red, green and blue.
[[nodiscard]] std::vector<int> write_color(Color color);
/// Errors  Error  not three numbers; begins with `where`
[[nodiscard]] Color read_color(const std::vector<int>& levels, const std::string& where);

}  // namespace penstock::transform
