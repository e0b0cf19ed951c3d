// core/lower_case: ASCII letters, independent of the locale.
#pragma once

#include <string>
#include <string_view>

namespace penstock::core {

/// ASCII letters in lower case; others as they are.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace penstock::core
