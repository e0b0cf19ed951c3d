#include <penstock/core/random.hpp>

#define XXH_INLINE_ALL
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/core/row_identity.hpp"

namespace penstock {

std::string Digest::to_string() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest Digest::parse(std::string_view text) {
  Digest digest;
  const auto half = [&](std::size_t at, std::uint64_t& value) {
    const char* end = text.data() + at + 16;
    const auto [stop, error] = std::from_chars(text.data() + at, end, value, 16);
    return error == std::errc{} && stop == end;
  };
  if (text.size() != 32 || !half(0, digest.high) || !half(16, digest.low))
    throw std::invalid_argument(fmt::format("a digest is 32 hexadecimal digits, found '{}'", text));
  return digest;
}

RowHasher::RowHasher(std::uint64_t step, std::uint64_t row, const SampleId& sample) noexcept {
  const core::RowIdentity identity = core::row_identity(step, row, sample);
  add(std::as_bytes(std::span(identity.words)));
  if (sample.draw != 0) add(std::as_bytes(std::span(&sample.draw, 1)));
}

void RowHasher::add(std::span<const std::byte> bytes) noexcept {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(bytes.data(), bytes.size(), core::row_seed(sum_.low, sum_.high));
  sum_ = {hash.low64, hash.high64};
}

std::string hash_text(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace penstock
