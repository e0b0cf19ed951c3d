#include "src/source/parquet/delta.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/source/parquet/hybrid.hpp"

namespace penstock::source {

namespace {

std::uint64_t zigzag_decoded(std::uint64_t value) noexcept {
  return (value >> 1) ^ (~(value & 1) + 1);
}

}  // namespace

std::size_t decode_delta_binary(std::span<const std::byte> bytes, std::span<std::uint64_t> out,
                                const ParquetOrigin& origin) {
  if (out.empty() && bytes.empty()) return 0;
  constexpr std::uint64_t kLargestBlock = std::uint64_t{1} << 31;
  std::size_t at = 0;
  const std::uint64_t block = read_uleb128(bytes, at, origin);
  const std::uint64_t parts = read_uleb128(bytes, at, origin);
  const std::uint64_t total = read_uleb128(bytes, at, origin);
  std::uint64_t value = zigzag_decoded(read_uleb128(bytes, at, origin));
  if (block == 0 || block > kLargestBlock || block % 128 != 0 || parts == 0 || block % parts != 0 ||
      (block / parts) % 32 != 0)
    throw_parquet_damage(
        origin, at,
        fmt::format(
            "expected blocks of a multiple of 128 integers, in parts of a multiple of 32, and "
            "found {} in {} parts",
            block, parts));
  if (total != out.size())
    throw_parquet_damage(origin, at,
                         fmt::format("expected {} integers, and found {}", out.size(), total));
  if (out.empty()) return at;
  const std::uint64_t part = block / parts;
  std::size_t done = 0;
  out[done++] = value;
  while (done < out.size()) {
    const std::uint64_t least = zigzag_decoded(read_uleb128(bytes, at, origin));
    if (parts > bytes.size() - at)
      throw_parquet_damage(origin, at, "a block of integers ends within its head");
    const auto widths = bytes.subspan(at, static_cast<std::size_t>(parts));
    at += widths.size();
    for (const std::byte of_part : widths) {
      if (done == out.size()) break;
      const auto width = std::to_integer<unsigned>(of_part);
      if (width > 64)
        throw_parquet_damage(origin, at, fmt::format("integers of {} bits do not exist", width));
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(part, out.size() - done));
      const auto packed = bytes.subspan(at);
      if ((std::uint64_t{count} * width + 7) / 8 > packed.size())
        throw_parquet_damage(origin, at,
                             fmt::format("{} integers of {} bits do not fit in the {} bytes left",
                                         count, width, packed.size()));
      for (std::size_t i = 0; i < count; ++i) {
        value += least + bits_at(packed, std::uint64_t{i} * width, width);
        out[done++] = value;
      }
      // The last part is filled up, but some writers leave that out.
      at += static_cast<std::size_t>(std::min<std::uint64_t>(part / 8 * width, packed.size()));
    }
  }
  return at;
}

}  // namespace penstock::source
