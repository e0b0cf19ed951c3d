#include "src/source/tfrecord/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace penstock::source {

namespace {

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Table make_tables() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // bits reversed
  Table tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

constexpr Table kTables = make_tables();

std::uint64_t load_word(const std::byte* at) noexcept {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#if defined(__x86_64__)

bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> bytes,
                                                               std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    wide = _mm_crc32_u64(wide, load_word(bytes.data()));
  }
  crc = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(byte));
  return crc;
}

#elif defined(__aarch64__) && defined(__linux__)

bool has_instruction() noexcept { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

__attribute__((target("+crc"))) std::uint32_t by_instruction(std::span<const std::byte> bytes,
                                                             std::uint32_t crc) noexcept {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    crc = __crc32cd(crc, load_word(bytes.data()));
  }
  for (const std::byte byte : bytes) crc = __crc32cb(crc, std::to_integer<std::uint8_t>(byte));
  return crc;
}

#else

bool has_instruction() noexcept { return false; }
std::uint32_t by_instruction(std::span<const std::byte>, std::uint32_t crc) noexcept { return crc; }

#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = load_word(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][word >> (8 * i) & 0xFF];
  }
  for (const std::byte byte : bytes) {
    crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
  }
  return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  if (!has_instruction()) return crc32c_by_tables(bytes, before);
  return ~by_instruction(bytes, ~before);
}

}  // namespace penstock::source
