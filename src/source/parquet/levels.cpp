#include "src/source/parquet/levels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "src/source/parquet/hybrid.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kLevelsLength = 4;  // of a DATA_PAGE, before each kind of levels

// The bytes of one kind of levels at `at`, which advances behind them.
std::span<const std::byte> levels_at(std::span<const std::byte> bytes, std::uint64_t& at,
                                     const ParquetOrigin& origin) {
  if (bytes.size() - at < kLevelsLength)
    throw_parquet_damage(origin, at, "a page ends before its levels");
  const auto length = load_little_endian<std::uint32_t>(bytes, at);
  at += kLevelsLength;
  if (length > bytes.size() - at)
    throw_parquet_damage(
        origin, at,
        fmt::format("levels take {} bytes, and {} are left", length, bytes.size() - at));
  const auto found = bytes.subspan(at, length);
  at += length;
  return found;
}

std::vector<std::uint8_t> decode_levels(std::span<const std::byte> bytes, std::uint8_t most,
                                        std::uint64_t count, const ParquetOrigin& origin) {
  std::vector<std::uint8_t> levels(static_cast<std::size_t>(count));
  decode_hybrid(bytes, bits_for(most), most, std::span(levels), origin);
  return levels;
}

void require_rle(const ParquetLeaf& leaf, ParquetEncoding encoding, const ParquetOrigin& origin) {
  if (encoding != ParquetEncoding::rle)
    throw_parquet_unread(origin,
                         fmt::format("{} of levels in column '{}'", name_of(encoding), leaf.path));
}

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr unsigned kBits = 8;  // of a level

// Eight levels from `first` on: the highest bit of byte k is set if level first + k is 0. Most lists have more than eight values,
// so that most words have none.
std::uint64_t zeros_at(std::span<const std::uint8_t> levels, std::size_t first) noexcept {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7FU;
  std::uint64_t word = ~std::uint64_t{0};
  std::memcpy(&word, levels.data() + first, std::min(kWord, levels.size() - first));
  return ~(((word & kLow) + kLow) | word | kLow);
}

}  // namespace

std::vector<std::uint32_t> ParquetLevels::rows() const {
  std::vector<std::uint32_t> begins;
  begins.reserve(static_cast<std::size_t>(row_count()));
  if (repetition.empty()) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) begins.push_back(slot);
    return begins;
  }
  for (std::size_t first = 0; first < repetition.size(); first += kWord)
    for (std::uint64_t zeros = zeros_at(repetition, first); zeros != 0; zeros &= zeros - 1)
      begins.push_back(static_cast<std::uint32_t>(
          first + static_cast<std::size_t>(std::countr_zero(zeros)) / kBits));
  return begins;
}

std::uint64_t ParquetLevels::row_count() const noexcept {
  if (repetition.empty()) return slots;
  std::uint64_t count = 0;
  for (std::size_t first = 0; first < repetition.size(); first += kWord)  // the sum of the bytes
    count += (zeros_at(repetition, first) >> 7) * 0x0101010101010101U >> 56;
  return count;
}

std::uint64_t parquet_levels_bytes(const ParquetLeaf& leaf, std::span<const std::byte> bytes,
                                   const ParquetOrigin& origin) {
  std::uint64_t at = 0;
  if (leaf.max_repetition > 0) (void)levels_at(bytes, at, origin);
  if (leaf.max_definition > 0) (void)levels_at(bytes, at, origin);
  return at;
}

ParquetLevels read_parquet_levels(const ParquetLeaf& leaf, const ParquetPageHeader& header,
                                  std::span<const std::byte> bytes, const ParquetLimits& limits,
                                  const ParquetOrigin& origin) {
  if (header.values > limits.page_values)
    throw_parquet_limit(origin, fmt::format("a page has {} values; at most {} are read",
                                            header.values, limits.page_values));
  ParquetLevels levels;
  levels.slots = levels.present = header.values;
  if (header.kind == ParquetPageKind::data_v2) {
    levels.bytes = std::uint64_t{header.repetition_bytes} + header.definition_bytes;
    if (levels.bytes > bytes.size())
      throw_parquet_damage(
          origin, 0,
          fmt::format("levels take {} bytes, and {} are left", levels.bytes, bytes.size()));
    if (leaf.max_repetition > 0)
      levels.repetition = decode_levels(bytes.first(header.repetition_bytes), leaf.max_repetition,
                                        levels.slots, origin);
    if (leaf.max_definition > 0)
      levels.definition =
          decode_levels(bytes.subspan(header.repetition_bytes, header.definition_bytes),
                        leaf.max_definition, levels.slots, origin);
  } else {
    if (leaf.max_repetition > 0) {
      require_rle(leaf, header.repetition_encoding, origin);
      levels.repetition = decode_levels(levels_at(bytes, levels.bytes, origin), leaf.max_repetition,
                                        levels.slots, origin);
    }
    if (leaf.max_definition > 0) {
      require_rle(leaf, header.definition_encoding, origin);
      levels.definition = decode_levels(levels_at(bytes, levels.bytes, origin), leaf.max_definition,
                                        levels.slots, origin);
    }
  }
  if (header.kind == ParquetPageKind::data_v2 && !levels.repetition.empty() &&
      levels.repetition[0] != 0)
    throw_parquet_damage(
        origin, 0, fmt::format("a DATA_PAGE_V2 of column '{}' begins within a row", leaf.path));
  if (leaf.max_definition > 0)
    levels.present =
        static_cast<std::uint64_t>(std::ranges::count(levels.definition, leaf.max_definition));
  return levels;
}

}  // namespace penstock::source
