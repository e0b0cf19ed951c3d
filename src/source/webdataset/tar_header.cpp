#include "src/source/webdataset/tar_header.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace penstock::source {

namespace {

struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kUser{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagic{257, 8};  // with the version
constexpr Field kPrefix{345, 155};
constexpr std::string_view kPosix{"ustar\0", 6};

std::string_view text_of(TarBlock block, Field field) noexcept {
  return {reinterpret_cast<const char*>(block.data()) + field.at, field.size};
}

std::string_view name_of(TarBlock block, Field field) noexcept {
  const std::string_view text = text_of(block, field);
  return text.substr(0, text.find('\0'));
}

// Octal digits between blanks or zeros, or base 256 where the first bit is set.
std::optional<std::uint64_t> number_of(TarBlock block, Field field) noexcept {
  std::string_view text = text_of(block, field);
  std::uint64_t value = 0;
  const auto first = static_cast<unsigned char>(text.front());
  if ((first & 0x80) != 0) {
    if (first != 0x80) return std::nullopt;  // negative, or beyond 2^88
    for (const char c : text.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return 0;
  text.remove_prefix(begin);
  const std::size_t end = text.find_first_not_of("01234567");
  if (end != text.npos && text[end] != ' ' && text[end] != '\0') return std::nullopt;
  for (const char c : text.substr(0, end)) value = value * 8 + static_cast<std::uint64_t>(c - '0');
  return value;
}

struct Sums {
  std::int64_t of_unsigned = 0;
  std::int64_t of_signed = 0;
};

Sums sums_of(TarBlock block) noexcept {
  Sums sums;
  for (const std::byte byte : block) {
    const int value = std::to_integer<int>(byte);
    sums.of_unsigned += value;
    sums.of_signed += value < 128 ? value : value - 256;
  }
  // The checksum's own field counts as blanks.
  for (const std::byte byte : block.subspan(kChecksum.at, kChecksum.size)) {
    const int value = std::to_integer<int>(byte);
    sums.of_unsigned += ' ' - value;
    sums.of_signed += ' ' - (value < 128 ? value : value - 256);
  }
  return sums;
}

}  // namespace

bool is_zero(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{}; });
}

bool has_ustar_magic(TarBlock block) noexcept {
  return text_of(block, kMagic).starts_with("ustar");
}

bool has_tar_checksum(TarBlock block) noexcept {
  const std::optional<std::uint64_t> stated = number_of(block, kChecksum);
  if (!stated || *stated > INT32_MAX) return false;
  const Sums sums = sums_of(block);
  const auto value = static_cast<std::int64_t>(*stated);
  return value == sums.of_unsigned || value == sums.of_signed;
}

std::optional<TarHeader> parse_tar_header(TarBlock block) {
  const std::optional<std::uint64_t> bytes = number_of(block, kSize);
  if (!bytes) return std::nullopt;
  TarHeader header{.name = std::string(name_of(block, kName)),
                   .bytes = *bytes,
                   .type = text_of(block, {kType, 1}).front()};
  if (text_of(block, kMagic).starts_with(kPosix)) {
    const std::string_view prefix = name_of(block, kPrefix);
    if (!prefix.empty() && !header.is_extended()) {
      header.name = fmt::format("{}/{}", prefix, header.name);
    }
  }
  // Version 7 has no type for files, and a slash behind the names of folders.
  if (header.type == '\0') header.type = header.name.ends_with('/') ? '5' : '0';
  return header;
}

bool fits_tar_header(std::string_view name) noexcept {
  return name.size() <= kName.size &&
         std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::array<std::byte, kTarBlock> make_tar_header(std::string_view name, std::uint64_t bytes,
                                                 char type) {
  std::array<std::byte, kTarBlock> block{};
  const auto put = [&](std::size_t at, std::string_view text) {
    std::ranges::transform(text, block.begin() + static_cast<std::ptrdiff_t>(at),
                           [](char c) { return static_cast<std::byte>(c); });
  };
  const auto put_number = [&](Field field, std::uint64_t value) {
    const std::size_t digits = field.size - 1;
    if (value >> (3 * digits) == 0) {
      put(field.at, fmt::format("{:0{}o}", value, digits));
      return;
    }
    for (std::size_t i = 0; i < 8; ++i) {
      block[field.at + field.size - 1 - i] = static_cast<std::byte>(value >> (8 * i));
    }
    block[field.at] = std::byte{0x80};
  };
  put(kName.at, name.substr(0, kName.size));
  put_number(kMode, 0644);
  put_number(kUser, 0);
  put_number(kGroup, 0);
  put_number(kSize, bytes);
  put_number(kTime, 0);
  put(kMagic.at, std::string_view("ustar\0"
                                  "00",
                                  8));
  put(kType, {&type, 1});
  put(kChecksum.at, "        ");
  const auto sum = static_cast<std::uint64_t>(sums_of(block).of_unsigned);
  put(kChecksum.at, fmt::format("{:06o}", sum));
  block[kChecksum.at + 6] = std::byte{};
  return block;
}

}  // namespace penstock::source
