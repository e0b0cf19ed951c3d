#include "src/transform/signature.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace penstock::transform {
namespace {

bool matches(std::span<const std::byte> bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() &&
         std::ranges::equal(bytes.subspan(at, text.size()), text, {},
                            [](std::byte b) { return static_cast<char>(b); });
}

}  // namespace

ImageKind kind_of(std::span<const std::byte> bytes) noexcept {
  if (matches(bytes, 0, "\xFF\xD8\xFF")) return ImageKind::jpeg;
  if (matches(bytes, 0, "\x89PNG\r\n\x1A\n")) return ImageKind::png;
  if (matches(bytes, 0, "RIFF") && matches(bytes, 8, "WEBP")) return ImageKind::webp;
  return ImageKind::unknown;
}

std::string describe_unknown(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "empty: 0 bytes";
  std::string start;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    const auto c = static_cast<char>(byte);
    if (c >= ' ' && c <= '~' && c != '\\' && c != '\'')
      start += c;
    else
      start += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
  }
  return fmt::format("not a JPEG, PNG or WebP image: it starts with '{}'", start);
}

}  // namespace penstock::transform
