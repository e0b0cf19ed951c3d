#include "src/jpeg/decoder/lockstep.hpp"

#include <algorithm>
#include <atomic>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/lockstep.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include "src/jpeg/decoder/bits-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

constexpr std::uint32_t kInvalid = symbol::kInvalid;

// What a look-up cannot tell, of the lanes in `which`: into `entries`, and the bits behind the codes into `values`. False
// where there is no such code.
HWY_NOINLINE bool SlowSymbols(const Lockstep::State& state, const std::uint32_t* bit,
                              const std::uint32_t* at, const std::uint32_t* block,
                              std::uint32_t which, std::uint32_t* entries, std::uint32_t* values) {
  for (; which != 0; which &= which - 1) {
    const auto lane = static_cast<std::size_t>(__builtin_ctz(which));
    const std::uint64_t word = LoadBigEndian(state.data + (bit[lane] >> 3)) << (bit[lane] & 7);
    const BlockTables& tables = state.of_blocks[block[lane]];
    const CanonicalCode& code = at[lane] == 0 ? tables.dc->code : tables.ac->code;
    const std::uint32_t entry = code.next_symbol(static_cast<std::uint32_t>(word >> 48));
    if (entry == kInvalid) return false;
    entries[lane] = entry;
    values[lane] = static_cast<std::uint32_t>(word >> (64 - symbol::bits(entry)));
  }
  return true;
}

std::uint32_t Decode(Lockstep::State& state) {
  const __m512i swap =
      _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i size = _mm512_set1_epi32(kBlockSize);
  const __m512i not_told = _mm512_set1_epi32(static_cast<int>(symbol::kUnknown));
  const __m512i ends = _mm512_set1_epi32(static_cast<int>(symbol::kEnd));
  const __m512i blocks = _mm512_set1_epi32(static_cast<int>(state.blocks));
  const __m512i all_dc = _mm512_load_si512(state.dc.data());
  const __m512i all_ac = _mm512_load_si512(state.ac.data());
  const auto live = static_cast<__mmask16>(state.live);
  __m512i bit = _mm512_load_si512(state.bit.data());
  __m512i at = _mm512_load_si512(state.at.data());
  __m512i block = _mm512_load_si512(state.block.data());
  __m512i out = _mm512_load_si512(state.out.data());
  __m512i left = _mm512_load_si512(state.left.data());
  __m512i dc = _mm512_permutexvar_epi32(block, all_dc);
  __m512i ac = _mm512_permutexvar_epi32(block, all_ac);
  __mmask16 done = 0;
  while (done == 0) {
    __m512i word = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), live,
                                               _mm512_srli_epi32(bit, 3), state.data, 1);
    word = _mm512_sllv_epi32(_mm512_shuffle_epi8(word, swap),
                             _mm512_and_si512(bit, _mm512_set1_epi32(7)));
    const __mmask16 begins = _mm512_testn_epi32_mask(at, at);
    const __m512i table = _mm512_mask_mov_epi32(ac, begins, dc);
    __m512i entry = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), live,
        _mm512_add_epi32(table, _mm512_srli_epi32(word, 32 - kWindowBits)), state.tables, 4);
    __m512i value = _mm512_rolv_epi32(word, entry);  // by its bits: the rotation is modulo 32
    if (const __mmask16 slow = _mm512_test_epi32_mask(entry, not_told); HWY_UNLIKELY(slow != 0)) {
      alignas(64) std::uint32_t lanes[5][kLockstepLanes];
      _mm512_store_si512(lanes[0], bit);
      _mm512_store_si512(lanes[1], at);
      _mm512_store_si512(lanes[2], block);
      _mm512_store_si512(lanes[3], entry);
      _mm512_store_si512(lanes[4], value);
      if (!SlowSymbols(state, lanes[0], lanes[1], lanes[2], slow, lanes[3], lanes[4])) return 0;
      entry = _mm512_load_si512(lanes[3]);
      value = _mm512_load_si512(lanes[4]);
    }
    const __m512i value_bits = _mm512_and_si512(entry, _mm512_set1_epi32(0xF00));
    const __m512i then = _mm512_add_epi32(at, _mm512_srli_epi32(entry, symbol::kStep));
    const __mmask16 end = _mm512_mask_cmpge_epi32_mask(live, then, size);
    // Beyond the block's end is only what ends it.
    const __mmask16 beyond = _mm512_mask_cmpgt_epi32_mask(end, then, size);
    if (HWY_UNLIKELY(_mm512_mask_testn_epi32_mask(beyond, entry, ends) != 0)) return 0;
    const __mmask16 puts = _mm512_mask_test_epi32_mask(live, value_bits, value_bits);
    const __m512i bits = _mm512_or_si512(_mm512_and_si512(value, _mm512_set1_epi32(0xFFFF)),
                                         _mm512_slli_epi32(value_bits, 8));
    _mm512_mask_i32scatter_epi32(state.coefficients, puts,
                                 _mm512_add_epi32(out, _mm512_sub_epi32(then, one)), bits, 4);
    bit = _mm512_add_epi32(bit, _mm512_and_si512(entry, _mm512_set1_epi32(0xFF)));
    at = _mm512_mask_mov_epi32(then, end, _mm512_setzero_si512());
    out = _mm512_mask_add_epi32(out, end, out, size);
    block = _mm512_mask_add_epi32(block, end, block, one);
    block = _mm512_mask_mov_epi32(block, _mm512_cmpeq_epi32_mask(block, blocks),
                                  _mm512_setzero_si512());
    dc = _mm512_permutexvar_epi32(block, all_dc);
    ac = _mm512_permutexvar_epi32(block, all_ac);
    left = _mm512_mask_sub_epi32(left, end, left, one);
    done = _mm512_mask_testn_epi32_mask(end, left, left);
  }
  _mm512_store_si512(state.bit.data(), bit);
  _mm512_store_si512(state.at.data(), at);
  _mm512_store_si512(state.block.data(), block);
  _mm512_store_si512(state.out.data(), out);
  _mm512_store_si512(state.left.data(), left);
  return done;
}

