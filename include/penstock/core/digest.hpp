// core/digest: a sum of hashes that tells whether two runs delivered the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <penstock/core/sample_id.hpp>

namespace penstock {

/// 128 bits, added modulo 2^128: the sum does not depend on the order in which rows, threads or
/// processes contribute.
///
/// Threads  a value; add up per thread, then add the sums.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  Digest& operator+=(const Digest& other) noexcept {
    const unsigned __int128 sum = value() + other.value();
    low = static_cast<std::uint64_t>(sum);
    high = static_cast<std::uint64_t>(sum >> 64);
    return *this;
  }
  [[nodiscard]] unsigned __int128 value() const noexcept {
    return static_cast<unsigned __int128>(high) << 64 | low;
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
