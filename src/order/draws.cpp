#include "src/order/draws.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/order/draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/order/multiply_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace penstock::order::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// philox4x32 with one block a 64-bit lane. Only the low half of a lane counts; what stands above is
// not cleared until the end.
void draw_blocks(std::array<std::uint32_t, 2> key, std::uint32_t iteration, std::uint64_t block,
                 std::size_t blocks, std::uint64_t* HWY_RESTRICT out) {
  const hn::CappedTag<std::uint64_t, 8> d;
  const auto factor0 = hn::Set(d, 0xD2511F53U);
  const auto factor2 = hn::Set(d, 0xCD9E8D57U);
  const auto low_half = hn::Set(d, 0xFFFFFFFFU);

  for (std::size_t done = 0; done < blocks; done += hn::Lanes(d)) {
    auto word0 = hn::Iota(d, block + done);
    auto word1 = hn::ShiftRight<32>(word0);
    auto word2 = hn::Set(d, iteration);
    auto word3 = hn::Zero(d);
    std::uint32_t key0 = key[0];
    std::uint32_t key1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const auto a = multiply_low_halves(d, factor0, word0);
      const auto b = multiply_low_halves(d, factor2, word2);
      word0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), word1), hn::Set(d, key0));
      word1 = b;
      word2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), word3), hn::Set(d, key1));
      word3 = a;
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    const auto even = hn::Or(hn::And(word0, low_half), hn::ShiftLeft<32>(word1));
    const auto odd = hn::Or(hn::And(word2, low_half), hn::ShiftLeft<32>(word3));
    hn::StoreInterleaved2(even, odd, d, out + 2 * done);
  }
}

}  // namespace penstock::order::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::order {

HWY_EXPORT(draw_blocks);

Draws::Draws(const RandomKey& key) noexcept {
  const auto words = key.bits(0, 0, 0);
  key_ = {words[0], words[1]};
}

std::span<const std::uint64_t> Draws::at(std::uint32_t iteration, std::uint64_t first,
                                         std::size_t count) noexcept {
  const std::size_t odd = first % 2;
  HWY_DYNAMIC_DISPATCH(draw_blocks)
  (key_, iteration, first / 2, (odd + count + 1) / 2, numbers_.data());
  return std::span(numbers_).subspan(odd, count);
}

}  // namespace penstock::order
#endif
