// augment/json: operations in plans, each as {"its name": {its options}}.
#pragma once

#include <string>

#include <penstock/augment/augmentation.hpp>

#include "src/core/json_fields.hpp"

namespace penstock::augment {

[[nodiscard]] core::Json write_augmentation(const Augmentation& augmentation);
/// Errors  Error  no such operation, or a field that is missing, unknown or of another type; begins with `where`
///         std::invalid_argument  a number out of range
[[nodiscard]] Augmentation read_augmentation(const core::Json& json, const std::string& where);

}  // namespace penstock::augment
