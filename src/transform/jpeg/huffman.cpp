#include "src/transform/jpeg/huffman.hpp"

#include <algorithm>

#include "src/transform/jpeg/chunk.hpp"

namespace penstock::detail {
namespace {

std::uint32_t make_entry(unsigned code_bits, unsigned value_bits, std::uint32_t step) {
  return (code_bits + value_bits) | value_bits << 8 | code_bits << 16 | (0U - step) << 24;
}

std::uint32_t entry_of(unsigned symbol, unsigned code_bits, bool dc) {
  if (dc) return make_entry(code_bits, symbol, 1) | symbol::kDc;
  const unsigned run = symbol >> 4;
  const unsigned value_bits = symbol & 15;
  // libjpeg takes every symbol without a value as the end of the block, but for sixteen zeros.
  if (value_bits == 0 && run < 15) return make_entry(code_bits, 0, 0) | symbol::kEnd;
  return make_entry(code_bits, value_bits, run + 1);
}

void fill_windows(const HuffmanSpec& spec, bool dc, EntropyTables::Table& table) {
  auto at = table.begin();
  std::size_t k = 0;
  for (unsigned length = 1; length <= kWindowBits; ++length) {
    const std::size_t windows = std::size_t{1} << (kWindowBits - length);
    for (unsigned i = 0; i < spec.counts[length]; ++i, ++k) {
      std::uint32_t entry = entry_of(spec.symbols[k], length, dc);
      if (symbol::bits(entry) > symbol::kLongest) entry = 0;
      at = std::fill_n(at, windows, entry);
    }
  }
  std::fill(at, table.end(), 0);
}

}  // namespace

bool CanonicalCode::set(const HuffmanSpec& spec, bool is_dc) {
  dc = is_dc;
  symbols = spec.symbols;
  std::uint32_t code = 0;
  std::int32_t first = 0;
  int longest = 0;
  for (int length = 1; length <= 16; ++length)
    if (spec.counts[static_cast<std::size_t>(length)] != 0) longest = length;
  if (longest == 0) return false;
  limit[0] = 0;
  for (unsigned length = 1; length <= 16; ++length) {
    const unsigned count = spec.counts[length];
    offset[length] = first - static_cast<std::int32_t>(code);
    code += count;
    first += static_cast<std::int32_t>(count);
    // No code is all ones.
    if (static_cast<int>(length) <= longest && code >= 1U << length) return false;
    limit[length] = code << (16 - length);
    code <<= 1;
  }
  if (is_dc)
    for (std::int32_t i = 0; i < first; ++i)
      if (symbols[static_cast<std::size_t>(i)] > 15) return false;
  return true;
}

std::uint32_t CanonicalCode::slow_symbol(std::uint32_t next16) const noexcept {
  for (unsigned length = 1; length <= 16; ++length) {
    if (next16 >= limit[length]) continue;
    const std::int32_t code = static_cast<std::int32_t>(next16 >> (16 - length));
    return entry_of(symbols[static_cast<std::size_t>(code + offset[length]) & 255], length, dc);
  }
  return symbol::kInvalid;
}

EntropyTables::EntropyTables() {
  // A stream at the end of its chunk waits there, a whole block further on with every symbol.
  tables[kStop].fill((0U - kBlockSize) << 24);
}

bool EntropyTables::set(const JpegHeader& header) {
  skips_made = false;
  std::uint8_t used = 0;
  std::array<int, 4> dc_at{-1, -1, -1, -1};
  std::array<int, 4> ac_at{-1, -1, -1, -1};
  const auto add = [&](const HuffmanSpec& spec, bool is_dc, int& at) {
    if (at >= 0) return true;
    if (!codes[used].set(spec, is_dc)) return false;
    fill_windows(spec, is_dc, tables[used]);
    code_of[used] = used;
    at = used++;
    return true;
  };
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    const JpegComponent& component = header.component[c];
    if (!add(header.dc[component.dc], true, dc_at[component.dc]) ||
        !add(header.ac[component.ac], false, ac_at[component.ac]))
      return false;
    dc[c] = static_cast<std::uint8_t>(dc_at[component.dc]);
    ac[c] = static_cast<std::uint8_t>(ac_at[component.ac]);
  }
  return true;
}

void EntropyTables::make_skips(const JpegHeader& header) {
  if (skips_made) return;
  const auto components = static_cast<std::size_t>(header.components);
  std::uint8_t made = 0;
  for (std::size_t c = 0; c < components; ++c) {
    const auto same = std::find(ac.begin(), ac.begin() + static_cast<std::ptrdiff_t>(c), ac[c]);
    const auto before = static_cast<std::size_t>(same - ac.begin());
    if (before < c) {
      skip[c] = skip[before];
      continue;
    }
    skip[c] = static_cast<std::uint8_t>(kFirstSkip + made++);
    make_skip_table(tables[ac[c]].data(), tables[skip[c]].data());
    code_of[skip[c]] = ac[c];
  }
  skips_made = true;
}

}  // namespace penstock::detail
