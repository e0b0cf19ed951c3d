#include "src/core/image_kind.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace penstock::core {
namespace {

using namespace std::string_view_literals;

bool matches(std::span<const std::byte> bytes, std::size_t at, std::string_view text) noexcept {
  return bytes.size() >= at + text.size() &&
         std::ranges::equal(bytes.subspan(at, text.size()), text, {},
                            [](std::byte b) { return static_cast<char>(b); });
}

struct Signature {
  std::size_t at;
  std::string_view text;
  Content content;
};

// Of ISO base media files ("ftyp" at byte 4) the brand at byte 8 tells the kind.
constexpr std::array kSignatures{
    Signature{0, "\xFF\xD8\xFF"sv, {"a", "JPEG image", true, ImageKind::jpeg}},
    Signature{0, "\x89PNG\r\n\x1A\n"sv, {"a", "PNG image", true, ImageKind::png}},
    Signature{0, "GIF8"sv, {"a", "GIF image", true, ImageKind::gif}},
    Signature{0, "II*\0"sv, {"a", "TIFF image or a camera's raw file", true, ImageKind::tiff}},
    Signature{0, "MM\0*"sv, {"a", "TIFF image or a camera's raw file", true, ImageKind::tiff}},
    Signature{0, "II+\0"sv, {"a", "BigTIFF image", true, ImageKind::tiff}},
    Signature{0, "MM\0+"sv, {"a", "BigTIFF image", true, ImageKind::tiff}},
    Signature{4, "ftypavif"sv, {"an", "AVIF image", true, ImageKind::heif}},
    Signature{4, "ftypavis"sv, {"an", "AVIF image sequence", true, ImageKind::heif}},
    Signature{4, "ftyphei"sv, {"a", "HEIF image", true, ImageKind::heif}},
    Signature{4, "ftyphev"sv, {"a", "HEIF image sequence", true, ImageKind::heif}},
    Signature{4, "ftypmif1"sv, {"a", "HEIF image", true, ImageKind::heif}},
    Signature{4, "ftypmsf1"sv, {"a", "HEIF image sequence", true, ImageKind::heif}},
    Signature{0, "\xFF\x0A"sv, {"a", "JPEG XL image", true, ImageKind::jpeg_xl}},
    Signature{0, "\0\0\0\x0CJXL "sv, {"a", "JPEG XL image", true, ImageKind::jpeg_xl}},
    Signature{0, "\0\0\0\x0CjP  "sv, {"a", "JPEG 2000 image", true}},
    Signature{0, "\xFF\x4F\xFF\x51"sv, {"a", "JPEG 2000 image", true}},
    Signature{0, "8BPS"sv, {"a", "Photoshop image", true}},
    Signature{4, "ftyp"sv, {"a", "video or another ISO media file", false}},
    Signature{0, "\x1F\x8B"sv, {"a", "file compressed with gzip", false}},
    Signature{0, "\x28\xB5\x2F\xFD"sv, {"a", "file compressed with zstd", false}},
    Signature{0, "PK\x03\x04"sv, {"a", "zip archive", false}},
    Signature{0, "%PDF"sv, {"a", "PDF document", false}},
    Signature{0, "\0\x05\x16\x07"sv, {"an", "AppleDouble file of macOS (._name)", false}},
    Signature{0,
              "version https://git-lfs"sv,
              {"a", "Git LFS pointer (git lfs pull gets the file)", false}},
};

// "BM", the file's size, and two reserved fields that are zero (or a hotspot, where the size of a known header follows): two
// letters alone begin many a text.
bool is_bmp(std::span<const std::byte> bytes) noexcept {
  constexpr std::array kHeaders{"\x0C\0\0\0"sv, "\x28\0\0\0"sv, "\x40\0\0\0"sv, "\x6C\0\0\0"sv,
                                "\x7C\0\0\0"sv};
  return matches(bytes, 0, "BM") &&
         (matches(bytes, 6, "\0\0\0\0"sv) ||
          std::ranges::any_of(kHeaders, [&](auto header) { return matches(bytes, 14, header); }));
}

bool is_webp(std::span<const std::byte> bytes) noexcept {
  return matches(bytes, 0, "RIFF") && matches(bytes, 8, "WEBP");
}

// HEIF's own brand, and AVIF's among those that the file is compatible with, which begin at byte 16.
bool is_avif(std::span<const std::byte> bytes) noexcept {
  if (!matches(bytes, 4, "ftypmif1")) return false;
  bytes = bytes.first(std::min({bytes.size(), kKindBytes, std::to_integer<std::size_t>(bytes[3])}));
  for (std::size_t at = 16; at + 4 <= bytes.size(); at += 4)
    if (matches(bytes, at, "avif")) return true;
  return false;
}

// Whether a text begins so, after blanks, in upper or lower case.
bool is_text(std::span<const std::byte> bytes, std::string_view lower_case) noexcept {
  while (!bytes.empty() && (bytes.front() == std::byte{' '} || bytes.front() == std::byte{'\n'} ||
                            bytes.front() == std::byte{'\r'} || bytes.front() == std::byte{'\t'}))
    bytes = bytes.subspan(1);
  return bytes.size() >= lower_case.size() &&
         std::ranges::equal(bytes.first(lower_case.size()), lower_case, {}, [](std::byte b) {
           const auto c = static_cast<char>(b);
           return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
         });
}

}  // namespace

ImageKind kind_of(std::span<const std::byte> bytes) noexcept { return content_of(bytes).kind; }

Content content_of(std::span<const std::byte> bytes) noexcept {
  if (is_webp(bytes)) return {"a", "WebP image", true, ImageKind::webp};
  if (is_bmp(bytes)) return {"a", "BMP image", true, ImageKind::bmp};
  if (is_avif(bytes)) return {"an", "AVIF image", true, ImageKind::heif};
  for (const Signature& signature : kSignatures)
    if (matches(bytes, signature.at, signature.text)) return signature.content;
  if (is_text(bytes, "<!doctype html") || is_text(bytes, "<html"))
    return {"an", "HTML page", false};
  if (is_text(bytes, "<svg")) return {"an", "SVG drawing", true};
  if (is_text(bytes, "<?xml")) return {"an", "XML file", false};
  return {};
}

std::string describe_content(std::span<const std::byte> bytes) {
  if (const Content content = content_of(bytes); !content.name.empty())
    return fmt::format("found {} {}", content.article, content.name);
  std::string start;
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    const auto c = static_cast<char>(byte);
    if (c >= ' ' && c <= '~' && c != '\\' && c != '\'')
      start += c;
    else
      start += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
  }
  return fmt::format("it starts with '{}'", start);
}

std::string describe_unknown(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "empty: 0 bytes";
  return "not an image that can be decoded: " + describe_content(bytes);
}

}  // namespace penstock::core
