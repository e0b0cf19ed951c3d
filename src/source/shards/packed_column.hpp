// source/shards/packed_column: many numbers in as few bytes each as the widest of them needs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace penstock::source {

static_assert(std::endian::native == std::endian::little, "columns are stored as little-endian");

/// A view of `count` numbers, `width` bytes each, that all lie `base` higher than stored. A column
/// of equal numbers has width 0 and takes no room at all.
///
/// Owns  nothing. Behind the last number kPadding bytes must be readable.
class PackedColumn {
 public:
  static constexpr std::size_t kPadding = 8;
  /// The base, and the bytes that each number needs above it.
  struct Packing {
    std::uint64_t base = 0;
    std::uint32_t width = 0;
  };

  PackedColumn() = default;
  PackedColumn(const std::byte* data, std::uint64_t count, Packing packing) noexcept
      : data_(data),
        count_(count),
        base_(packing.base),
        width_(packing.width),
        mask_(packing.width == 0 ? 0 : ~std::uint64_t{0} >> (64 - 8 * packing.width)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  /// Whether there may be so many different numbers. Of equal ones there may be any count: they take no room.
  [[nodiscard]] bool may_differ() const noexcept { return count_ < 2 || mask_ != 0; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    if (mask_ == 0) return base_;
    std::uint64_t word;
    std::memcpy(&word, data_ + i * width_, sizeof word);
    return base_ + (word & mask_);
  }

  [[nodiscard]] static Packing packing_of(std::span<const std::uint64_t> values) noexcept {
    if (values.empty()) return {};
    std::uint64_t low = values.front();
    std::uint64_t high = low;
    for (const std::uint64_t value : values) {
      low = value < low ? value : low;
      high = value > high ? value : high;
    }
    const auto bits = static_cast<std::uint32_t>(std::bit_width(high - low));
    return {low, (bits + 7) / 8};
  }
  /// Writes the numbers to `at`, which has values.size() * packing.width bytes.
  static void pack(std::span<const std::uint64_t> values, Packing packing, std::byte* at) noexcept {
    if (packing.width == 0) return;
    for (const std::uint64_t value : values) {
      const std::uint64_t above = value - packing.base;
      std::memcpy(at, &above, packing.width);
      at += packing.width;
    }
  }

 private:
  const std::byte* data_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t base_ = 0;
  std::uint32_t width_ = 0;
  std::uint64_t mask_ = 0;
};

}  // namespace penstock::source
