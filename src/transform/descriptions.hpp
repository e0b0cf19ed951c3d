// transform/descriptions: what the transforms were made of, as JSON, and the transforms made of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/transform/augment_image.hpp>
#include <penstock/transform/crop_image.hpp>
#include <penstock/transform/decode_image.hpp>
#include <penstock/transform/decode_views.hpp>
#include <penstock/transform/pad.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// Names of transforms in plans.
inline constexpr const char* kAugmentImage = "augment_image";
inline constexpr const char* kCropImage = "crop_image";
inline constexpr const char* kDecodeImage = "decode_image";
inline constexpr const char* kDecodeViews = "decode_views";
inline constexpr const char* kMapFunction = "map_function";
inline constexpr const char* kPad = "pad";

/// The index and the counters are not in it: they change speed only.
[[nodiscard]] Description describe_decode_image(const DecodeImageOptions& options);
[[nodiscard]] Description describe_decode_views(const DecodeViewsOptions& options);
[[nodiscard]] Description describe_crop_image(const CropImageOptions& options);
/// The function itself is not in it, but its name is.
[[nodiscard]] Description describe_map_function(const MapFunctionOptions& options);
[[nodiscard]] Description describe_augment_image(const AugmentImageOptions& options);
[[nodiscard]] Description describe_pad(const PadOptions& options);

/// A transform for people: the text of its description, or its name and options.
[[nodiscard]] std::string describe(const Transform& transform);

/// Errors  Error  options that are missing, unknown or out of range
[[nodiscard]] TransformPtr make_decode_image(std::string_view options,
                                             std::shared_ptr<JpegIndexStore> index,
                                             std::shared_ptr<JpegStats> stats);
[[nodiscard]] TransformPtr make_decode_views(std::string_view options,
                                             std::shared_ptr<JpegIndexStore> index,
                                             std::shared_ptr<JpegStats> stats);
[[nodiscard]] TransformPtr make_crop_image(std::string_view options);
[[nodiscard]] TransformPtr make_augment_image(std::string_view options);
[[nodiscard]] TransformPtr make_pad(std::string_view options);
/// Errors  Error  no such options
[[nodiscard]] MapFunctionOptions map_function_options(std::string_view options);

}  // namespace penstock::transform
