#include "src/source/tfrecord/crc32c.hpp"

#include <array>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace penstock::source {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32c, GivesTheValuesOfRfc3720) {
  const std::vector<std::byte> zeros(32);
  const std::vector<std::byte> ones(32, std::byte{0xFF});
  std::vector<std::byte> rising(32);
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = std::byte(i);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);
  EXPECT_EQ(crc32c(ones), 0x62A8AB43U);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, IsTheSameByInstructionAndByTablesAtEveryLengthAndAlignment) {
  std::mt19937 draw(3);
  std::vector<std::byte> bytes(400);
  for (std::byte& byte : bytes) byte = std::byte(draw());
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; size + begin <= bytes.size(); size += size < 40 ? 1 : 37) {
      const auto part = std::span(std::as_const(bytes)).subspan(begin, size);
      EXPECT_EQ(crc32c(part), crc32c_by_tables(part)) << begin << " " << size;
    }
  }
}

TEST(Crc32c, GoesOnFromWhatCameBefore) {
  const auto all = bytes_of("a record in three parts");
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
  }
}

TEST(Crc32c, MasksAsTfRecordDoes) {
  // The first 12 bytes of golden/tensorflow.tfrecord: the length 0x8d, then its checksum.
  const std::array<std::byte, 8> length{std::byte{0x8D}};
  EXPECT_EQ(masked_crc(crc32c(length)), 0x61800F3FU);
}

}  // namespace
}  // namespace penstock::source
