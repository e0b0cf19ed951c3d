#include "src/transform/resize.hpp"

#include <algorithm>
#include <new>

#include "src/transform/resize_kernels.hpp"

namespace penstock::transform {

void Resize::plan(int source_width, int source_height, const Region& box, ImageSize output,
                  bool mirror, ResizeFilter filter) {
  filter_ = filter;
  vertical_.plan(source_height, box.y, box.height, output.height, filter);
  horizontal_.plan(source_width, box.x, box.width, output.width, filter);
  plan_pairs(mirror);
}

PixelRect Resize::source() const noexcept {
  return {horizontal_.begin(), vertical_.begin(), horizontal_.end() - horizontal_.begin(),
          vertical_.end() - vertical_.begin()};
}

void Resize::plan_pairs(bool mirror) {
  const int width = horizontal_.output();
  row_pairs_ = (horizontal_.end() - horizontal_.begin() + 1) / 2;
  pairs_ = 1;
  for (int i = 0; i < width; ++i) {
    const int at = horizontal_.first(i) - horizontal_.begin();
    pairs_ = std::max(pairs_, (at % 2 + horizontal_.count(i) + 1) / 2);
  }
  pair_at_.resize(static_cast<std::size_t>(width));
  pair_weights_.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(pairs_), 0);
  for (int i = 0; i < width; ++i) {
    const int from = mirror ? width - 1 - i : i;
    const int at = horizontal_.first(from) - horizontal_.begin();
    pair_at_[static_cast<std::size_t>(i)] = at / 2;
    std::uint32_t* pairs =
        pair_weights_.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(pairs_);
    const std::int16_t* weights = horizontal_.weights(from);
    for (int k = 0; k < horizontal_.count(from); ++k) {
      const int lane = at % 2 + k;
      pairs[lane / 2] |= std::uint32_t{static_cast<std::uint16_t>(weights[k])} << (lane % 2 * 16);
    }
  }
  // Room for a vector's spill behind the row, and for weightless pairs: those must hold numbers.
  const std::size_t size = (static_cast<std::size_t>(row_pairs_ + pairs_) + 8) * kGroup;
  if (size > between_size_) {
    between_ = hwy::AllocateAligned<std::int16_t>(size);
    between_size_ = between_ ? size : 0;
    if (!between_) throw std::bad_alloc();
    std::fill_n(between_.get(), size, std::int16_t{0});
  }
}

void Resize::begin(std::uint8_t* out, std::ptrdiff_t stride) noexcept {
  out_ = out;
  stride_ = stride;
  step_ = 0;
  steps_ = (vertical_.output() + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
}

bool Resize::step(jpeg::RowSource& rows) {
  const int i = row_of_step();
  const int lane = step_ % kRowsTogether;
  const int first = vertical_.first(i);
  const int count = vertical_.count(i);
  const std::uint8_t* const* source = rows.rows(first, first + count);
  if (source == nullptr) return false;
  sum_rows(filter_, source, vertical_.weights(i), count, row_pairs_, lane, between_.get());
  if (lane == kRowsTogether - 1) {
    const PairTable table{pair_at_.data(), pair_weights_.data(), pairs_};
    std::uint8_t* first_row = out_ + (step_ - lane) * stride_;
    sum_columns(filter_, between_.get(), table, horizontal_.output(), first_row,
                out_ + i * stride_);
  }
  ++step_;
  return true;
}

void Resize::trim() {
  if (between_size_ * sizeof(std::int16_t) > jpeg::kScratchKept) {
    between_.reset();
    between_size_ = 0;
  }
}

}  // namespace penstock::transform
