// source/parquet/hybrid: numbers in runs and bit-packed groups: Parquet's RLE encoding, of levels, indices and booleans.
//
// Source  github.com/apache/parquet-format, Encodings.md, RLE.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "src/source/parquet/origin.hpp"

namespace penstock::source {

/// Bits that hold numbers up to `most`.
[[nodiscard]] inline unsigned bits_for(std::uint32_t most) noexcept {
  return static_cast<unsigned>(std::bit_width(most));
}

/// `width` bits, at most 64, from position `bit` on, the lowest first; they lie within `bytes`.
[[nodiscard]] inline std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t bit,
                                           unsigned width) noexcept {
  if (width == 0) return 0;
  const std::size_t first = static_cast<std::size_t>(bit / 8);
  const auto shift = static_cast<unsigned>(bit % 8);
  const std::size_t left = bytes.size() - first;
  std::uint64_t value = 0;
  if (left >= sizeof value) {
    std::memcpy(&value, bytes.data() + first, sizeof value);
  } else {
    std::memcpy(&value, bytes.data() + first, left);
  }
  value >>= shift;
  if (shift + width > 64) value |= std::to_integer<std::uint64_t>(bytes[first + 8]) << (64 - shift);
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

/// The numbers of one ULEB128 at `at`, which advances.
///
/// Errors  DataError  it ends outside, or has more than 64 bits
[[nodiscard]] inline std::uint64_t read_uleb128(std::span<const std::byte> bytes, std::size_t& at,
                                                const ParquetOrigin& origin) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
    const auto next = std::to_integer<std::uint64_t>(bytes[at++]);
    if (shift == 63 && next > 1) break;
    value |= (next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  throw_parquet_damage(origin, at, "an integer within a page does not end");
}

/// A run of equal numbers, or of bit-packed ones.
struct HybridRun {
  std::uint64_t count =
      0;  ///< of bit-packed numbers, a multiple of 8, which may be more than there are
  bool is_packed = false;
  std::uint32_t value = 0;  ///< of each, unless they are packed
};

/// The run whose header is at `at`, which advances to its packed numbers, or behind the run.
///
/// Errors  DataError  the bytes end before
[[nodiscard]] inline HybridRun read_hybrid_run(std::span<const std::byte> bytes, std::size_t& at,
                                               unsigned width, const ParquetOrigin& origin) {
  const std::uint64_t head = read_uleb128(bytes, at, origin);
  if ((head & 1) != 0) {
    const std::uint64_t groups = head >> 1;
    return {.count = groups > UINT64_MAX / 8 ? UINT64_MAX : 8 * groups, .is_packed = true};
  }
  const std::size_t size = (width + 7) / 8;
  if (size > bytes.size() - at) throw_parquet_damage(origin, at, "a run ends within its value");
  HybridRun run{.count = head >> 1};
  for (std::size_t i = 0; i < size; ++i)
    run.value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  at += size;
  return run;
}

/// Fills `out` with packed numbers of `width` bits, at most 32, from position `bit` on, all of which lie within `bytes`.
/// Returns the largest.
template <class T>
[[nodiscard]] std::uint32_t unpack_bits(std::span<const std::byte> bytes, std::uint64_t bit,
                                        unsigned width, std::span<T> out) noexcept {
  std::uint32_t most = 0;
  std::size_t done = 0;
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (; done < out.size() && bit / 8 + sizeof(std::uint64_t) <= bytes.size(); ++done) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + bit / 8, sizeof word);
    const auto value = static_cast<std::uint32_t>(word >> bit % 8 & mask);
    most = std::max(most, value);
    out[done] = static_cast<T>(value);
    bit += width;
  }
  for (; done < out.size(); ++done) {
    const auto value = static_cast<std::uint32_t>(bits_at(bytes, bit, width));
    most = std::max(most, value);
    out[done] = static_cast<T>(value);
    bit += width;
  }
  return most;
}

/// Fills `out` with numbers of `width` bits, at most 32, each of at most `most`.
///
/// Errors  DataError  the bytes hold fewer, or larger ones
template <class T>
void decode_hybrid(std::span<const std::byte> bytes, unsigned width, std::uint32_t most,
                   std::span<T> out, const ParquetOrigin& origin) {
  std::size_t at = 0;
  std::size_t done = 0;
  const auto require = [&](std::uint32_t value) {
    if (value > most)
      throw_parquet_damage(
          origin, at, fmt::format("expected numbers of at most {}, and found {}", most, value));
  };
  while (done < out.size()) {
    if (at >= bytes.size())
      throw_parquet_damage(origin, at,
                           fmt::format("expected {} numbers, and found {} in {} bytes", out.size(),
                                       done, bytes.size()));
    const HybridRun run = read_hybrid_run(bytes, at, width, origin);
    const auto count = static_cast<std::size_t>(
        std::min<std::uint64_t>(run.count, std::uint64_t{out.size() - done}));
    const std::span<T> some = out.subspan(done, count);
    done += count;
    if (!run.is_packed) {
      if (count > 0) require(run.value);
      std::ranges::fill(some, static_cast<T>(run.value));
      continue;
    }
    // The last group may be cut behind the values that are needed: some writers leave the rest out.
    if ((std::uint64_t{count} * width + 7) / 8 > bytes.size() - at)
      throw_parquet_damage(origin, at,
                           fmt::format("{} numbers of {} bits do not fit in the {} bytes left",
                                       count, width, bytes.size() - at));
    require(unpack_bits(bytes.subspan(at), 0, width, some));
    if (done < out.size())
      at += static_cast<std::size_t>(std::min<std::uint64_t>(run.count / 8, bytes.size()) * width);
    at = std::min(at, bytes.size());
  }
}

}  // namespace penstock::source
