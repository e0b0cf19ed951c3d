#include "src/jpeg/decoder/lanes.hpp"

#include <bit>
#include <utility>

// Vectors are not needed here, but the bit instructions that come with them are.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/lanes.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include "src/jpeg/decoder/bits-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {

constexpr int kStep = symbol::kStep;
static_assert(3 * symbol::kLongest <= 56);

// A stream in registers. `state` is a sum of symbols, so that one addition moves all of it: minus
// the coefficients left of the block from kStep on, so that it turns positive where the block
// ends; below bit 8 the bits taken since the last refill; between them nothing of interest.
struct Running {
  std::uint64_t word;  // the next bits, at the top
  std::int64_t state;
  const std::uint32_t* table;
  std::uint8_t* out;  // behind the block's raw bits, where its sizes begin; or the DC difference
};

HWY_INLINE std::uint64_t WordAt(const Lanes& lanes, std::uint64_t bit) {
  return LoadBigEndian(lanes.data + (bit >> 3)) << (bit & 7);
}

HWY_INLINE void Refill(const Lanes& lanes, Lane& lane, Running& r) {
  r.word = WordAt(lanes, lane.bit);
}
// To be done before a refill.
HWY_INLINE void Account(Lane& lane, Running& r) {
  lane.bit += static_cast<std::uint64_t>(r.state & 0xFF);
  r.state = r.state >> kStep << kStep;
}

HWY_INLINE void Put(std::uint8_t* out, std::int64_t at, std::uint64_t word, std::uint32_t entry) {
  // `at` is minus the coefficients left behind this one.
  reinterpret_cast<std::uint16_t*>(out)[at - 1] = static_cast<std::uint16_t>(word);
  out[kBlockSize + at - 1] = static_cast<std::uint8_t>(entry >> 8);
}

struct WordAndState {
  std::uint64_t word;
  std::int64_t state;  // positive where the block ends
};

// A symbol that a look-up could not tell, or one of a look-up's that do not fit in the block, from
// the stream's position on. By value: what has an address does not stay in a register.
template <bool kSkipping>
HWY_NOINLINE WordAndState OneSymbol(const Lanes& lanes, Lane& lane, std::uint8_t* out,
                                    std::int64_t left) {
  const std::uint64_t word = WordAt(lanes, lane.bit);
  const std::uint32_t entry =
      lane.tables->ac->code.next_symbol(static_cast<std::uint32_t>(word >> 48));
  std::int64_t then = 0;
  if (entry == symbol::kInvalid) {
    lane.failed = true;
    lane.bit += 1;
  } else {
    const unsigned bits = symbol::bits(entry);
    lane.bit += bits;
    if ((entry & symbol::kEnd) == 0) {
      then = left + symbol::step(entry);
      lane.failed |= then > 0;
      if (!kSkipping && then <= 0) Put(out, then, std::rotl(word, static_cast<int>(bits)), entry);
    }
  }
  return {WordAt(lanes, lane.bit), then * (std::int64_t{1} << kStep)};
}

// A DC code that a look-up could not tell.
HWY_NOINLINE std::uint32_t SlowDc(Lane& lane, std::uint64_t word) {
  const std::uint32_t entry =
      lane.tables->dc->code.next_symbol(static_cast<std::uint32_t>(word >> 48));
  if (entry != symbol::kInvalid) return entry;
  lane.failed = true;
  return 1;
}

// The first symbol of the block that `lane.tables` and `r.out` are at.
template <bool kSkipping>
HWY_INLINE void BeginBlock(const Lanes& lanes, Lane& lane, Running& r) {
  std::uint64_t word = WordAt(lanes, lane.bit);
  std::uint32_t entry = lane.tables->dc->table[word >> (64 - kWindowBits)];
  const bool told = entry != symbol::kUndecided;
  if (HWY_UNLIKELY(!told)) entry = SlowDc(lane, word);
  word = std::rotl(word, static_cast<int>(entry & 63));
  if constexpr (kSkipping) {
    const DcDifference difference{static_cast<std::uint16_t>(word),
                                  static_cast<std::uint8_t>(entry >> 8 & 15)};
    *reinterpret_cast<DcDifference*>(r.out) = difference;
    r.table = lane.tables->several;
  } else {
    Put(r.out, 1 - kBlockSize, word, entry);
    r.table = lane.tables->single;
  }
  r.state = std::int64_t{1 - kBlockSize} * (std::int64_t{1} << kStep) + (entry & 0xFF);
  r.word = word;
  if (HWY_UNLIKELY(!told)) {
    // It took too many bits for what may come before the next refill.
    Account(lane, r);
    Refill(lanes, lane, r);
  }
}

