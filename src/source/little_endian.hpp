// source/little_endian: numbers as most files store them, at any address.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace penstock::source {

/// A little-endian number at a position that the caller has checked.
template <class T>
[[nodiscard]] T load_little_endian(std::span<const std::byte> bytes, std::size_t at = 0) noexcept {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace penstock::source