// The bits and sizes of blocks; what they lay in becomes zeros.
void Take(std::uint32_t* from, std::uint32_t blocks, Block* to) {
  const __m512i zero = _mm512_setzero_si512();
  for (std::uint32_t i = 0; i < blocks; ++i, from += kBlockSize)
    for (std::size_t k = 0; k < kBlockSize; k += 16) {
      const __m512i bits = _mm512_load_si512(from + k);
      _mm512_store_si512(from + k, zero);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to[i].raw.data() + k),
                          _mm512_cvtepi32_epi16(bits));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to[i].size.data() + k),
                       _mm512_cvtepi32_epi8(_mm512_srli_epi32(bits, 16)));
    }
}

bool IsPossible() { return true; }

#else

std::uint32_t Decode(Lockstep::State&) { return 0; }
void Take(std::uint32_t*, std::uint32_t, Block*) {}
bool IsPossible() { return false; }

#endif

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {

HWY_EXPORT(Decode);
HWY_EXPORT(Take);
HWY_EXPORT(IsPossible);

namespace {

// Fewer leave lanes idle for too long.
constexpr std::size_t kFewestStreams = 2 * kLockstepLanes;
// Before it is decided. An odd number: one of them is the middle.
constexpr int kTrials = 15;
// Below that share of the lanes' time it is worth it.
constexpr float kFaster = 0.97F;

// Any number of threads.
struct Trials {
  std::atomic<Lockstep::When> when{Lockstep::When::faster};
  std::atomic<int> started{0};
  std::atomic<int> noting{0};
  std::atomic<int> noted{0};
  std::array<std::atomic<float>, kTrials> shares{};  // of the lanes' time
  std::atomic<bool> is_faster{false};
};
Trials trials;

}  // namespace

Lockstep::Choice Lockstep::choose(std::size_t streams) noexcept {
  const When when = trials.when.load(std::memory_order_relaxed);
  if (when == When::never || !HWY_DYNAMIC_DISPATCH(IsPossible)()) return Choice::no;
  if (when == When::always) return Choice::yes;
  if (streams < kFewestStreams) return Choice::no;
  if (trials.started.load(std::memory_order_relaxed) < kTrials &&
      trials.started.fetch_add(1, std::memory_order_relaxed) < kTrials)
    return Choice::try_both;
  return trials.is_faster.load(std::memory_order_relaxed) ? Choice::yes : Choice::no;
}

void Lockstep::note(std::int64_t lockstep_ns, std::int64_t lanes_ns) noexcept {
  const int number = trials.noting.fetch_add(1);
  if (number >= kTrials) return;
  trials.shares[static_cast<std::size_t>(number)] =
      static_cast<float>(lockstep_ns) / static_cast<float>(std::max<std::int64_t>(lanes_ns, 1));
  if (trials.noted.fetch_add(1) + 1 < kTrials) return;  // others are not there yet
  std::array<float, kTrials> shares;
  std::ranges::copy(trials.shares, shares.begin());
  std::ranges::nth_element(shares, shares.begin() + kTrials / 2);
  trials.is_faster = shares[kTrials / 2] < kFaster;
}

void Lockstep::use(When when) noexcept { trials.when.store(when, std::memory_order_relaxed); }

void Lockstep::begin(const EntropyTables& entropy, const McuLayout& layout,
                     const std::uint8_t* data) {
  if (!coefficients_) coefficients_ = std::make_unique<Coefficients>();
  if (!is_clean_) coefficients_->bits.fill(0);
  is_clean_ = true;
  const BlockTables* const of_blocks = entropy.blocks();
  state_ = {.blocks = static_cast<std::uint32_t>(layout.blocks),
            .tables = of_blocks->dc->table.data(),
            .of_blocks = of_blocks,
            .data = data,
            .coefficients = coefficients_->bits.data()};
  // All of them lie in one array.
  const auto place = [&](const std::uint32_t* table) {
    return static_cast<std::uint32_t>(table - state_.tables);
  };
  for (std::size_t i = 0; i < state_.blocks; ++i) {
    state_.dc[i] = place(of_blocks[i].dc->table.data());
    state_.ac[i] = place(of_blocks[i].ac->table.data());
  }
}

void Lockstep::start(std::size_t lane, std::uint64_t bit, int blocks) noexcept {
  state_.bit[lane] = static_cast<std::uint32_t>(bit);
  state_.at[lane] = 0;
  state_.out[lane] = static_cast<std::uint32_t>(lane * kChunkBlocks * kBlockSize);
  state_.left[lane] = blocks_[lane] = static_cast<std::uint32_t>(blocks);
  state_.live |= 1U << lane;
}

std::uint32_t Lockstep::decode() {
  if (state_.live == 0) return 0;
  is_clean_ = false;
  const std::uint32_t done = HWY_DYNAMIC_DISPATCH(Decode)(state_);
  state_.live &= ~done;
  return done;
}

void Lockstep::take(std::size_t lane, Chunk& chunk) noexcept {
  HWY_DYNAMIC_DISPATCH(Take)
  (state_.coefficients + lane * kChunkBlocks * kBlockSize, blocks_[lane], chunk.data());
}

}  // namespace penstock::jpeg
#endif
