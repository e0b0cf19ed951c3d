// core/with_commas: large numbers for people.
#pragma once

#include <cstddef>
#include <string>

namespace penstock::core {

/// "1,234,567" of "1234567".
[[nodiscard]] inline std::string with_commas(std::string digits) {
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace penstock::core
