#include "testing/synthetic/synthetic_noise.hpp"

#include <utility>

namespace penstock::testing {

SmoothNoise::SmoothNoise(Random random, int width, int height, int cell)
    : width_(width),
      cell_(cell),
      columns_(width / cell + 2),
      lattice_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(height / cell + 2)),
      blend_(static_cast<std::size_t>(cell)),
      above_(static_cast<std::size_t>(width)),
      below_(static_cast<std::size_t>(width)) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < lattice_.size(); ++i) {
    word = i % 4 == 0 ? random.u32() : word >> 8;
    lattice_[i] = static_cast<float>(word & 0xFF) / 127.5F - 1.0F;
  }
  for (int i = 0; i < cell; ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(cell);
    blend_[static_cast<std::size_t>(i)] = t * t * (3.0F - 2.0F * t);
  }
}

void SmoothNoise::row(int y, std::span<float> out) {
  const int at = y / cell_;
  if (at != above_at_) {
    if (at == above_at_ + 1 && above_at_ >= 0) {
      std::swap(above_, below_);
    } else {
      spread(at, above_);
    }
    spread(at + 1, below_);
    above_at_ = at;
  }
  const float t = blend_[static_cast<std::size_t>(y % cell_)];
  for (std::size_t x = 0; x < out.size(); ++x) out[x] = above_[x] + t * (below_[x] - above_[x]);
}

void SmoothNoise::spread(int lattice_row, std::vector<float>& out) const {
  const float* point = &lattice_[static_cast<std::size_t>(lattice_row * columns_)];
  for (int x = 0; x < width_; x += cell_, ++point) {
    const int end = x + cell_ < width_ ? cell_ : width_ - x;
    const float step = point[1] - point[0];
    for (int i = 0; i < end; ++i) {
      out[static_cast<std::size_t>(x + i)] = point[0] + step * blend_[static_cast<std::size_t>(i)];
    }
  }
}

void grain_row(Random random, std::span<float> out) {
  for (float& value : out) {
    const std::uint32_t word = random.u32();
    const std::uint32_t sum =
        (word & 0xFF) + (word >> 8 & 0xFF) + (word >> 16 & 0xFF) + (word >> 24);
    value = (static_cast<float>(sum) - 510.0F) / 510.0F;
  }
}

}  // namespace penstock::testing
