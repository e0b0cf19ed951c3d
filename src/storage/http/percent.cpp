#include "src/storage/http/percent.hpp"

#include <cstddef>

#include <fmt/format.h>

namespace penstock::storage {

namespace {

int hex_digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (keep_slashes && c == '/');
    if (plain) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string percent_decode(std::string_view text, bool is_query) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit_of(text[i + 1]) >= 0 &&
                        hex_digit_of(text[i + 2]) >= 0;
    if (escape) {
      plain += static_cast<char>(hex_digit_of(text[i + 1]) * 16 + hex_digit_of(text[i + 2]));
      i += 2;
    } else {
      plain += is_query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

}  // namespace penstock::storage
