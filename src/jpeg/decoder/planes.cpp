#include "src/jpeg/decoder/planes.hpp"

#include <algorithm>
#include <cstring>

#include "src/jpeg/decoder/pixels.hpp"
#include "src/jpeg/decoder/small_idct.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace penstock::jpeg {
namespace {

// Beside each row, on both sides: the repeated edge, and what vectors read.
constexpr std::size_t kMargin = kSampleSlack;
constexpr int kMaxLuma = 4;  // blocks of the first component in an MCU

}  // namespace

std::size_t JpegPlanes::Plane::offset(int y) const noexcept {
  return static_cast<std::size_t>(y - first) * stride + kMargin;
}

void JpegPlanes::begin(const JpegHeader& header, const RegionPlan& plan, int band, int kept) {
  layout_ = McuLayout(header);
  first_column_ = plan.first_column;
  last_column_ = plan.last_column;
  right_edge_ = plan.last_column == header.mcus_per_row();
  band_ = band;
  kept_ = kept;
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    Plane& plane = planes_[c];
    plane.h = c == 0 ? header.h : 1;
    plane.v = c == 0 ? header.v : 1;
    plane.side = c == 0 ? plan.luma_side : plan.chroma_side;
    plane.width = plan.samples_of(header.width, plane.h * plane.side, header.h);
    plane.stride = static_cast<std::size_t>((last_column_ - first_column_) * plane.side * plane.h) +
                   2 * kMargin;
    plane.first = plane.next = -1;
    const std::size_t size =
        plane.stride * static_cast<std::size_t>(band * plane.side * plane.v + kept);
    if (plane.samples.size() < size) plane.samples.resize(size);
    quant_[c].zigzag = header.quant[header.component[c].quant];
  }
  for (int i = 0; i < kChunkMcus; ++i) {
    for (int b = 0; b < layout_.luma; ++b)
      luma_numbers_[static_cast<std::size_t>(b / header.h)]
                   [static_cast<std::size_t>(i * header.h + b % header.h)] =
                       static_cast<std::uint8_t>(i * layout_.blocks + b);
    for (int c = 0; c < 2; ++c)
      chroma_numbers_[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(i * layout_.blocks + layout_.luma + c);
  }
}

void JpegPlanes::move_to(int row) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(layout_.components); ++c) {
    Plane& plane = planes_[c];
    const int top = row * plane.side * plane.v;
    const int kept = plane.next == top ? std::min(kept_, top - plane.first) : 0;
    std::memmove(plane.samples.data(),
                 plane.samples.data() + static_cast<std::size_t>(top - kept - plane.first) *
                                            plane.stride * static_cast<std::size_t>(kept > 0),
                 static_cast<std::size_t>(kept) * plane.stride);
    plane.first = top - kept;
    plane.next = (row + band_) * plane.side * plane.v;
  }
}

void JpegPlanes::sum_dc(const Chunk& chunk, int mcus, std::array<std::int16_t, 3>& dc,
                        std::int16_t* luma, std::int16_t* chroma) const {
  std::array<std::uint32_t, 3> sum{};
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] = static_cast<std::uint32_t>(dc[c]);
  const Block* block = chunk.data();
  const auto next = [&](std::size_t c) {
    sum[c] += static_cast<std::uint32_t>(extend(block->raw[0], block->size[0]));
    ++block;
    return static_cast<std::int16_t>(sum[c]);
  };
  // The rows of luma blocks are kChunkMcus * kMaxLuma apart, so that two MCUs' do not mix.
  const int h = planes_[0].h;
  for (int i = 0; i < mcus; ++i) {
    for (int b = 0; b < layout_.luma; ++b)
      luma[b / h * kChunkMcus * kMaxLuma + i * h + b % h] = next(0);
    for (int c = 1; c < layout_.components; ++c)
      chroma[(c - 1) * kChunkMcus + i] = next(static_cast<std::size_t>(c));
  }
  for (std::size_t c = 0; c < sum.size(); ++c) dc[c] = static_cast<std::int16_t>(sum[c]);
}

bool JpegPlanes::put(const Chunk& chunk, int first, int mcus, int column, int row,
                     std::array<std::int16_t, 3>& dc) {
  std::int16_t luma[2 * kChunkMcus * kMaxLuma];
  std::int16_t chroma[2 * kChunkMcus];
  sum_dc(chunk, mcus, dc, luma, chroma);
  if (first == mcus) return true;  // all of it is left of the region
  BlockRow blocks;
  blocks.blocks = chunk.data();
  const auto transform = [&](std::size_t c, int v, const std::uint8_t* numbers,
                             const std::int16_t* values) {
    Plane& plane = planes_[c];
    blocks.number = numbers + first * plane.h;
    blocks.dc = values + first * plane.h;
    blocks.count = (mcus - first) * plane.h;
    const int y = (row * plane.v + v) * plane.side;
    std::uint8_t* const out =
        plane.samples.data() + plane.offset(y) +
        static_cast<std::size_t>((column - first_column_) * plane.side * plane.h);
    const auto stride = static_cast<std::ptrdiff_t>(plane.stride);
    if (plane.side != kBlockSide)
      return small_inverse_dct(blocks, quant_[c], plane.side, out, stride);
    inverse_dct(blocks, quant_[c], out, stride);
    return true;
  };
  bool done = true;
  for (int v = 0; v < planes_[0].v; ++v)
    done &= transform(0, v, luma_numbers_[static_cast<std::size_t>(v)].data(),
                      luma + v * kChunkMcus * kMaxLuma);
  for (int c = 1; c < layout_.components; ++c)
    done &= transform(static_cast<std::size_t>(c), 0,
                      chroma_numbers_[static_cast<std::size_t>(c - 1)].data(),
                      chroma + (c - 1) * kChunkMcus);
  return done;
}

void JpegPlanes::repeat_edges(int row) {
  for (std::size_t c = 1; c < static_cast<std::size_t>(layout_.components); ++c) {
    Plane& plane = planes_[c];
    const int end = plane.width - first_column_ * plane.side * plane.h;
    for (int y = row * plane.side * plane.v; y < (row + 1) * plane.side * plane.v; ++y) {
      std::uint8_t* const samples = plane.samples.data() + plane.offset(y);
      if (first_column_ == 0) samples[-1] = samples[0];
      if (right_edge_) samples[end] = samples[end - 1];
    }
  }
}

void JpegPlanes::trim() {
  for (Plane& plane : planes_) jpeg::trim(plane.samples);
}

}  // namespace penstock::jpeg
