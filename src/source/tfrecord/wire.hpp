// source/tfrecord/wire: protobuf's wire format, read field by field and never beyond its bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::source {

/// Bytes in memory, as an input of WireReader. FileWindow is another.
class BytesInput {
 public:
  explicit BytesInput(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset, std::size_t size) noexcept {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, std::min<std::uint64_t>(size, bytes_.size() - offset));
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Positions of an input, one behind the last included.
struct WireRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
};

enum class WireType : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2,  ///< a message, a string, bytes or packed numbers
  group = 3,  ///< obsolete; passed over
  end_group = 4,
  fixed32 = 5,
};

/// The fields of one message.
///
/// Source  protobuf.dev, Encoding.
template <class Input>
class WireReader {
 public:
  WireReader(Input& input, WireRange range) noexcept
      : input_(input), at_(range.begin), end_(range.end) {}

  /// Advances to the next field; false at the end, and where the bytes are invalid (see ok()).
  [[nodiscard]] bool next() {
    while (ok_ && at_ < end_) {
      if (!read_field()) return ok_ = false;
      if (depth_ == 0 && type_ != WireType::end_group) return true;
    }
    if (depth_ > 0) ok_ = false;
    return false;
  }

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] WireType type() const noexcept { return type_; }
  [[nodiscard]] bool is(std::uint64_t number, WireType type) const noexcept {
    return number_ == number && type_ == type;
  }
  /// Of WireType::varint, fixed64 and fixed32.
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  /// Of WireType::bytes.
  [[nodiscard]] WireRange range() const noexcept { return range_; }

  /// One number without a tag, as packed fields hold them.
  [[nodiscard, gnu::always_inline]] bool next_varint(std::uint64_t& value) {
    if (at_ >= end_) return false;
    if (!read_varint(value)) return ok_ = false;
    return true;
  }

 private:
  // 10 bytes of 7 bits, of which the last may only hold one. Inlined always: as a call, packed numbers take a third longer,
  // and compilers stop inlining it where a file has many readers.
  [[gnu::always_inline]] bool read_varint(std::uint64_t& value) {
    constexpr std::size_t kLongest = 10;
    const auto bytes =
        input_.at(at_, static_cast<std::size_t>(std::min<std::uint64_t>(kLongest, end_ - at_)));
    value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
      if (i == kLongest - 1 && byte > 1) return false;
      value |= (byte & 0x7F) << (7 * i);
      if (byte < 0x80) {
        at_ += i + 1;
        return true;
      }
    }
    return false;
  }

  bool read_fixed(std::size_t size) {
    if (end_ - at_ < size) return false;
    const auto bytes = input_.at(at_, size);
    if (bytes.size() < size) return false;
    value_ = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value_ |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    }
    at_ += size;
    return true;
  }

  bool read_field() {
    std::uint64_t tag = 0;
    if (!read_varint(tag)) return false;
    number_ = tag >> 3;
    constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 29) - 1;
    if (number_ == 0 || number_ > kMaxNumber) return false;
    type_ = static_cast<WireType>(tag & 7);
    switch (type_) {
      case WireType::varint:
        return read_varint(value_);
      case WireType::fixed64:
        return read_fixed(8);
      case WireType::fixed32:
        return read_fixed(4);
      case WireType::bytes: {
        std::uint64_t size = 0;
        if (!read_varint(size) || size > end_ - at_) return false;
        range_ = {at_, at_ + size};
        at_ += size;
        return true;
      }
      case WireType::group: {
        constexpr int kDeepest = 100;  // as protobuf's own limit
        return ++depth_ <= kDeepest;
      }
      case WireType::end_group:
        return --depth_ >= 0;
    }
    return false;
  }

  Input& input_;
  std::uint64_t at_;
  std::uint64_t end_;
  int depth_ = 0;  // of groups
  std::uint64_t number_ = 0;
  WireType type_{};
  std::uint64_t value_ = 0;
  WireRange range_;
  bool ok_ = true;
};

}  // namespace penstock::source
