// Colours as they are passed: 114, or (red, green, blue).
#pragma once

#include <optional>
#include <tuple>
#include <variant>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <penstock/penstock.hpp>

namespace penstock::python {

using Levels = std::variant<int, std::tuple<int, int, int>>;

[[nodiscard]] inline Color color_of(const Levels& levels) {
  if (const int* level = std::get_if<int>(&levels)) return *level;
  const auto& [red, green, blue] = std::get<std::tuple<int, int, int>>(levels);
  return {red, green, blue};
}
[[nodiscard]] inline std::optional<Color> color_of(const std::optional<Levels>& levels) {
  if (!levels) return std::nullopt;
  return color_of(*levels);
}

}  // namespace penstock::python
