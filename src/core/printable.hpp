// core/printable: text from elsewhere (file names, servers) as a terminal may show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::core {

/// Control characters, which a terminal would obey, as \xNN; the rest as it is. Longer text than `most` bytes is cut off.
[[nodiscard]] inline std::string printable(std::string_view text,
                                           std::size_t most = std::string_view::npos) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string shown;
  const auto escape = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    shown += "\\x";
    shown += kDigits[byte >> 4];
    shown += kDigits[byte & 15];
  };
  for (std::size_t i = 0; i < text.size() && i < most; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // In UTF-8, U+0080 to U+009F are control characters, too.
    const bool is_second = i > 0 && text[i - 1] == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (byte < 0x20 || byte == 0x7f || is_second)
      escape(text[i]);
    else
      shown += text[i];
  }
  if (text.size() > most) shown += " ...";
  return shown;
}

}  // namespace penstock::core
