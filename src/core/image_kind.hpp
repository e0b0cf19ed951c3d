// core/image_kind: what some bytes are, by how they begin: an image that is decoded, another image, or what is often taken
// for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace core {

/// The kinds that are decoded; those from `gif` on where the build has the library for them.
enum class ImageKind : std::uint8_t { unknown, jpeg, png, webp, bmp, gif, tiff, heif, jpeg_xl };

/// Bytes from the start of a file that all functions here need at most.
inline constexpr std::size_t kKindBytes = 64;

[[nodiscard]] ImageKind kind_of(std::span<const std::byte> bytes) noexcept;

/// What some bytes are, of the kinds that are known by their first bytes.
struct Content {
  std::string_view article;
  std::string_view name;  ///< "GIF image", "HTML page"; empty where it is not known
  bool is_image = false;
  ImageKind kind = ImageKind::unknown;
};
[[nodiscard]] Content content_of(std::span<const std::byte> bytes) noexcept;

/// What bytes are, or how they start: "found a GIF image", "it starts with 'abcd'".
[[nodiscard]] std::string describe_content(std::span<const std::byte> bytes);

/// Why bytes are not decoded: "not an image that can be decoded: found an HTML page", "…: it starts with 'abcd'",
/// "empty: 0 bytes".
[[nodiscard]] std::string describe_unknown(std::span<const std::byte> bytes);

}  // namespace core
}  // namespace penstock
