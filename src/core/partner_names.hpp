// core/partner_names: what the fields of samples are called that come with a sample.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace penstock::core {

/// The field of the partners' numbers.
inline constexpr const char* kPartners = "partners";

/// A field of partner `number`, counted from 1: "image_1".
[[nodiscard]] inline std::string partner_name(std::string_view field, std::size_t number) {
  return fmt::format("{}_{}", field, number);
}

}  // namespace penstock::core
