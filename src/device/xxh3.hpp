// device/xxh3: XXH3's hash of 128 bits by its specification, for the host and for kernels. libxxhash is faster on the host; a
// kernel cannot call it.
//
// Source  https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, section XXH3
#pragma once

#include <cstdint>
#include <cstring>

#include "src/core/host_device.hpp"

namespace penstock::device::xxh3 {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

inline constexpr std::uint64_t kPrime32_1 = 0x9E3779B1U;
inline constexpr std::uint64_t kPrime32_2 = 0x85EBCA77U;
inline constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3DU;
inline constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87U;
inline constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4FU;
inline constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9U;
inline constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63U;
inline constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5U;
inline constexpr std::uint64_t kPrimeMix1 = 0x165667919E3779F9U;
inline constexpr std::uint64_t kPrimeMix2 = 0x9FB21C651E98DF25U;

/// Longer inputs are hashed in eight lanes.
inline constexpr std::uint64_t kMostUnlaned = 240;
inline constexpr unsigned kLanes = 8;  ///< of 64 bits, a stripe
inline constexpr unsigned kStripeBytes = 64;
inline constexpr unsigned kStripesPerBlock = 16;
inline constexpr unsigned kBlockBytes = kStripeBytes * kStripesPerBlock;

// Offsets in the secret, in bytes.
inline constexpr unsigned kScrambleSecret = 128;
inline constexpr unsigned kLastStripeSecret = 121;
inline constexpr unsigned kLowSecret = 11;
inline constexpr unsigned kHighSecret = 117;

// ---- reading: little endian, at any address ----

PENSTOCK_HOST_DEVICE inline std::uint64_t read_bytes(const std::uint8_t* at, unsigned count) {
  std::uint64_t value = 0;
  for (unsigned k = 0; k < count; ++k) value |= std::uint64_t{at[k]} << (8 * k);
  return value;
}
PENSTOCK_HOST_DEVICE inline std::uint64_t read64(const std::uint8_t* at) {
  return read_bytes(at, 8);
}
PENSTOCK_HOST_DEVICE inline std::uint64_t read32(const std::uint8_t* at) {
  return read_bytes(at, 4);
}
/// `at` is a multiple of 8.
PENSTOCK_HOST_DEVICE inline std::uint64_t read64_aligned(const std::uint8_t* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, __builtin_assume_aligned(at, 8), sizeof value);
  return value;
}

/// A word of the default secret.
PENSTOCK_HOST_DEVICE inline std::uint64_t secret_word(unsigned word) {
  static constexpr std::uint64_t kWords[] = {
      0xBE4BA423396CFEB8U, 0x1CAD21F72C81017CU, 0xDB979083E96DD4DEU, 0x1F67B3B7A4A44072U,
      0x78E5C0CC4EE679CBU, 0x2172FFCC7DD05A82U, 0x8E2443F7744608B8U, 0x4C263A81E69035E0U,
      0xCB00C391BB52283CU, 0xA32E531B8B65D088U, 0x4EF90DA297486471U, 0xD8ACDEA946EF1938U,
      0x3F349CE33F76FAA8U, 0x1D4F0BC7C7BBDCF9U, 0x3159B4CD4BE0518AU, 0x647378D9C97E9FC8U,
      0xC3EBD33483ACC5EAU, 0xEB6313FAFFA081C5U, 0x49DAF0B751DD0D17U, 0x9E68D429265516D3U,
      0xFCA1477D58BE162BU, 0xCE31D07AD1B8F88FU, 0x280416958F3ACB45U, 0x7E404BBBCAFBD7AFU};
  return kWords[word];
}
/// A word of the secret that long inputs derive from their seed.
PENSTOCK_HOST_DEVICE inline std::uint64_t secret_word(unsigned word, std::uint64_t seed) {
  return word % 2 == 0 ? secret_word(word) + seed : secret_word(word) - seed;
}
/// The same at any offset, in bytes.
PENSTOCK_HOST_DEVICE inline std::uint64_t secret_at(unsigned offset, std::uint64_t seed = 0) {
  const unsigned shift = offset % 8 * 8;
  const std::uint64_t word = secret_word(offset / 8, seed);
  if (shift == 0) return word;
  return word >> shift | secret_word(offset / 8 + 1, seed) << (64 - shift);
}

