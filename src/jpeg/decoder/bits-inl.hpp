// jpeg/decoder/bits-inl: loads for the files that are compiled once for every instruction set.
#if defined(PENSTOCK_JPEG_BITS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_JPEG_BITS_INL
#undef PENSTOCK_JPEG_BITS_INL
#else
#define PENSTOCK_JPEG_BITS_INL
#endif

#include <bit>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {

HWY_INLINE std::uint64_t LoadBigEndian(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  return word;
}

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
