// source/webdataset/tar_header: the 512-byte headers of tar files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::source {

inline constexpr std::size_t kTarBlock = 512;
using TarBlock = std::span<const std::byte, kTarBlock>;

/// What a header says. POSIX ustar, GNU tar's and version 7's.
struct TarHeader {
  std::string name;  ///< with the prefix of a ustar header in front
  std::uint64_t bytes = 0;
  char type = '0';

  [[nodiscard]] bool is_file() const noexcept { return type == '0' || type == '7'; }
  /// A hard or symbolic link, a device or a pipe.
  [[nodiscard]] bool is_link_or_special() const noexcept {
    return type >= '1' && type <= '6' && type != '5';
  }
  /// Links, folders and devices have no data, whatever size they state.
  [[nodiscard]] bool has_data() const noexcept { return type < '1' || type > '6'; }
  /// A header for the header behind it: pax records, or GNU tar's long names.
  [[nodiscard]] bool is_extended() const noexcept {
    return type == 'x' || type == 'g' || type == 'L' || type == 'K' || type == 'X';
  }
};

[[nodiscard]] bool is_zero(std::span<const std::byte> bytes) noexcept;
/// Whether the block has ustar's magic, which POSIX and GNU share.
[[nodiscard]] bool has_ustar_magic(TarBlock block) noexcept;
/// Whether the block's checksum is that of its bytes, taken as unsigned or, as old tars did,
/// signed.
[[nodiscard]] bool has_tar_checksum(TarBlock block) noexcept;
/// The fields, whatever the checksum says; nothing if the size is invalid.
[[nodiscard]] std::optional<TarHeader> parse_tar_header(TarBlock block);

/// The bytes that a member's data takes up, whole blocks. No more than 2^64 - 1.
[[nodiscard]] constexpr std::uint64_t padded(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kLast = ~std::uint64_t{kTarBlock - 1};
  return bytes > kLast ? UINT64_MAX : (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

/// Whether a header holds all of a name that has one more header in front: up to 100 bytes of ASCII.
[[nodiscard]] bool fits_tar_header(std::string_view name) noexcept;

/// A ustar header, with times and owners of 0; the size in base 256 where octal digits do not
/// suffice. Of a name beyond 100 bytes the rest is left out.
[[nodiscard]] std::array<std::byte, kTarBlock> make_tar_header(std::string_view name,
                                                               std::uint64_t bytes, char type);

}  // namespace penstock::source
