#include "src/transform/jpeg/entropy.hpp"

#include <bit>
#include <cstring>

#include "src/transform/jpeg/unstuff.hpp"

// Vectors are not needed here, but the bit instructions that come with them are.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/transform/jpeg/entropy.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include "src/transform/jpeg/bits-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::detail::HWY_NAMESPACE {

// The next bits of a stream, at the top of a word.
struct BitReader {
  const std::uint8_t* next;  // byte that the next refill begins with
  const std::uint8_t* last;  // a reader that does not run over never comes behind it
  std::uint64_t word;
  std::uint32_t valid;  // bits of `word`

  HWY_INLINE BitReader(StreamBytes bytes, std::uint64_t bit)
      : next(bytes.data + (bit >> 3)), last(bytes.data + (bytes.end_bit >> 3) + 9) {
    word = LoadBigEndian(next) << (bit & 7);
    valid = 56 - static_cast<std::uint32_t>(bit & 7);
    next += 7;
  }
  // At least 56 bits from here on.
  HWY_INLINE void refill() {
    word |= LoadBigEndian(next) >> valid;
    next += (63 - valid) >> 3;
    valid |= 56;
  }
  HWY_INLINE void drop(std::uint32_t entry) {
    word <<= entry & 63;
    valid -= entry & 0xFF;
  }
  [[nodiscard]] HWY_INLINE std::uint64_t bit(const std::uint8_t* data) const {
    return static_cast<std::uint64_t>(next - data) * 8 - valid;
  }
};

HWY_NOINLINE std::uint32_t SlowSymbol(const CanonicalCode& code, std::uint64_t word) {
  return code.slow_symbol(static_cast<std::uint32_t>(word >> 48));
}

// One block; its arrays are those of coefficient 63. False where the data is wrong.
HWY_INLINE bool DecodeBlock(const EntropyTables& tables, std::size_t dc, std::size_t ac,
                            BitReader& bits, std::uint16_t* raw, std::uint8_t* size) {
  bits.refill();
  std::uint32_t entry = tables.tables[dc][bits.word >> (64 - kWindowBits)];
  if (HWY_UNLIKELY(entry == 0)) {
    entry = SlowSymbol(tables.codes[dc], bits.word);
    if (entry == symbol::kInvalid) return false;
  }
  raw[63] = static_cast<std::uint16_t>(std::rotl(bits.word, static_cast<int>(entry & 63)));
  size[63] = static_cast<std::uint8_t>(entry >> 8);
  bits.drop(entry);
  const std::uint32_t* const table = tables.tables[ac].data();
  std::int32_t at = 63;
  for (;;) {
    bits.refill();
    for (int i = 0; i < 3; ++i) {
      entry = table[bits.word >> (64 - kWindowBits)];
      if (HWY_UNLIKELY(entry == 0)) {
        bits.refill();
        entry = SlowSymbol(tables.codes[ac], bits.word);
        if (entry == symbol::kInvalid) return false;
        i = 2;  // a long symbol leaves too few bits for another
      }
      at += static_cast<std::int32_t>(entry) >> 24;
      const std::uint64_t turned = std::rotl(bits.word, static_cast<int>(entry & 63));
      bits.drop(entry);
      if ((entry & symbol::kEnd) != 0) return true;
      if (HWY_UNLIKELY(at < 0)) return false;
      raw[at] = static_cast<std::uint16_t>(turned);
      size[at] = static_cast<std::uint8_t>(entry >> 8);
      if (at == 0) return true;
    }
  }
}

bool DecodeMcus(const EntropyTables& tables, const McuLayout& layout, StreamBytes bytes,
                StreamPosition& position, int mcus, Chunk& chunk) {
  BitReader bits(bytes, position.bit);
  std::ptrdiff_t block = static_cast<std::ptrdiff_t>(mcus) * layout.blocks * kBlockSize;
  std::uint16_t* const raw = chunk.raws();
  std::uint8_t* const size = chunk.sizes();
  for (int mcu = 0; mcu < mcus; ++mcu) {
    for (int b = 0; b < layout.blocks; ++b) {
      const std::size_t c = layout.component(b);
      block -= kBlockSize;
      if (!DecodeBlock(tables, tables.dc[c], tables.ac[c], bits, raw + block, size + block))
        return false;
      if (HWY_UNLIKELY(bits.next > bits.last)) return false;
    }
  }
  position.bit = bits.bit(bytes.data);
  return position.bit <= bytes.end_bit;
}

