// augment/json: operations in plans, each as {"its name": {its options}}.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <penstock/augment/augmentation.hpp>

#include "src/core/json_fields.hpp"

namespace penstock::augment {

[[nodiscard]] core::Json write_augmentation(const Augmentation& augmentation);
/// Errors  Error  no such operation, or a field that is missing, unknown or of another type; begins with `where`
///         std::invalid_argument  a number out of range
[[nodiscard]] Augmentation read_augmentation(const core::Json& json, const std::string& where);

/// For visit_fields: a list of operations. One of none is not written.
template <class Visitor>
void visit_augmentations(Visitor& visit, const char* name, std::vector<Augmentation>& operations) {
  if constexpr (std::is_same_v<Visitor, core::JsonReader>) {
    std::vector<core::Json> list;
    visit(name, list);
    operations.clear();
    for (std::size_t k = 0; k < list.size(); ++k)
      operations.push_back(
          read_augmentation(list[k], fmt::format("{}: '{}'[{}]", visit.where(), name, k)));
  } else {
    std::vector<core::Json> list;
    for (const Augmentation& operation : operations) list.push_back(write_augmentation(operation));
    if (!list.empty()) visit(name, list);
  }
}

}  // namespace penstock::augment
