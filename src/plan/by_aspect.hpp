// plan/by_aspect: what batch_by_aspect needs of the plan before it, and gives to the one after.
#pragma once

#include <functional>
#include <span>

#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

#include "src/order/order.hpp"
#include "src/plan/operations.hpp"
#include "src/sequence/sorted.hpp"

namespace penstock::plan {

/// `map` is called with each of the shapes.
///
/// Errors  std::invalid_argument  options that contradict each other; no map; and what `map` throws
[[nodiscard]] ByAspect make_by_aspect(const std::function<TransformPtr(ImageSize)>& map,
                                      ByAspectOptions options);

/// Errors  std::invalid_argument  options that contradict each other; not one map for each shape
void check_options(std::span<const FieldSpec> fields, const ByAspect& given);

/// Errors  as sequence::sort_by_aspect
[[nodiscard]] sequence::Sorted sort(const Source& source, const order::Order& order,
                                    const ByAspect& given, bool drops_last);

}  // namespace penstock::plan
