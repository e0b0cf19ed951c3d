#include "src/order/permutation.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/order/permutation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/order/multiply_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::order::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four vectors of at most eight go through a round side by side, so that their latencies overlap.
void encrypt(const FeistelKey& key, std::span<std::uint64_t> values) {
  const hn::CappedTag<std::uint64_t, kFeistelGroup / 4> d;
  using V = hn::Vec<decltype(d)>;
  const auto low_mask = hn::Set(d, (std::uint64_t{1} << key.low_bits) - 1);
  const int low_bits = key.low_bits;
  const int to_low = 64 - key.low_bits;
  const int to_high = 64 - key.high_bits;
  const std::size_t lanes = hn::Lanes(d);

  for (std::size_t start = 0; start < values.size(); start += 4 * lanes) {
    std::uint64_t* const at = values.data() + start;
    const V in0 = hn::LoadU(d, at);
    const V in1 = hn::LoadU(d, at + lanes);
    const V in2 = hn::LoadU(d, at + 2 * lanes);
    const V in3 = hn::LoadU(d, at + 3 * lanes);
    V high0 = hn::ShiftRightSame(in0, low_bits), low0 = hn::And(in0, low_mask);
    V high1 = hn::ShiftRightSame(in1, low_bits), low1 = hn::And(in1, low_mask);
    V high2 = hn::ShiftRightSame(in2, low_bits), low2 = hn::And(in2, low_mask);
    V high3 = hn::ShiftRightSame(in3, low_bits), low3 = hn::And(in3, low_mask);
    for (std::size_t round = 0; round < kFeistelRounds; round += 2) {
      // The halves have 32 bits at most, so two products of 32 bits make the one of 64.
      const auto hash = [&](V half, std::size_t r, int shift) HWY_ATTR {
        const auto factor = hn::Set(d, key.rounds[r].factor);
        const auto low = multiply_low_halves(d, half, factor);
        const auto high = multiply_low_halves(d, half, hn::ShiftRight<32>(factor));
        const auto sum = hn::Add(low, hn::Set(d, key.rounds[r].summand));
        return hn::ShiftRightSame(hn::Add(sum, hn::ShiftLeft<32>(high)), shift);
      };
      high0 = hn::Xor(high0, hash(low0, round, to_high));
      high1 = hn::Xor(high1, hash(low1, round, to_high));
      high2 = hn::Xor(high2, hash(low2, round, to_high));
      high3 = hn::Xor(high3, hash(low3, round, to_high));
      low0 = hn::Xor(low0, hash(high0, round + 1, to_low));
      low1 = hn::Xor(low1, hash(high1, round + 1, to_low));
      low2 = hn::Xor(low2, hash(high2, round + 1, to_low));
      low3 = hn::Xor(low3, hash(high3, round + 1, to_low));
    }
    hn::StoreU(hn::Or(hn::ShiftLeftSame(high0, low_bits), low0), d, at);
    hn::StoreU(hn::Or(hn::ShiftLeftSame(high1, low_bits), low1), d, at + lanes);
    hn::StoreU(hn::Or(hn::ShiftLeftSame(high2, low_bits), low2), d, at + 2 * lanes);
    hn::StoreU(hn::Or(hn::ShiftLeftSame(high3, low_bits), low3), d, at + 3 * lanes);
  }
}

}  // namespace penstock::order::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::order {
namespace {

HWY_EXPORT(encrypt);

// The two kinds of draws differ in the last coordinate of the key's numbers. Saved orders depend on
// both.
constexpr std::uint32_t kTableDraws = 0;
constexpr std::uint32_t kRoundDraws = 1;

constexpr std::size_t kChunk = 256;
static_assert(kChunk % kFeistelGroup == 0);

}  // namespace

Permutation::Permutation(std::uint64_t size, const RandomKey& key, std::uint32_t iteration) noexcept
    : size_(size) {
  if (size <= kPermutationTable) {
    for (std::size_t i = 0; i < size; ++i) table_[i] = static_cast<std::uint8_t>(i);
    for (std::uint64_t i = size; i > 1; --i)
      std::swap(table_[i - 1], table_[scale_to(key.u64(i, iteration, kTableDraws), i)]);
    return;
  }
  const int bits = std::bit_width(size - 1);
  feistel_.high_bits = bits / 2;
  feistel_.low_bits = bits - feistel_.high_bits;
  for (std::size_t i = 0; i < kFeistelRounds; ++i) {
    const auto words = key.bits(i, iteration, kRoundDraws);
    feistel_.rounds[i].factor = (words[0] | std::uint64_t{words[1]} << 32) | 1;
    feistel_.rounds[i].summand = words[2] | std::uint64_t{words[3]} << 32;
  }
}

void Permutation::apply(std::span<std::uint64_t> positions) const noexcept {
  if (size_ <= kPermutationTable) {
    for (std::uint64_t& position : positions) position = table_[position];
    return;
  }
  std::array<std::uint64_t, kChunk> values;
  std::array<std::uint16_t, kChunk> places;
  while (!positions.empty()) {
    const std::size_t chunk = std::min(kChunk, positions.size());
    for (std::size_t k = 0; k < chunk; ++k) {
      values[k] = positions[k];
      places[k] = static_cast<std::uint16_t>(k);
    }
    // All that are still outside go through together, so that walking keeps every lane busy.
    for (std::size_t walking = chunk; walking != 0;) {
      const std::size_t padded = (walking + kFeistelGroup - 1) / kFeistelGroup * kFeistelGroup;
      std::fill(values.begin() + walking, values.begin() + padded, 0);
      HWY_DYNAMIC_DISPATCH(encrypt)(feistel_, std::span(values).first(padded));
      std::size_t outside = 0;
      for (std::size_t k = 0; k < walking; ++k) {
        const std::uint64_t value = values[k];
        const std::uint16_t place = places[k];
        positions[place] = value;
        values[outside] = value;
        places[outside] = place;
        outside += value >= size_ ? 1 : 0;
      }
      walking = outside;
    }
    positions = positions.subspan(chunk);
  }
}

}  // namespace penstock::order
#endif
