#include "src/transform/jpeg/lanes.hpp"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/transform/jpeg/lanes.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include "src/transform/jpeg/bits-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::detail::HWY_NAMESPACE {

// A stream's state in one word, so that one addition moves all of it: above bit 24 the coefficients
// left, counted as the arrays are, from kAhead; below bit 8 the bits taken since the last refill;
// between them nothing of interest.
constexpr int kLeft = 24;
constexpr std::int64_t kDone = std::int64_t{Chunk::kAhead} << kLeft;
static_assert(Chunk::kAhead == Lanes::kBehind && Chunk::kAhead % kBlockSize == 0);
constexpr std::int64_t kLow = (std::int64_t{1} << kLeft) - 1;
constexpr std::int64_t kInBlock = std::int64_t{kBlockSize - 1} << kLeft;

struct Stream {
  std::uint64_t word;
  std::int64_t state;
};

// The next symbol alone, whatever it is. Leaves a full word.
HWY_NOINLINE Stream StepSlowly(Lanes& lanes, std::size_t lane, std::int64_t state) {
  std::int64_t left = state >> kLeft;
  std::uint64_t bit = lanes.bit[lane] + static_cast<std::uint64_t>(state & 0xFF);
  const std::uint64_t word = LoadBigEndian(lanes.data + (bit >> 3)) << (bit & 7);
  const EntropyTables& entropy = lanes.entropy;
  // Only those that do something have symbols that a look-up cannot tell.
  const std::size_t table =
      lanes.map[static_cast<std::size_t>(left)] >> kWindowBits;
  const std::int64_t block_end = (left - 1) & ~std::int64_t{kBlockSize - 1};
  const std::uint32_t entry = entropy.codes[entropy.code_of[table]].slow_symbol(
      static_cast<std::uint32_t>(word >> 48));
  if (entry == symbol::kInvalid) {
    lanes.failed |= 1U << lane;
    bit += 1;
    left = block_end;
  } else {
    bit += symbol::bits(entry);
    left -= symbol::step(entry);
    if ((entry & symbol::kEnd) != 0) left = block_end;
    if (left < block_end) {
      lanes.failed |= 1U << lane;
      left = block_end;
    }
    const std::uint64_t turned = std::rotl(word, static_cast<int>(symbol::bits(entry)));
    lanes.chunks[lane].raw.data()[left] = static_cast<std::uint16_t>(turned);
    lanes.chunks[lane].size.data()[left] = static_cast<std::uint8_t>(entry >> 8);
  }
  lanes.bit[lane] = bit;
  return {LoadBigEndian(lanes.data + (bit >> 3)) << (bit & 7), left << kLeft};
}

// Keeps the compiler from working out a position once for two uses that are far apart: it would
// have to put it aside in memory.
HWY_INLINE void Forget(std::int64_t& state) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  asm("" : "+r"(state));
#else
  (void)state;
#endif
}

template <bool kSkipping>
HWY_INLINE void Step(Lanes& lanes, std::size_t lane, std::uint64_t& word, std::int64_t& state) {
  const std::size_t at = (word >> (64 - kWindowBits)) + lanes.map.data()[state >> kLeft];
  const auto entry = static_cast<std::int32_t>(lanes.entropy.tables[0].data()[at]);
  std::int64_t moved = state + entry;
  bool slowly = entry == 0;
  // Several symbols of which the block's end is not the last belong to two blocks.
  if constexpr (kSkipping)
    slowly |= ((state - (std::int64_t{1} << kLeft)) ^ moved) >> (kLeft + 6) != 0;
  if (HWY_UNLIKELY(slowly)) {
    const Stream stream = StepSlowly(lanes, lane, state);
    word = stream.word;
    state = stream.state;
    return;
  }
  // The end of the block.
  const std::int64_t rounded = moved & ~kInBlock;
  if constexpr (kSkipping)
    state = (static_cast<std::uint32_t>(entry) & symbol::kEnd) != 0 ? rounded : moved;
  else
    state = entry >= 0 ? rounded : moved;
  word = std::rotl(word, entry & 63);
  Forget(state);
  const std::int64_t now = state >> kLeft;
  lanes.chunks[lane].raw.data()[now] = static_cast<std::uint16_t>(word);
  lanes.chunks[lane].size.data()[now] = static_cast<std::uint8_t>(entry >> 8);
  Forget(state);
}

