// transform/find_field: a field by its name, or an error that says which there are.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <penstock/core/tensor.hpp>

namespace penstock::transform {

/// Errors  std::invalid_argument  no field of that name; begins with `caller`, and says what there is
[[nodiscard]] std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name,
                                     std::string_view caller);

}  // namespace penstock::transform
