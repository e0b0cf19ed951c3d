#include "src/transform/find_field.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace penstock::transform {

std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name,
                       std::string_view caller) {
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
  std::string names;
  for (const FieldSpec& field : fields) names += (names.empty() ? "" : ", ") + field.to_string();
  throw std::invalid_argument(
      fmt::format("{} needs a field '{}', and there is none: there are {}", caller, name, names));
}

}  // namespace penstock::transform