// What `entry` did not do within the block. False where the chunk is done.
template <bool kSkipping>
HWY_INLINE bool LeaveBlock(const Lanes& lanes, Lane& lane, Running& r, std::uint32_t entry) {
  const std::int64_t left = r.state >> kStep;
  // Symbols up to the block's last, be it coefficient or end: not any behind it.
  const bool whole = left == 0 || ((entry & symbol::kEnd) != 0 && left < kBlockSize);
  if constexpr (!kSkipping)
    if (left == 0) Put(r.out, 0, std::rotl(r.word, static_cast<int>(entry & 63)), entry);
  if (HWY_LIKELY(whole)) {
    lane.bit += static_cast<std::uint64_t>(r.state & 0xFF);
  } else {
    r.state -= entry;
    Account(lane, r);
    const WordAndState then = OneSymbol<kSkipping>(lanes, lane, r.out, r.state >> kStep);
    r.word = then.word;
    r.state = then.state;
    if (r.state < 0) return true;
  }
  if (--lane.blocks_left == 0) return false;
  ++lane.tables;
  r.out += kSkipping ? sizeof(DcDifference) : sizeof(Block);
  BeginBlock<kSkipping>(lanes, lane, r);
  return true;
}

// False where the stream is done with its chunk.
template <bool kSkipping>
HWY_INLINE bool Step(const Lanes& lanes, Lane& lane, Running& r) {
  const std::uint32_t entry = r.table[r.word >> (64 - kWindowBits)];
  r.state += entry;
  if (HWY_UNLIKELY(r.state >= 0)) return LeaveBlock<kSkipping>(lanes, lane, r, entry);
  if constexpr (kSkipping) {
    r.word <<= entry & 63;
  } else {
    r.word = std::rotl(r.word, static_cast<int>(entry & 63));
    Put(r.out, r.state >> kStep, r.word, entry);
  }
  return true;
}

template <bool kSkipping>
HWY_INLINE Running Load(Lanes& lanes, std::size_t i) {
  Lane& lane = lanes.lane[i];
  Running r{};
  const auto out_of = [&]() HWY_ATTR {
    if constexpr (kSkipping)
      return reinterpret_cast<std::uint8_t*>(&lanes.differences[i][lane.block]);
    else
      return lanes.chunks[i][lane.block].size.data();
  };
  if (lane.tables == nullptr) {
    lane.tables = lanes.entropy.blocks();
    lane.block = 0;
    r.out = out_of();
    BeginBlock<kSkipping>(lanes, lane, r);
    Account(lane, r);
  } else {
    r.out = out_of();
    r.state = lane.state;
    r.table = kSkipping ? lane.tables->several : lane.tables->single;
  }
  return r;
}

template <bool kSkipping>
HWY_INLINE void Save(Lanes& lanes, std::size_t i, Running& r) {
  Lane& lane = lanes.lane[i];
  if (lane.blocks_left != 0) Account(lane, r);
  lane.state = r.state;
  lane.block = static_cast<std::size_t>(lane.tables - lanes.entropy.blocks());
}

// The streams are parameters: in arrays, they do not stay in registers.
template <bool kSkipping, std::size_t... kLane, class... Each>
HWY_INLINE std::size_t Run(Lanes& lanes, std::index_sequence<kLane...>, Each... r) {
  std::size_t done = 0;
  for (;;) {
    (Refill(lanes, lanes.lane[kLane], r), ...);
    // Not a loop, nor a lambda: in memory, they would be half as fast.
    if (!((Step<kSkipping>(lanes, lanes.lane[kLane], r) || (done = kLane, false)) && ...)) break;
    if (!((Step<kSkipping>(lanes, lanes.lane[kLane], r) || (done = kLane, false)) && ...)) break;
    if (!((Step<kSkipping>(lanes, lanes.lane[kLane], r) || (done = kLane, false)) && ...)) break;
    (Account(lanes.lane[kLane], r), ...);
  }
  (Save<kSkipping>(lanes, kLane, r), ...);
  return done;
}

template <bool kSkipping, std::size_t... kLane>
HWY_NOINLINE std::size_t RunLanes(Lanes& lanes, std::index_sequence<kLane...> which) {
  return Run<kSkipping>(lanes, which, Load<kSkipping>(lanes, kLane)...);
}

std::size_t Decode(Lanes& lanes, int count) {
  if (count == 1) return RunLanes<false>(lanes, std::make_index_sequence<1>());
  return RunLanes<false>(lanes, std::make_index_sequence<kDecodingLanes>());
}
std::size_t Skip(Lanes& lanes, int count) {
  if (count == 1) return RunLanes<true>(lanes, std::make_index_sequence<1>());
  return RunLanes<true>(lanes, std::make_index_sequence<kSkippingLanes>());
}

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {

HWY_EXPORT(Decode);
HWY_EXPORT(Skip);

std::size_t Lanes::decode(int count) { return HWY_DYNAMIC_DISPATCH(Decode)(*this, count); }
std::size_t Lanes::skip(int count) { return HWY_DYNAMIC_DISPATCH(Skip)(*this, count); }

}  // namespace penstock::jpeg
#endif
