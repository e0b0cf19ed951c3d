#include "src/device/xxh3.hpp"

#include <random>
#include <vector>

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

namespace penstock::device {
namespace {

// Every length up to two blocks, and around the ends of blocks and stripes far behind them.
std::vector<std::size_t> lengths() {
  std::vector<std::size_t> all;
  for (std::size_t length = 0; length <= 2048; ++length) all.push_back(length);
  for (const std::size_t around : {3072U, 64U << 10, 150'528U, 1U << 20})
    for (std::size_t length = around - 66; length <= around + 66; ++length) all.push_back(length);
  return all;
}

TEST(Xxh3, IsThatOfTheLibraryForEveryLengthSeedAndAlignment) {
  std::mt19937_64 random(1);
  std::vector<std::uint8_t> bytes((1U << 20) + 128);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (const std::size_t length : lengths())
    for (const std::uint64_t seed : {std::uint64_t{0}, random()})
      for (const std::size_t begin : {std::size_t{0}, random() % 8}) {
        const std::uint8_t* const data = bytes.data() + begin;
        const XXH128_hash_t expected = XXH3_128bits_withSeed(data, length, seed);
        const xxh3::Hash128 found = xxh3::hash(data, length, seed);
        ASSERT_EQ(found.low, expected.low64) << length << " bytes, seed " << seed;
        ASSERT_EQ(found.high, expected.high64) << length << " bytes, seed " << seed;
      }
}

}  // namespace
}  // namespace penstock::device
