// A size of images as it was passed: one number for a square, or (height, width).
#pragma once

#include <utility>
#include <variant>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include <penstock/core/geometry.hpp>

namespace penstock::python {

using SizeGiven = std::variant<int, std::pair<int, int>>;

[[nodiscard]] inline ImageSize size_of(const SizeGiven& size) {
  if (const int* side = std::get_if<int>(&size)) return *side;
  const auto& [height, width] = std::get<std::pair<int, int>>(size);
  return {height, width};
}

}  // namespace penstock::python