// ---- mixing ----

PENSTOCK_HOST_DEVICE inline std::uint64_t low_half(std::uint64_t value) {
  return value & 0xFFFFFFFFU;
}
PENSTOCK_HOST_DEVICE inline std::uint64_t high_half(std::uint64_t value) { return value >> 32; }

PENSTOCK_HOST_DEVICE inline std::uint64_t swapped32(std::uint64_t value) {
  std::uint64_t swapped = 0;
  for (unsigned k = 0; k < 4; ++k) swapped |= (value >> (8 * k) & 0xFF) << (24 - 8 * k);
  return swapped;
}
PENSTOCK_HOST_DEVICE inline std::uint64_t swapped64(std::uint64_t value) {
  return swapped32(low_half(value)) << 32 | swapped32(high_half(value));
}

PENSTOCK_HOST_DEVICE inline Hash128 product(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 all = static_cast<unsigned __int128>(a) * b;
  return {static_cast<std::uint64_t>(all), static_cast<std::uint64_t>(all >> 64)};
}
PENSTOCK_HOST_DEVICE inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const Hash128 all = product(a, b);
  return all.low ^ all.high;
}

PENSTOCK_HOST_DEVICE inline std::uint64_t avalanche(std::uint64_t value) {
  value ^= value >> 37;
  value *= kPrimeMix1;
  return value ^ value >> 32;
}
PENSTOCK_HOST_DEVICE inline std::uint64_t avalanche_xxh64(std::uint64_t value) {
  value ^= value >> 33;
  value *= kPrime64_2;
  value ^= value >> 29;
  value *= kPrime64_3;
  return value ^ value >> 32;
}

// ---- inputs of up to 240 bytes ----

PENSTOCK_HOST_DEVICE inline Hash128 hash_0(std::uint64_t seed) {
  return {avalanche_xxh64(seed ^ secret_word(8) ^ secret_word(9)),
          avalanche_xxh64(seed ^ secret_word(10) ^ secret_word(11))};
}

PENSTOCK_HOST_DEVICE inline Hash128 hash_1_to_3(const std::uint8_t* data, std::uint64_t bytes,
                                                std::uint64_t seed) {
  const std::uint64_t all = data[bytes - 1] | bytes << 8 | std::uint64_t{data[0]} << 16 |
                            std::uint64_t{data[bytes / 2]} << 24;
  const std::uint64_t swapped = swapped32(all);
  const std::uint64_t turned = low_half(swapped << 13 | swapped >> 19);
  const std::uint64_t first = low_half(secret_word(0)) ^ high_half(secret_word(0));
  const std::uint64_t second = low_half(secret_word(1)) ^ high_half(secret_word(1));
  return {avalanche_xxh64((first + seed) ^ all), avalanche_xxh64((second - seed) ^ turned)};
}

PENSTOCK_HOST_DEVICE inline Hash128 hash_4_to_8(const std::uint8_t* data, std::uint64_t bytes,
                                                std::uint64_t seed) {
  seed ^= swapped32(low_half(seed)) << 32;
  const std::uint64_t all = read32(data) | read32(data + bytes - 4) << 32;
  const std::uint64_t value = ((secret_word(2) ^ secret_word(3)) + seed) ^ all;
  Hash128 hash = product(value, kPrime64_1 + (bytes << 2));
  hash.high += hash.low << 1;
  hash.low ^= hash.high >> 3;
  hash.low ^= hash.low >> 35;
  hash.low *= kPrimeMix2;
  hash.low ^= hash.low >> 28;
  hash.high = avalanche(hash.high);
  return hash;
}

