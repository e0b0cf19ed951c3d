// source/parquet/hybrid: numbers in runs and bit-packed groups: Parquet's RLE encoding, of levels, indices and booleans.
//
// Source  github.com/apache/parquet-format, Encodings.md, RLE.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
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

/// Fills `out` with numbers of `width` bits, one behind the other, which lie within `bytes`; T can hold them. Returns the
/// largest.
template <class T>
std::uint64_t unpack_bits(std::span<const std::byte> bytes, unsigned width, std::span<T> out) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  constexpr unsigned kWidest = 32;
  std::uint64_t largest = 0;
  std::size_t done = 0;
  // Eight numbers take `width` bytes.
  if (sizeof(T) == 1 && width == 1) {
    for (; done + 8 <= out.size(); done += 8) {
      // Bit k of the byte in byte k, then 1 where it is set.
      std::uint64_t word = std::to_integer<std::uint64_t>(bytes[done / 8]) * 0x0101010101010101U;
      word = ((word & 0x8040201008040201U) + 0x7F7F7F7F7F7F7F7FU) >> 7 & 0x0101010101010101U;
      std::memcpy(out.data() + done, &word, sizeof word);
      largest |= word != 0 ? 1 : 0;
    }
  } else if (width <= kWidest) {
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    for (; done + 8 <= out.size() && done / 8 * width + width + kWord <= bytes.size(); done += 8) {
      const std::byte* const from = bytes.data() + done / 8 * width;
      for (unsigned k = 0; k < 8; ++k) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + k * width / 8, sizeof word);
        const std::uint64_t value = word >> (k * width % 8) & mask;
        out[done + k] = static_cast<T>(value);
        largest = std::max(largest, value);
      }
    }
  }
  for (; done < out.size(); ++done) {
    const std::uint64_t value = bits_at(bytes, std::uint64_t{done} * width, width);
    out[done] = static_cast<T>(value);
    largest = std::max(largest, value);
  }
  return largest;
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
  /// of bit-packed numbers, a multiple of 8, which may be more than there are
  std::uint64_t count = 0;
  bool is_packed = false;
  std::uint32_t value = 0;  ///< of each, unless they are packed
};

/// The run whose header is at `at`, which advances to its packed numbers, or behind the run. A number has at most 32 bits.
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

/// Decodes `count` numbers of `width` bits, at most 32, which T can hold, each of at most `most`. room(n) is where the next go, n of them or
/// fewer, but in eights; use(numbers) is called when they are there.
///
/// Errors  DataError  the bytes hold fewer, or larger ones
template <class T, class Room, class Use>
void decode_hybrid_in_parts(std::span<const std::byte> bytes, unsigned width, std::uint32_t most,
                            std::uint64_t count, const ParquetOrigin& origin, const Room& room,
                            const Use& use) {
  std::size_t at = 0;
  std::uint64_t done = 0;
  const auto require = [&](std::uint64_t value) {
    if (value > most)
      throw_parquet_damage(
          origin, at, fmt::format("expected numbers of at most {}, and found {}", most, value));
    return static_cast<T>(value);
  };
  while (done < count) {
    if (at >= bytes.size())
      throw_parquet_damage(
          origin, at,
          fmt::format("expected {} numbers, and found {} in {} bytes", count, done, bytes.size()));
    const HybridRun found = read_hybrid_run(bytes, at, width, origin);
    const std::uint64_t run = std::min(found.count, count - done);
    if (!found.is_packed) {
      for (std::uint64_t i = 0; i < run;) {
        const std::span<T> numbers = room(run - i);
        std::ranges::fill(numbers, require(found.value));
        use(numbers);
        i += numbers.size();
      }
      done += run;
      continue;
    }
    // The last group may be cut behind the values that are needed: some writers leave the rest out.
    if ((run * width + 7) / 8 > bytes.size() - at)
      throw_parquet_damage(origin, at,
                           fmt::format("{} numbers of {} bits do not fit in the {} bytes left", run,
                                       width, bytes.size() - at));
    for (std::uint64_t i = 0; i < run;) {
      const auto packed = bytes.subspan(at + static_cast<std::size_t>(i / 8 * width));
      const std::span<T> numbers = room(run - i);
      if (unpack_bits(packed, width, numbers) > most)
        for (std::size_t k = 0; k < numbers.size(); ++k)
          (void)require(bits_at(packed, std::uint64_t{k} * width, width));
      use(numbers);
      i += numbers.size();
    }
    done += run;
    if (done < count)
      at +=
          static_cast<std::size_t>(std::min<std::uint64_t>(found.count / 8, bytes.size()) * width);
    if (at > bytes.size()) at = bytes.size();
  }
}

/// Fills `out` with them.
///
/// Errors  DataError  as above
template <class T>
void decode_hybrid(std::span<const std::byte> bytes, unsigned width, std::uint32_t most,
                   std::span<T> out, const ParquetOrigin& origin) {
  std::size_t done = 0;
  decode_hybrid_in_parts<T>(
      bytes, width, most, out.size(), origin,
      [&](std::uint64_t left) { return out.subspan(done, static_cast<std::size_t>(left)); },
      [&](std::span<const T> numbers) { done += numbers.size(); });
}

/// Calls use(std::span<const T>) with them, some at a time.
///
/// Errors  DataError  as above
template <class T, class Use>
void for_each_hybrid(std::span<const std::byte> bytes, unsigned width, std::uint32_t most,
                     std::uint64_t count, const ParquetOrigin& origin, const Use& use) {
  constexpr std::size_t kAtOnce = 1024;
  std::array<T, kAtOnce> memory;
  decode_hybrid_in_parts<T>(
      bytes, width, most, count, origin,
      [&](std::uint64_t left) {
        return std::span<T>(memory).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(left, kAtOnce)));
      },
      [&](std::span<const T> numbers) { use(numbers); });
}

}  // namespace penstock::source
