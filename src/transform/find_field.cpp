#include "src/transform/find_field.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace penstock::transform {

bool is_encoded(const FieldSpec& field) {
  return field.dtype == DType::u8 && field.shape == Shape{kDynamic};
}

bool is_decoded(const FieldSpec& field) {
  const auto extents = field.shape.extents();
  return (field.dtype == DType::u8 || field.dtype == DType::u16) && extents.size() == 3 &&
         (extents[2] == 1 || extents[2] == 3);
}

std::size_t find_field(std::span<const FieldSpec> fields, std::string_view name,
                       std::string_view caller, Fits fits) {
  const auto found = std::ranges::find(fields, name, &FieldSpec::name);
  if (found != fields.end()) return static_cast<std::size_t>(found - fields.begin());
  std::string names;
  for (const FieldSpec& field : fields) names += (names.empty() ? "" : ", ") + field.to_string();
  throw std::invalid_argument(
      fmt::format("{} needs a field '{}', and there is none: there are {}{}", caller, name, names,
                  fits == nullptr ? "" : name_another(fields, fields.size(), fits)));
}

std::string name_another(std::span<const FieldSpec> fields, std::size_t found, Fits fits) {
  for (std::size_t field = 0; field < fields.size(); ++field)
    if (field != found && fits(fields[field]))
      return fmt::format("; name it by field='{}'", fields[field].name);
  return {};
}

std::string call_with_field(std::string_view function, std::string_view field,
                            std::string_view options) {
  return field == "image" ? fmt::format("{}({})", function, options)
                          : fmt::format("{}(field='{}', {})", function, field, options);
}

void check_names(std::string_view caller, std::string_view noun, std::span<const std::string> names,
                 std::span<const std::string> taken) {
  for (const std::string& name : names) {
    if (name.empty())
      throw std::invalid_argument(fmt::format("{}: a {} has no name", caller, noun));
    if (std::ranges::count(taken, name) > 0 || std::ranges::count(names, name) > 1)
      throw std::invalid_argument(
          fmt::format("{}: the {} '{}' has the name of another field", caller, noun, name));
  }
}

}  // namespace penstock::transform