PENSTOCK_HOST_DEVICE inline Hash128 hash_9_to_16(const std::uint8_t* data, std::uint64_t bytes,
                                                 std::uint64_t seed) {
  const std::uint64_t first = read64(data);
  const std::uint64_t last = read64(data + bytes - 8);
  const std::uint64_t both = ((secret_word(4) ^ secret_word(5)) - seed) ^ first ^ last;
  const std::uint64_t one = ((secret_word(6) ^ secret_word(7)) + seed) ^ last;
  Hash128 hash = product(both, kPrime64_1);
  hash.low += (bytes - 1) << 54;
  hash.high += one + low_half(one) * (kPrime32_2 - 1);
  hash.low ^= swapped64(hash.high);
  const Hash128 again = product(hash.low, kPrime64_2);
  return {avalanche(again.low), avalanche(again.high + hash.high * kPrime64_2)};
}

/// The two accumulators of inputs of 17 to 240 bytes.
struct Pair {
  std::uint64_t first, second;

  PENSTOCK_HOST_DEVICE static std::uint64_t mixed(const std::uint8_t* data, unsigned secret,
                                                  std::uint64_t seed) {
    return folded_product(read64(data) ^ (secret_at(secret) + seed),
                          read64(data + 8) ^ (secret_at(secret + 8) - seed));
  }
  /// Two chunks of 16 bytes.
  PENSTOCK_HOST_DEVICE void mix(const std::uint8_t* one, const std::uint8_t* other, unsigned secret,
                                std::uint64_t seed) {
    first = (first + mixed(one, secret, seed)) ^ (read64(other) + read64(other + 8));
    second = (second + mixed(other, secret + 16, seed)) ^ (read64(one) + read64(one + 8));
  }
  PENSTOCK_HOST_DEVICE Hash128 finish(std::uint64_t bytes, std::uint64_t seed) const {
    const std::uint64_t high =
        first * kPrime64_1 + second * kPrime64_4 + (bytes - seed) * kPrime64_2;
    return {avalanche(first + second), 0 - avalanche(high)};
  }
};

PENSTOCK_HOST_DEVICE inline Hash128 hash_17_to_128(const std::uint8_t* data, std::uint64_t bytes,
                                                   std::uint64_t seed) {
  Pair pair{bytes * kPrime64_1, 0};
  for (auto k = static_cast<unsigned>((bytes - 1) / 32 + 1); k-- > 0;)
    pair.mix(data + 16 * k, data + bytes - 16 * k - 16, 32 * k, seed);
  return pair.finish(bytes, seed);
}

PENSTOCK_HOST_DEVICE inline Hash128 hash_129_to_240(const std::uint8_t* data, std::uint64_t bytes,
                                                    std::uint64_t seed) {
  Pair pair{bytes * kPrime64_1, 0};
  for (unsigned k = 0; k < 4; ++k) pair.mix(data + 32 * k, data + 32 * k + 16, 32 * k, seed);
  pair.first = avalanche(pair.first);
  pair.second = avalanche(pair.second);
  for (unsigned k = 4; k < bytes / 32; ++k)
    pair.mix(data + 32 * k, data + 32 * k + 16, 32 * (k - 4) + 3, seed);
  pair.mix(data + bytes - 16, data + bytes - 32, 103, 0 - seed);
  return pair.finish(bytes, seed);
}

/// Of up to kMostUnlaned bytes.
PENSTOCK_HOST_DEVICE inline Hash128 hash_unlaned(const std::uint8_t* data, std::uint64_t bytes,
                                                 std::uint64_t seed) {
  if (bytes == 0) return hash_0(seed);
  if (bytes <= 3) return hash_1_to_3(data, bytes, seed);
  if (bytes <= 8) return hash_4_to_8(data, bytes, seed);
  if (bytes <= 16) return hash_9_to_16(data, bytes, seed);
  if (bytes <= 128) return hash_17_to_128(data, bytes, seed);
  return hash_129_to_240(data, bytes, seed);
}

