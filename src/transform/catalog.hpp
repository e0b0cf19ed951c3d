// transform/catalog: the transforms that a plan can name: their descriptions, and transforms made of these.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/description.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/transform.hpp>

namespace penstock::transform {

/// What a plan has of the transform that is made of these options: their kName and all fields that visit_fields names. The
/// index and the counters of decoders are not among them, and of map_function the name stands for the function.
template <class Options>
[[nodiscard]] Description describe(const Options& options);

/// Its text is that of a call: "halve(image) -> image u8 [?]".
[[nodiscard]] Description describe(const MapFunctionOptions& options);

/// A transform for people: the text of its description, or its name and options.
[[nodiscard]] std::string describe(const Transform& transform);

/// The names of all transforms of the library but map_function, whose functions have names of their own.
[[nodiscard]] std::vector<std::string> names_of_transforms();

/// What decodes images uses these; null for none.
struct DecodingAids {
  std::shared_ptr<JpegIndexStore> index{};
  std::shared_ptr<JpegStats> stats{};
};

/// The transform of that name, made of the options of its description; null where there is no such name.
///
/// Errors  Error                  a field is missing, unknown or has another type
///         std::invalid_argument  a value is out of range
[[nodiscard]] TransformPtr make(std::string_view name, std::string_view options,
                                const DecodingAids& aids = {});
/// Errors  Error  as make()
[[nodiscard]] MapFunctionOptions map_function_options(std::string_view options);

}  // namespace penstock::transform
