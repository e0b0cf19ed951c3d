// transform/signature: what kind of image some bytes are, by how they begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock::transform {

enum class ImageKind : std::uint8_t { unknown, jpeg, png, webp };

[[nodiscard]] ImageKind kind_of(std::span<const std::byte> bytes) noexcept;

/// "not a JPEG, PNG or WebP image: it starts with 'GIF8'"; "empty: 0 bytes".
[[nodiscard]] std::string describe_unknown(std::span<const std::byte> bytes);

}  // namespace penstock::transform
