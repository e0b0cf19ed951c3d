// core/random: counter-based random numbers, and digests of what was delivered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- random numbers ----
//
// A number is a function of its coordinates, never of what was drawn before, so any thread, process or later run computes the
// same one.

/// Which random numbers these are: increases whenever the same plan and seed would give others.
/// 1: a function of seed, operation, source, epoch and number. 2: also of the draw, where a sample
/// is drawn more than once (SampleId::draw); where it is not, the numbers are those of 1.
inline constexpr std::uint32_t kRandomVersion = 2;

/// Philox 4x32-10: 128 random bits from a 128-bit counter and a 64-bit key.
///
/// Source  Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC'11); the
///         same function as Random123's philox4x32 and cuRAND's.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// The high half of a 64x64-bit product: maps a uniform 64-bit number to [0, n) with a bias below
/// n/2^64.
[[nodiscard]] constexpr std::uint64_t scale_to(std::uint64_t uniform, std::uint64_t n) noexcept {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  const std::uint64_t low = ((uniform & kLow) * (n & kLow)) >> 32;
  const std::uint64_t middle = (uniform >> 32) * (n & kLow) + low;
  const std::uint64_t other = (uniform & kLow) * (n >> 32) + (middle & kLow);
  return (uniform >> 32) * (n >> 32) + (middle >> 32) + (other >> 32);
}

/// The key of one operation of one plan: every random number that it uses comes from this.
class RandomKey {
 public:
  RandomKey() = default;
  /// Independent keys for different seeds, operations and sources.
  RandomKey(std::uint64_t seed, std::uint32_t operation, std::uint32_t source = 0) noexcept;

  /// 128 bits for the coordinates (a, b, c), for example (position, iteration, block).
  [[nodiscard]] std::array<std::uint32_t, 4> bits(std::uint64_t a, std::uint32_t b,
                                                  std::uint32_t c) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), b, c},
                      key_);
  }
  /// The first 64 of bits(a, b, c).
  [[nodiscard]] std::uint64_t u64(std::uint64_t a, std::uint32_t b,
                                  std::uint32_t c) const noexcept {
    const auto words = bits(a, b, c);
    return words[0] | std::uint64_t{words[1]} << 32;
  }
  /// The key of one draw of a sample: this one for draw 0, else an independent one.
  [[nodiscard]] RandomKey of_draw(std::uint64_t draw) const noexcept {
    return derived(draw, 0x44524157U);
  }
  /// The key of one of several parts that draw by themselves: this one for part 0.
  [[nodiscard]] RandomKey of_part(std::uint64_t part) const noexcept {
    return derived(part, 0x50415254U);
  }

 private:
  // The number, the epoch and the block fill a counter, so what else there is goes into the key. No
  // sample draws as many as 2^16 blocks, so none has this one.
  [[nodiscard]] RandomKey derived(std::uint64_t number, std::uint32_t of) const noexcept {
    if (number == 0) return *this;
    const auto words = bits(number, of, UINT32_MAX);
    RandomKey key;
    key.key_ = {words[0], words[1]};
    return key;
  }

  std::array<std::uint32_t, 2> key_{};
};

/// The random numbers of one sample in one operation, drawn one after another.
///
/// Threads  a value; each task makes its own.
class Random {
 public:
  /// `stream` selects one of several independent sequences of the same sample.
  Random(const RandomKey& key, const SampleId& sample, std::uint16_t stream = 0) noexcept
      : key_(key.of_draw(sample.draw)),
        number_(sample.number),
        epoch_(sample.epoch),
        block_(std::uint32_t{stream} << 16) {}

  /// Another sequence of the same sample, from its beginning: one for each view of an image, say.
  [[nodiscard]] Random of_stream(std::uint16_t stream) const noexcept {
    Random other = *this;
    other.block_ = std::uint32_t{stream} << 16;
    other.left_ = 0;
    return other;
  }

  [[nodiscard]] std::uint32_t u32() noexcept {
    if (left_ == 0) {
      words_ = key_.bits(number_, epoch_, block_++);
      left_ = 4;
    }
    return words_[4 - left_--];
  }
  [[nodiscard]] std::uint64_t u64() noexcept {
    const std::uint64_t low = u32();
    return low | std::uint64_t{u32()} << 32;
  }
  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform() noexcept { return static_cast<double>(u64() >> 11) * 0x1.0p-53; }
  /// Uniform in [low, high).
  [[nodiscard]] double uniform(double low, double high) noexcept {
    return low + (high - low) * uniform();
  }
  /// Uniform in [0, n); n > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept { return scale_to(u64(), n); }

 private:
  RandomKey key_;
  std::uint64_t number_;
  std::uint32_t epoch_;
  std::uint32_t block_;
  std::array<std::uint32_t, 4> words_{};
  int left_ = 0;
};

// ---- a sum of hashes that tells whether two runs delivered the same rows ----

/// 128 bits, added modulo 2^128: the sum does not depend on the order in which rows, threads or
/// processes contribute.
///
/// Threads  a value; add up per thread, then add the sums.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  Digest& operator+=(const Digest& other) noexcept {
    const std::uint64_t added = other.low;  // which may be `low`
    high += other.high;
    low += added;
    if (low < added) ++high;  // the carry
    return *this;
  }
  /// 32 hexadecimal digits.
  [[nodiscard]] std::string to_string() const;
  /// Errors  std::invalid_argument  not 32 hexadecimal digits
  [[nodiscard]] static Digest parse(std::string_view text);

  friend bool operator==(const Digest&, const Digest&) = default;
};

/// One row's contribution: where it was delivered, its sample's identity (with the draw if that is
/// not 0), and every field's bytes.
///
/// Source  XXH3 128-bit, through libxxhash. CUDA devices sum the same of what lies there.
class RowHasher {
 public:
  RowHasher(std::uint64_t step, std::uint64_t row, const SampleId& sample) noexcept;
  void add(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] Digest finish() const noexcept { return sum_; }

 private:
  Digest sum_;
};

/// 16 hexadecimal digits of a 64-bit hash of a text; names fingerprints of datasets and plans.
[[nodiscard]] std::string hash_text(std::string_view text);

}  // namespace penstock
