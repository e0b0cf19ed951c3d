// transform/jpeg/huffman: look-up tables that turn the next bits of a scan into symbols.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/transform/jpeg/header.hpp"

namespace penstock::detail {

/// Bits that one look-up sees.
inline constexpr int kWindowBits = 11;
inline constexpr std::size_t kWindows = std::size_t{1} << kWindowBits;

/// What one symbol does, in 32 bits that can be added up:
///   0-7    bits it takes, code and value
///   8-11   bits of its value
///   14     it is a DC difference
///   16-20  bits of its code
///   22     it ends the block
///   24-31  minus the coefficients that it moves on; 0 at the end of a block
/// 0 stands for a symbol that a look-up cannot tell.
namespace symbol {

inline constexpr std::uint32_t kDc = 1U << 14;
inline constexpr std::uint32_t kEnd = 1U << 22;
/// Every look-up's symbol takes at most this many bits: three of them fit between two refills.
inline constexpr unsigned kLongest = 18;
/// A code that is not in the table, from slow_symbol() only. No symbol takes that many bits.
inline constexpr std::uint32_t kInvalid = 0xFF;

constexpr unsigned bits(std::uint32_t entry) { return entry & 0xFF; }
constexpr unsigned value_bits(std::uint32_t entry) { return entry >> 8 & 15; }
constexpr unsigned code_bits(std::uint32_t entry) { return entry >> 16 & 31; }
constexpr int step(std::uint32_t entry) { return -(static_cast<std::int32_t>(entry) >> 24); }

}  // namespace symbol

/// A canonical prefix code, for the codes that no window holds.
struct CanonicalCode {
  /// The first code of more than i bits, shifted to 16 bits; above every code at [16].
  std::array<std::uint32_t, 17> limit{};
  std::array<std::int32_t, 17> offset{};  ///< of the symbols, per length
  std::array<std::uint8_t, 256> symbols{};
  bool dc = false;

  /// False where libjpeg-turbo would refuse the table, or none of its codes could be told.
  [[nodiscard]] bool set(const HuffmanSpec& spec, bool is_dc);
  /// The symbol at the start of the next 16 bits.
  [[nodiscard]] std::uint32_t slow_symbol(std::uint32_t next16) const noexcept;
};

/// Several AC symbols in one, without their values: the bits that they take, whether the last of
/// them ends the block, and minus the coefficients that they move on, 64 at most. Here the end of a
/// block counts as one.
using SkipTable = std::array<std::uint32_t, kWindows>;
/// No entry takes more bits: two of them fit between two refills.
inline constexpr unsigned kLongestSkip = 28;

/// The tables of one image. Components that share a table share its look-ups.
///
/// Threads  one writer; read-only afterwards.
struct EntropyTables {
  static constexpr std::size_t kMaxTables = 6;

  static constexpr std::size_t kMaxSkips = 3;
  /// Those of single symbols, of several, and one of symbols that do nothing.
  static constexpr std::size_t kFirstSkip = kMaxTables;
  static constexpr std::size_t kStop = kMaxTables + kMaxSkips;

  using Table = std::array<std::uint32_t, kWindows>;
  alignas(64) std::array<Table, kStop + 1> tables;
  /// The code of every table, the skipping ones' too.
  std::array<CanonicalCode, kMaxTables> codes;
  std::array<std::uint8_t, kStop> code_of{};
  std::array<std::uint8_t, 3> dc{};    ///< into `tables`, per component
  std::array<std::uint8_t, 3> ac{};    ///< into `tables`, per component
  std::array<std::uint8_t, 3> skip{};  ///< into `tables`, per component
  bool skips_made = false;

  EntropyTables();

  /// False where libjpeg-turbo would refuse a table.
  [[nodiscard]] bool set(const JpegHeader& header);
  /// Makes the skip tables too, unless they are there.
  void make_skips(const JpegHeader& header);
};

/// The windows' multi-symbol entries, from those of single AC symbols.
void make_skip_table(const std::uint32_t* symbols, std::uint32_t* skips);

}  // namespace penstock::detail
