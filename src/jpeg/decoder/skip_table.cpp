#include "src/jpeg/decoder/huffman.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/skip_table.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Many windows at a time: most files have tables of their own, so this is part of every image.
void MakeSkipTable(const std::uint32_t* single, std::uint32_t* several) {
  // Fewer than a block has; the end of the block comes on top.
  constexpr std::int32_t kMostSteps = kBlockSize - 1;
  constexpr int kMostSymbols = 6;
  const hn::CappedTag<std::int32_t, 16> d;
  const auto zero = hn::Zero(d);
  const auto low = hn::Set(d, 0xFF);
  const auto windows = hn::Set(d, static_cast<std::int32_t>(kWindows) - 1);
  const auto end_flag = hn::Set(d, static_cast<std::int32_t>(symbol::kEnd));
  const auto unknown = hn::Set(d, static_cast<std::int32_t>(symbol::kUnknown));
  const auto* const table = reinterpret_cast<const std::int32_t*>(single);
  for (std::size_t first = 0; first < kWindows; first += hn::Lanes(d)) {
    const auto window = hn::Iota(d, static_cast<std::int32_t>(first));
    auto bits = zero;
    auto steps = zero;
    auto end = zero;
    auto live = hn::Eq(bits, bits);
    for (int i = 0; i < kMostSymbols; ++i) {
      const auto entry = hn::GatherIndex(d, table, hn::And(hn::Shl(window, bits), windows));
      const auto code = hn::And(hn::ShiftRight<16>(entry), hn::Set(d, 31));
      const auto ends = hn::And(entry, end_flag);
      const auto then_bits = hn::Add(bits, hn::And(entry, low));
      const auto then_steps = hn::Add(steps, hn::ShiftRight<symbol::kStep>(entry));
      live = hn::And(live, hn::Eq(hn::And(entry, unknown), zero));
      // Zeros stand behind the window's end: a code that reaches there is not known.
      live = hn::And(live, hn::Lt(hn::Add(bits, code), hn::Set(d, std::int32_t{kWindowBits + 1})));
      live = hn::And(live, hn::Lt(then_bits, hn::Set(d, std::int32_t{symbol::kLongest + 1})));
      live = hn::And(
          live, hn::Or(hn::Eq(ends, end_flag), hn::Lt(then_steps, hn::Set(d, kMostSteps + 1))));
      bits = hn::IfThenElse(live, then_bits, bits);
      steps = hn::IfThenElse(live, then_steps, steps);
      end = hn::IfThenElse(live, ends, end);
      live = hn::And(live, hn::Eq(ends, zero));
      if (hn::AllFalse(d, live)) break;
    }
    const auto entry = hn::Or(hn::Or(bits, end), hn::ShiftLeft<symbol::kStep>(steps));
    const auto none = hn::Set(d, static_cast<std::int32_t>(symbol::kUndecided));
    hn::StoreU(hn::IfThenElse(hn::Eq(bits, zero), none, entry), d,
               reinterpret_cast<std::int32_t*>(several) + first);
  }
}

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {

HWY_EXPORT(MakeSkipTable);

void make_skip_table(const SymbolTable& single, SymbolTable& several) {
  HWY_DYNAMIC_DISPATCH(MakeSkipTable)(single.data(), several.data());
}

}  // namespace penstock::jpeg
#endif
