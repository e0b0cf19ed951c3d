// order/multiply_lanes: a product that Highway spells differently where a vector is a single
// number. Included once for every target of foreach_target.h, after <hwy/highway.h>.
#include <cstdint>

#if defined(PENSTOCK_ORDER_MULTIPLY_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_ORDER_MULTIPLY_LANES
#undef PENSTOCK_ORDER_MULTIPLY_LANES
#else
#define PENSTOCK_ORDER_MULTIPLY_LANES
#endif

HWY_BEFORE_NAMESPACE();
namespace penstock::order::HWY_NAMESPACE {

/// In every 64-bit lane the product of the two low halves; the upper halves do not count.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V multiply_low_halves(D d, V a, V b) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, (hn::GetLane(a) & 0xFFFFFFFFU) * (hn::GetLane(b) & 0xFFFFFFFFU));
#else
  const hn::Repartition<std::uint32_t, D> d32;
  return hn::BitCast(d, hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)));
#endif
}

}  // namespace penstock::order::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
