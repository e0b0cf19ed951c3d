#include "src/jpeg/decoder/huffman.hpp"

#include <algorithm>

namespace penstock::jpeg {
namespace {

void fill_windows(const HuffmanSpec& spec, bool dc, SymbolTable& table) {
  auto at = table.begin();
  std::size_t k = 0;
  for (unsigned length = 1; length <= kWindowBits; ++length) {
    const std::size_t windows = std::size_t{1} << (kWindowBits - length);
    for (unsigned i = 0; i < spec.counts[length]; ++i, ++k) {
      std::uint32_t entry = symbol::entry_of(spec.symbols[k], length, dc);
      if (symbol::bits(entry) > symbol::kLongest) entry = symbol::kUndecided;
      at = std::fill_n(at, windows, entry);
    }
  }
  std::fill(at, table.end(), symbol::kUndecided);
}

}  // namespace

bool CanonicalCode::set(const HuffmanSpec& spec, bool is_dc) {
  dc = is_dc;
  symbols = spec.symbols;
  std::uint32_t code = 0;
  std::int32_t first = 0;
  unsigned longest = 0;
  for (unsigned length = 1; length <= 16; ++length)
    if (spec.counts[length] != 0) longest = length;
  if (longest == 0) return false;
  for (unsigned length = 1; length <= 16; ++length) {
    const unsigned count = spec.counts[length];
    offset[length] = first - static_cast<std::int32_t>(code);
    code += count;
    first += static_cast<std::int32_t>(count);
    // No code is all ones.
    if (length <= longest && code >= 1U << length) return false;
    limit[length] = code << (16 - length);
    code <<= 1;
  }
  if (is_dc)
    for (std::int32_t i = 0; i < first; ++i)
      if (symbols[static_cast<std::size_t>(i)] > 15) return false;
  return true;
}

std::uint32_t CanonicalCode::next_symbol(std::uint32_t next16) const noexcept {
  return symbol::find(limit.data(), offset.data(), symbols.data(), dc, next16);
}

bool EntropyTables::set(const JpegHeader& header) {
  std::size_t used = 0;
  std::array<SymbolCode*, 4> dc{};
  std::array<SymbolCode*, 4> ac{};
  const auto find = [&](const HuffmanSpec& spec, bool is_dc, SymbolCode*& made) {
    if (made != nullptr) return true;
    made = &codes_[used++];
    if (!made->code.set(spec, is_dc)) return false;
    fill_windows(spec, is_dc, made->table);
    return true;
  };
  std::array<BlockTables, 3> of_component{};
  different_ac_ = 0;
  has_skips_ = false;
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    const JpegComponent& component = header.component[c];
    const bool new_ac = ac[component.ac] == nullptr;
    if (!find(header.dc[component.dc], true, dc[component.dc]) ||
        !find(header.ac[component.ac], false, ac[component.ac]))
      return false;
    if (new_ac) ac_[different_ac_++] = ac[component.ac];
    const auto* const same = std::find(ac_.begin(), ac_.end(), ac[component.ac]);
    of_component[c] = {dc[component.dc], ac[component.ac], ac[component.ac]->table.data(),
                       several_[static_cast<std::size_t>(same - ac_.begin())].data()};
  }
  const McuLayout layout(header);
  for (int i = 0; i < kChunkMcus * layout.blocks; ++i)
    blocks_[static_cast<std::size_t>(i)] = of_component[layout.component(i % layout.blocks)];
  return true;
}

void EntropyTables::make_skips() {
  if (has_skips_) return;
  has_skips_ = true;
  for (std::size_t i = 0; i < different_ac_; ++i) make_skip_table(ac_[i]->table, several_[i]);
}

void EntropyTables::skip_luma_ac(const McuLayout& layout) {
  for (int i = 0; i < kChunkMcus * layout.blocks; ++i) {
    BlockTables& tables = blocks_[static_cast<std::size_t>(i)];
    if (layout.component(i % layout.blocks) == 0) tables.single = tables.several;
  }
}

}  // namespace penstock::jpeg
