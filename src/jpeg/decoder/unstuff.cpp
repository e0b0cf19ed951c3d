#include "src/jpeg/decoder/unstuff.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/jpeg/pixels/rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/jpeg/decoder/unstuff.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::jpeg::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Copies bytes up to the first 0xFF; stores are rounded up to a whole vector. Returns how many.
std::size_t CopyToFF(const std::uint8_t* from, std::size_t size, std::uint8_t* to) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, std::uint8_t{0xFF});
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto bytes = hn::LoadU(d, from + i);
    hn::StoreU(bytes, d, to + i);
    const std::intptr_t found = hn::FindFirstTrue(d, hn::Eq(bytes, ff));
    if (found >= 0) return i + static_cast<std::size_t>(found);
  }
  for (; i < size && from[i] != 0xFF; ++i) to[i] = from[i];
  return i;
}

// Most 0xFF of a scan are data: these are told from markers many at a time.
std::size_t FindMarkers(const std::uint8_t* bytes, std::size_t size, std::uint32_t* at,
                        std::size_t most) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto ff = hn::Set(d, std::uint8_t{0xFF});
  std::size_t found = 0;
  std::size_t i = 0;
  for (; found < most && i + lanes < size; i += lanes) {
    const auto marker = hn::AndNot(hn::Eq(hn::LoadU(d, bytes + i + 1), hn::Zero(d)),
                                   hn::Eq(hn::LoadU(d, bytes + i), ff));
    if (HWY_LIKELY(hn::AllFalse(d, marker))) continue;
    std::uint8_t bytes_of[8] = {};
    (void)hn::StoreMaskBits(d, marker, bytes_of);
    std::uint64_t bits;
    std::memcpy(&bits, bytes_of, sizeof(bits));
    if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
    for (; bits != 0 && found < most; bits &= bits - 1)
      at[found++] =
          static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(std::countr_zero(bits));
  }
  for (; found < most && i + 1 < size; ++i)
    if (bytes[i] == 0xFF && bytes[i + 1] != 0) at[found++] = static_cast<std::uint32_t>(i);
  return found;
}

}  // namespace penstock::jpeg::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::jpeg {
namespace {

HWY_EXPORT(CopyToFF);
HWY_EXPORT(FindMarkers);

// A vector's stores reach that far behind the data.
constexpr std::size_t kVectorBytes = 64;
static_assert(kUnstuffSlack >= kVectorBytes);

}  // namespace

void Unstuffed::read(std::span<const std::uint8_t> bytes, bool restarts) {
  begin(bytes.size());
  add(bytes, restarts);
  end();
}

void Unstuffed::begin(std::size_t most) {
  // The copy is never longer than its source.
  if (bytes_.size() < most + kUnstuffSlack) bytes_.resize(most + kUnstuffSlack);
  segments_.clear();
  left_out_.clear();
  cursor_ = 0;
  size_ = 0;
}

void Unstuffed::add(std::span<const std::uint8_t> bytes, bool restarts) {
  std::uint8_t* const out = bytes_.data();
  std::size_t to = size_;
  std::size_t at = 0;
  Segment segment{.begin = static_cast<std::uint32_t>(to)};
  for (;;) {
    // Not through a pointer that is kept: before the first call it is one that looks at the CPU.
    const std::size_t copied =
        HWY_DYNAMIC_DISPATCH(CopyToFF)(bytes.data() + at, bytes.size() - at, out + to);
    at += copied;
    to += copied;
    segment.ended_by = SegmentEnd::file;
    // A last byte 0xFF is half a marker.
    if (at + 1 >= bytes.size()) break;
    const std::uint8_t next = bytes[at + 1];
    at += 2;
    if (next == 0) {
      out[to++] = 0xFF;
      left_out_.push_back(static_cast<std::uint32_t>(to));
      continue;
    }
    // Fill bytes: it is not known how far libjpeg-turbo reads here.
    if (next == 0xFF) break;
    segment.ended_by = SegmentEnd::marker;
    if ((next & 0xF8) != 0xD0) break;
    segment.ended_by = SegmentEnd::restart;
    segment.restart = next & 7;
    if (!restarts) break;
    segment.end = static_cast<std::uint32_t>(to);
    segments_.push_back(segment);
    segment.begin = segment.end;
    left_out_.insert(left_out_.end(), 2, static_cast<std::uint32_t>(to));
  }
  segment.end = static_cast<std::uint32_t>(to);
  segments_.push_back(segment);
  size_ = to;
}

void Unstuffed::end() { std::memset(bytes_.data() + size_, 0, kUnstuffSlack); }

std::size_t find_markers(std::span<const std::uint8_t> bytes, std::span<std::uint32_t> at) {
  return HWY_DYNAMIC_DISPATCH(FindMarkers)(bytes.data(), bytes.size(), at.data(), at.size());
}

std::size_t Unstuffed::raw_position(std::size_t position) noexcept {
  while (cursor_ > 0 && left_out_[cursor_ - 1] > position) --cursor_;
  while (cursor_ < left_out_.size() && left_out_[cursor_] <= position) ++cursor_;
  return position + cursor_;
}

std::size_t Unstuffed::position_of(std::size_t raw) noexcept {
  // The n-th byte that was left out was n bytes behind its position.
  while (cursor_ > 0 && left_out_[cursor_ - 1] + cursor_ > raw) --cursor_;
  while (cursor_ < left_out_.size() && left_out_[cursor_] + cursor_ + 1 <= raw) ++cursor_;
  return raw - std::min(cursor_, raw);
}

void Unstuffed::trim() { jpeg::trim(bytes_); }

}  // namespace penstock::jpeg
#endif
