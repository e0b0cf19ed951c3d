#include <penstock/core/digest.hpp>

#define XXH_INLINE_ALL
#include <array>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>
#include <xxhash.h>

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
  const std::array<std::uint64_t, 4> identity{step, row, sample.number,
                                              std::uint64_t{sample.epoch} << 32 | sample.source};
  add(std::as_bytes(std::span(identity)));
  // Where nothing is drawn more than once, digests are those of the time before there were draws.
  if (sample.draw != 0) add(std::as_bytes(std::span(&sample.draw, 1)));
}

void RowHasher::add(std::span<const std::byte> bytes) noexcept {
  // Chained through the seed, so that equal bytes in another field or after another identity
  // differ.
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(),
                                                   sum_.low ^ (sum_.high << 1 | sum_.high >> 63));
  sum_ = {hash.low64, hash.high64};
}

std::string hash_text(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace penstock