// Written out: in arrays, streams do not stay in registers.
template <bool kSkipping>
HWY_INLINE void StepAll(Lanes& lanes, std::uint64_t& w0, std::uint64_t& w1, std::uint64_t& w2,
                        std::uint64_t& w3, std::uint64_t& w4, std::int64_t& s0, std::int64_t& s1,
                        std::int64_t& s2, std::int64_t& s3, std::int64_t& s4) {
  Step<kSkipping>(lanes, 0, w0, s0);
  Step<kSkipping>(lanes, 1, w1, s1);
  Step<kSkipping>(lanes, 2, w2, s2);
  Step<kSkipping>(lanes, 3, w3, s3);
  Step<kSkipping>(lanes, 4, w4, s4);
}

template <bool kSkipping>
HWY_NOINLINE std::uint32_t Run(Lanes& lanes) {
  static_assert(2 * kLongestSkip <= 56 && 3 * symbol::kLongest <= 56);
  static_assert(kLanes == 5);
  const auto state_of = [&](std::size_t lane) { 
    return (lanes.left[lane] + std::int64_t{Chunk::kAhead}) << kLeft;
  };
  std::int64_t s0 = state_of(0), s1 = state_of(1), s2 = state_of(2), s3 = state_of(3),
               s4 = state_of(4);
  std::uint64_t w0, w1, w2, w3, w4;
  for (;;) {
    const auto refill = [&](std::size_t lane) HWY_ATTR {
      const std::uint64_t bit = lanes.bit[lane];
      return LoadBigEndian(lanes.data + (bit >> 3)) << (bit & 7);
    };
    w0 = refill(0);
    w1 = refill(1);
    w2 = refill(2);
    w3 = refill(3);
    w4 = refill(4);
    StepAll<kSkipping>(lanes, w0, w1, w2, w3, w4, s0, s1, s2, s3, s4);
    StepAll<kSkipping>(lanes, w0, w1, w2, w3, w4, s0, s1, s2, s3, s4);
    if constexpr (!kSkipping) StepAll<kSkipping>(lanes, w0, w1, w2, w3, w4, s0, s1, s2, s3, s4);
    std::uint32_t done = 0;
    const auto account = [&](std::size_t lane, std::int64_t& state) HWY_ATTR {
      lanes.bit[lane] += static_cast<std::uint64_t>(state & 0xFF);
      state &= ~kLow;
      if (HWY_UNLIKELY(state <= kDone)) done |= 1U << lane;
    };
    account(0, s0);
    account(1, s1);
    account(2, s2);
    account(3, s3);
    account(4, s4);
    if (HWY_UNLIKELY(done != 0)) {
      const std::int64_t states[kLanes] = {s0, s1, s2, s3, s4};
      for (std::size_t i = 0; i < kLanes; ++i)
        lanes.left[i] = static_cast<std::int32_t>((states[i] >> kLeft) - Chunk::kAhead);
      return done;
    }
  }
}

std::uint32_t RunLanes(Lanes& lanes, bool skipping) {
  return skipping ? Run<true>(lanes) : Run<false>(lanes);
}

}  // namespace penstock::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::detail {

HWY_EXPORT(RunLanes);

std::uint32_t Lanes::run(bool skipping) { return HWY_DYNAMIC_DISPATCH(RunLanes)(*this, skipping); }

void Lanes::set_map(const McuLayout& layout, bool skipping) {
  const auto offset = [](std::size_t table) {
    static_assert(((EntropyTables::kStop + 1) << kWindowBits) <= 0x10000);
    return static_cast<std::uint16_t>(table << kWindowBits);
  };
  std::fill_n(map.begin(), kBehind + 1, offset(EntropyTables::kStop));
  const int blocks = kChunkMcus * layout.blocks;
  auto* out = map.data() + kBehind + 1;
  for (int behind = 0; behind < blocks; ++behind) {
    // This block has `behind` others behind it.
    const std::size_t c = layout.component(layout.blocks - 1 - behind % layout.blocks);
    out = std::fill_n(out, kBlockSize - 1, offset(skipping ? entropy.skip[c] : entropy.ac[c]));
    *out++ = offset(entropy.dc[c]);
  }
}

}  // namespace penstock::detail
#endif
