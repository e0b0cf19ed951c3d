// transform/descriptions: what the transforms were made of, as JSON, and the transforms made of it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/function.hpp>

namespace penstock::transform {

/// The index and the counters are not in it: they change speed only.
[[nodiscard]] Description describe_decode_image(const DecodeImageOptions& options);
/// The function itself is not in it, but its name is.
[[nodiscard]] Description describe_map_function(const MapFunctionOptions& options);

/// A transform for people: the text of its description, or its name and options.
[[nodiscard]] std::string describe(const Transform& transform);

/// Functions that make a transform of the options of its description, by its name.
///
/// Errors  Error  options that are missing, unknown or out of range
[[nodiscard]] std::map<std::string, std::function<TransformPtr(std::string_view)>>
describable_transforms();

/// Errors  Error  no such options
[[nodiscard]] MapFunctionOptions map_function_options(std::string_view options);

}  // namespace penstock::transform
