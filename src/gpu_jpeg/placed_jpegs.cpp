#include "src/gpu_jpeg/placed_jpegs.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::gpu_jpeg {

namespace {

// Images of one encoder share their tables, and mostly come together.
constexpr std::size_t kLastOnes = 8;
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kParts = 7;

constexpr std::size_t aligned(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

}  // namespace

void PlacedJpegs::clear() noexcept {
  images_.clear();
  groups_.clear();
}

std::size_t PlacedJpegs::scratch_for(std::size_t scratch, std::size_t images) noexcept {
  return flag_bytes(images) + scratch + images * kPackedCodes * sizeof(LookUp) +
         kParts * kAlignment;
}

std::size_t PlacedJpegs::scratch_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const JpegGroup& group : groups_) bytes = std::max(bytes, group.end);
  return bytes;
}

void PlacedJpegs::begin_group() {
  groups_.push_back({.first = static_cast<std::uint32_t>(images_.size())});
  known_.clear();
  head_bytes_ = scratch_ = 0;
  tables_ = 0;
  blocks_ = pixels_ = 0;
}

void PlacedJpegs::add(const std::byte* image, std::uint64_t packed, std::uint64_t out) {
  PackedJpeg head;
  std::memcpy(&head, image, sizeof head);
  const std::size_t scratch = gpu_jpeg::scratch_bytes(head);
  if (groups_.empty() || scratch_ + scratch > most_scratch_) {
    end_group();
    begin_group();
  }
  scratch_ += scratch;
  PlacedJpeg placed{.packed = packed,
                    .out = out,
                    .head = head_bytes_,
                    .first_pixel = pixels_,
                    .number = static_cast<std::uint32_t>(images_.size())};
  head_bytes_ += aligned(head.head_bytes, kPackedAlignment);
  pixels_ += head.pixels();
  for (std::size_t c = 0; c < head.components; ++c) {
    placed.first_block[c] = blocks_;
    blocks_ += c == 0 ? head.mcus() * static_cast<std::uint64_t>(head.h * head.v) : head.mcus();
  }
  for (std::uint32_t i = 0; i < head.code_count; ++i) {
    const std::byte* const code = image + head.codes + i * sizeof(jpeg::CanonicalCode);
    const auto recent = std::span(known_).last(std::min(known_.size(), kLastOnes));
    const auto same = std::ranges::find_if(recent, [&](const Known& known) {
      return std::memcmp(known.code, code, sizeof(jpeg::CanonicalCode)) == 0;
    });
    if (same != recent.end()) {
      placed.table[i] = same->table;
      continue;
    }
    placed.table[i] = tables_++;
    placed.makes_tables |= 1U << i;
    known_.push_back({code, placed.table[i]});
  }
  JpegGroup& group = groups_.back();
  ++group.count;
  group.most_blocks = std::max(group.most_blocks, head.blocks());
  group.most_pixels = std::max(group.most_pixels, head.pixels());
  group.most_rows = std::max(group.most_rows, static_cast<std::uint32_t>(head.out_height));
  group.most_pieces = std::max(group.most_pieces, head.piece_count);
  group.most_codes = std::max(group.most_codes, head.code_count);
  images_.push_back(placed);
}

void PlacedJpegs::end_group() {
  if (groups_.empty()) return;
  JpegGroup& group = groups_.back();
  group.coefficients = blocks_;
  group.heads = head_bytes_;
  group.tables = tables_;
  group.pixels = pixels_;
}

void PlacedJpegs::finish() {
  end_group();
  for (JpegGroup& group : groups_) {
    std::size_t end = aligned(flag_bytes(images_.size()), kAlignment);
    const auto part = [&](std::size_t bytes) {
      const std::size_t at = end;
      end += aligned(bytes, kAlignment);
      return at;
    };
    const std::size_t blocks = group.coefficients;
    group.heads = part(group.heads);
    group.tables = part(group.tables * sizeof(LookUp));
    group.coefficients = part(blocks * jpeg::kBlockSize * sizeof(std::int16_t));
    group.parts = part(blocks);
    group.samples = part(blocks * jpeg::kBlockSize);
    group.pixels = part(group.pixels * jpeg::kPixelBytes);
    group.end = end;
  }
}

}  // namespace penstock::gpu_jpeg