// One block of which only the DC difference matters.
HWY_INLINE bool SkipBlock(const EntropyTables& tables, std::size_t dc, std::size_t ac,
                          const std::uint32_t* skips, BitReader& bits, std::int32_t& difference) {
  bits.refill();
  std::uint32_t entry = tables.tables[dc][bits.word >> (64 - kWindowBits)];
  if (HWY_UNLIKELY(entry == 0)) {
    entry = SlowSymbol(tables.codes[dc], bits.word);
    if (entry == symbol::kInvalid) return false;
  }
  difference =
      extend(static_cast<std::uint32_t>(std::rotl(bits.word, static_cast<int>(entry & 63))),
             symbol::value_bits(entry));
  bits.drop(entry);
  std::int32_t left = 63;
  for (;;) {
    bits.refill();
    bool whole = true;
    for (int i = 0; i < 2; ++i) {
      entry = skips[bits.word >> (64 - kWindowBits)];
      const std::int32_t then = left + (static_cast<std::int32_t>(entry) >> 24);
      if (HWY_UNLIKELY(entry == 0 || then < 0)) {
        whole = false;
        break;
      }
      bits.drop(entry);
      left = then;
      if (left == 0 || (entry & symbol::kEnd) != 0) return true;
    }
    if (HWY_LIKELY(whole)) continue;
    bits.refill();
    entry = tables.tables[ac][bits.word >> (64 - kWindowBits)];
    if (entry == 0) {
      entry = SlowSymbol(tables.codes[ac], bits.word);
      if (entry == symbol::kInvalid) return false;
    }
    bits.drop(entry);
    if ((entry & symbol::kEnd) != 0) return true;
    left -= symbol::step(entry);
    if (left <= 0) return left == 0;
  }
}

bool SkipMcus(const EntropyTables& tables, const McuLayout& layout, StreamBytes bytes,
              StreamPosition& position, int mcus) {
  BitReader bits(bytes, position.bit);
  std::array<std::uint32_t, 3> dc{};
  for (int mcu = 0; mcu < mcus; ++mcu) {
    for (int b = 0; b < layout.blocks; ++b) {
      const std::size_t c = layout.component(b);
      std::int32_t difference = 0;
      if (!SkipBlock(tables, tables.dc[c], tables.ac[c], tables.tables[tables.skip[c]].data(), bits,
                     difference))
        return false;
      dc[c] += static_cast<std::uint32_t>(difference);
      if (HWY_UNLIKELY(bits.next > bits.last)) return false;
    }
  }
  for (std::size_t c = 0; c < dc.size(); ++c)
    position.dc[c] = static_cast<std::int16_t>(static_cast<std::uint32_t>(position.dc[c]) + dc[c]);
  position.bit = bits.bit(bytes.data);
  return position.bit <= bytes.end_bit;
}

}  // namespace penstock::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::detail {

HWY_EXPORT(DecodeMcus);
HWY_EXPORT(SkipMcus);

bool decode_mcus(const EntropyTables& tables, const McuLayout& layout, StreamBytes bytes,
                 StreamPosition& at, int mcus, Chunk& chunk) {
  return HWY_DYNAMIC_DISPATCH(DecodeMcus)(tables, layout, bytes, at, mcus, chunk);
}

bool skip_mcus(const EntropyTables& tables, const McuLayout& layout, StreamBytes bytes,
               StreamPosition& at, int mcus) {
  return HWY_DYNAMIC_DISPATCH(SkipMcus)(tables, layout, bytes, at, mcus);
}

}  // namespace penstock::detail
#endif