// ---- longer inputs: what each of the eight lanes does ----

/// How many blocks end in a scramble; behind them come `stripes_behind` whole stripes, and the last
/// one, which ends with the input.
struct Blocks {
  std::uint64_t whole;
  unsigned stripes_behind;

  PENSTOCK_HOST_DEVICE explicit Blocks(std::uint64_t bytes)
      : whole((bytes - 1) / kBlockBytes),
        stripes_behind(static_cast<unsigned>((bytes - 1) % kBlockBytes / kStripeBytes)) {}
};

/// What a lane begins with.
PENSTOCK_HOST_DEVICE inline std::uint64_t initial(unsigned lane) {
  static constexpr std::uint64_t kInitial[] = {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
                                               kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};
  return kInitial[lane];
}
/// What a stripe adds to a lane, beside the word of its neighbour: lane ^ 1.
PENSTOCK_HOST_DEVICE inline std::uint64_t stripe_product(std::uint64_t word, std::uint64_t secret) {
  return low_half(word ^ secret) * high_half(word ^ secret);
}
PENSTOCK_HOST_DEVICE inline std::uint64_t scrambled(std::uint64_t sum, std::uint64_t secret) {
  return (sum ^ sum >> 47 ^ secret) * kPrime32_1;
}
/// What the sums of the folded products of four pairs of lanes are added to.
PENSTOCK_HOST_DEVICE inline Hash128 merge_begin(std::uint64_t bytes) {
  return {bytes * kPrime64_1, ~(bytes * kPrime64_2)};
}

/// On one thread: the lanes one after another.
PENSTOCK_HOST_DEVICE inline Hash128 hash_laned(const std::uint8_t* data, std::uint64_t bytes,
                                               std::uint64_t seed) {
  std::uint64_t sums[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) sums[lane] = initial(lane);
  const auto add = [&](const std::uint8_t* stripe, unsigned secret) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t word = read64(stripe + 8 * lane);
      sums[lane ^ 1] += word;
      sums[lane] += stripe_product(word, secret_at(secret + 8 * lane, seed));
    }
  };
  const Blocks blocks(bytes);
  for (std::uint64_t block = 0; block < blocks.whole; ++block) {
    for (unsigned k = 0; k < kStripesPerBlock; ++k)
      add(data + block * kBlockBytes + k * kStripeBytes, 8 * k);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      sums[lane] = scrambled(sums[lane], secret_at(kScrambleSecret + 8 * lane, seed));
  }
  for (unsigned k = 0; k < blocks.stripes_behind; ++k)
    add(data + blocks.whole * kBlockBytes + k * kStripeBytes, 8 * k);
  add(data + bytes - kStripeBytes, kLastStripeSecret);

  Hash128 hash = merge_begin(bytes);
  for (unsigned lane = 0; lane < kLanes; lane += 2) {
    hash.low += folded_product(sums[lane] ^ secret_at(kLowSecret + 8 * lane, seed),
                               sums[lane + 1] ^ secret_at(kLowSecret + 8 * lane + 8, seed));
    hash.high += folded_product(sums[lane] ^ secret_at(kHighSecret + 8 * lane, seed),
                                sums[lane + 1] ^ secret_at(kHighSecret + 8 * lane + 8, seed));
  }
  return {avalanche(hash.low), avalanche(hash.high)};
}

/// Of any number of bytes, on one thread: XXH3_128bits_withSeed.
PENSTOCK_HOST_DEVICE inline Hash128 hash(const std::uint8_t* data, std::uint64_t bytes,
                                         std::uint64_t seed) {
  return bytes <= kMostUnlaned ? hash_unlaned(data, bytes, seed) : hash_laned(data, bytes, seed);
}

}  // namespace penstock::device::xxh3
