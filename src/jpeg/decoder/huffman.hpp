// jpeg/decoder/huffman: look-up tables that turn the next bits of a scan into symbols.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <penstock/core/export.hpp>

#include "src/core/host_device.hpp"
#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/header.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// Bits that one look-up sees.
inline constexpr int kWindowBits = 10;
inline constexpr std::size_t kWindows = std::size_t{1} << kWindowBits;

/// What one symbol does, in 32 bits that can be added up:
///   0-7    bits it takes, code and value
///   8-11   bits of its value
///   16-20  bits of its code
///   22     it ends the block
///   23     a look-up cannot tell
///   24-30  coefficients that it moves on; a block's worth more where it ends the block
namespace symbol {

inline constexpr std::uint32_t kEnd = 1U << 22;
inline constexpr std::uint32_t kUnknown = 1U << 23;
inline constexpr int kStep = 24;
/// A look-up's symbols take at most this many bits: three of them fit between two refills.
inline constexpr unsigned kLongest = 18;
/// No symbol at all takes more: a code of 16, a value of 15.
inline constexpr std::size_t kMostBits = 31;
/// What a look-up says that cannot tell. Like the end of a block, it steps out of every block.
inline constexpr std::uint32_t kUndecided = kUnknown | 127U << kStep;
/// A code that is not in the table, from CanonicalCode.
inline constexpr std::uint32_t kInvalid = 0xFF;

PENSTOCK_HOST_DEVICE constexpr unsigned bits(std::uint32_t entry) { return entry & 0xFF; }
PENSTOCK_HOST_DEVICE constexpr unsigned value_bits(std::uint32_t entry) { return entry >> 8 & 15; }
PENSTOCK_HOST_DEVICE constexpr unsigned code_bits(std::uint32_t entry) { return entry >> 16 & 31; }
PENSTOCK_HOST_DEVICE constexpr int step(std::uint32_t entry) {
  return static_cast<int>(entry >> kStep);
}

/// What a symbol of a code of `code_bits` does.
PENSTOCK_HOST_DEVICE constexpr std::uint32_t entry_of(unsigned symbol, unsigned code_bits,
                                                      bool dc) {
  const unsigned run = dc ? 0 : symbol >> 4;
  const unsigned value_bits = dc ? symbol : symbol & 15;
  const std::uint32_t code = (code_bits + value_bits) | value_bits << 8 | code_bits << 16;
  // libjpeg takes every symbol without a value as the end of the block, but for sixteen zeros.
  if (!dc && value_bits == 0 && run < 15)
    return code | kEnd | static_cast<std::uint32_t>(kBlockSize) << kStep;
  return code | (run + 1) << kStep;
}

/// That of the symbol at the start of the next 16 bits, of a canonical code; see CanonicalCode.
PENSTOCK_HOST_DEVICE inline std::uint32_t find(const std::uint32_t* limit,
                                               const std::int32_t* offset,
                                               const std::uint8_t* symbols, bool dc,
                                               std::uint32_t next16) {
  for (unsigned length = 1; length <= 16; ++length) {
    if (next16 >= limit[length]) continue;
    const auto code = static_cast<std::int32_t>(next16 >> (16 - length));
    return entry_of(symbols[(code + offset[length]) & 255], length, dc);
  }
  return kInvalid;
}

}  // namespace symbol

using SymbolTable = std::array<std::uint32_t, kWindows>;

/// A canonical prefix code, for the symbols that no look-up can tell.
struct CanonicalCode {
  /// The first code of more than i bits, shifted to 16 bits; above every code at [16].
  std::array<std::uint32_t, 17> limit{};
  std::array<std::int32_t, 17> offset{};  ///< of the symbols, per length
  std::array<std::uint8_t, 256> symbols{};
  bool dc = false;

  /// False where libjpeg-turbo would refuse the table, or there is no code.
  [[nodiscard]] bool set(const HuffmanSpec& spec, bool is_dc);
  /// The symbol at the start of the next 16 bits.
  [[nodiscard]] std::uint32_t next_symbol(std::uint32_t next16) const noexcept;
};

/// One Huffman table.
struct SymbolCode {
  alignas(64) SymbolTable table;  ///< single symbols
  CanonicalCode code;
};

/// What the symbols of a block are looked up in.
struct BlockTables {
  const SymbolCode* dc;
  const SymbolCode* ac;
  /// What a decoder looks up: single AC symbols; or `several`, where only DC values are wanted. It
  /// then notes AC values of no bits, and a few of those that took long codes.
  const std::uint32_t* single;
  const std::uint32_t* several;  ///< several AC symbols at a time, without their values
};

/// The tables of one image. Components that share one share its look-ups.
///
/// Threads  one writer; read-only afterwards.
class EntropyTables {
 public:
  EntropyTables() = default;
  EntropyTables(const EntropyTables&) = delete;
  EntropyTables& operator=(const EntropyTables&) = delete;

  /// False where libjpeg-turbo would refuse a table.
  [[nodiscard]] bool set(const JpegHeader& header);
  /// Makes the tables of several symbols, too, once; nothing may be skipped before that.
  void make_skips();
  /// Of the blocks of the first component, only DC values are wanted. Needs make_skips().
  void skip_luma_ac(const McuLayout& layout);

  /// Those of the blocks of a chunk.
  [[nodiscard]] const BlockTables* blocks() const noexcept { return blocks_.data(); }

 private:
  static constexpr std::size_t kMaxCodes = 6;

  std::array<SymbolCode, kMaxCodes> codes_;
  alignas(64) std::array<SymbolTable, 3> several_;
  std::size_t different_ac_ = 0;
  bool has_skips_ = false;
  std::array<const SymbolCode*, 3> ac_{};  // the different ones
  std::array<BlockTables, kChunkBlocks> blocks_{};
};

/// Entries of as many AC symbols as a window holds: their bits, whether the last of them ends the
/// block, and what they move on, likewise a block's worth more at the end.
void make_skip_table(const SymbolTable& single, SymbolTable& several);

}  // namespace jpeg
}  // namespace penstock
