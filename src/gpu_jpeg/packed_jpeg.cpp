#include "src/gpu_jpeg/packed_jpeg.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "src/jpeg/decoder/entry_points.hpp"
#include "src/jpeg/pixels/rows.hpp"

namespace penstock::gpu_jpeg {

namespace {

// Positions of bits are kept in 32 bits.
constexpr std::size_t kMostBytes = std::size_t{1} << 28;
// Pieces are sorted by their lengths, in units of some symbols.
constexpr std::size_t kLengths = 256;
constexpr std::uint64_t kLengthBits = 96;
// A thread looks that far ahead of what it decodes.
constexpr std::size_t kSlackWords = 4;

constexpr std::uint32_t aligned(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + kPackedAlignment - 1) / kPackedAlignment *
                                    kPackedAlignment);
}

template <class T>
void copy(const std::vector<T>& from, std::byte* to) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

}  // namespace

std::size_t scratch_bytes(const PackedJpeg& image) noexcept {
  constexpr std::size_t kOfBlock = jpeg::kBlockSize * (sizeof(std::int16_t) + 1) + 1;
  return image.blocks() * kOfBlock + image.pixels() * jpeg::kPixelBytes + aligned(image.head_bytes);
}

std::size_t JpegPacker::prepare(const transform::PackRequest& request) {
  const std::span bytes = request.bytes;
  if (bytes.size() > kMostBytes || jpeg::read_jpeg_header(bytes, header_)) return 0;
  const Region& box = request.box;
  vertical_.plan(header_.height, box.y, box.height, request.size.height, request.filter);
  horizontal_.plan(header_.width, box.x, box.width, request.size.width, request.filter);
  const PixelRect rect{horizontal_.begin(), vertical_.begin(),
                       horizontal_.end() - horizontal_.begin(),
                       vertical_.end() - vertical_.begin()};
  plan_ = jpeg::RegionPlan(header_, rect, request.chroma, 1);
  head_ = {};
  head_.components = static_cast<std::uint8_t>(header_.components);
  head_.is_ycc = header_.color == jpeg::JpegColor::ycc ? 1 : 0;
  head_.filter = request.filter;
  head_.h = plan_.h;
  head_.v = plan_.v;
  head_.smooth_h = plan_.smooth_h ? 1 : 0;
  head_.smooth_v = plan_.smooth_v ? 1 : 0;
  head_.chroma_width = jpeg::RegionPlan::samples_of(header_.width, jpeg::kBlockSide, header_.h);
  head_.chroma_height = jpeg::RegionPlan::samples_of(header_.height, jpeg::kBlockSide, header_.v);
  head_.mcus_per_row = header_.mcus_per_row();
  head_.first_column = plan_.first_column;
  head_.columns = plan_.last_column - plan_.first_column;
  head_.first_row = plan_.first_row;
  head_.rows = plan_.last_row - plan_.first_row;
  head_.x = rect.x;
  head_.y = rect.y;
  head_.width = rect.width;
  head_.height = rect.height;
  head_.out_width = request.size.width;
  head_.out_height = request.size.height;
  if (scratch_bytes(head_) > most_scratch_) return 0;
  const std::span scan(reinterpret_cast<const std::uint8_t*>(bytes.data()) + header_.scan,
                       bytes.size() - header_.scan);
  if (!jpeg::use_index(request.index, header_, plan_, scan, unstuffed_, points_, markers_))
    return 0;
  if (!find_codes()) return 0;
  find_pieces();
  places_.clear();
  weights_.clear();
  add_axis(head_.vertical, vertical_, rect.y, false);
  add_axis(head_.horizontal, horizontal_, rect.x, request.mirror);
  lay_out();
  return scratch_bytes(head_) > most_scratch_ ? 0 : head_.bytes;
}

bool JpegPacker::find_codes() {
  std::array<const jpeg::HuffmanSpec*, kPackedCodes> known{};
  codes_.clear();
  const auto number_of = [&](const jpeg::HuffmanSpec& spec, bool dc) {
    for (std::size_t i = 0; i < codes_.size(); ++i)
      if (known[i] == &spec) return i;
    known[codes_.size()] = &spec;
    return codes_.emplace_back().set(spec, dc) ? codes_.size() - 1 : kPackedCodes;
  };
  for (std::size_t c = 0; c < head_.components; ++c) {
    const jpeg::JpegComponent& component = header_.component[c];
    const std::size_t dc = number_of(header_.dc[component.dc], true);
    if (dc == kPackedCodes) return false;
    const std::size_t ac = number_of(header_.ac[component.ac], false);
    if (ac == kPackedCodes) return false;
    head_.code[c][0] = static_cast<std::uint8_t>(dc);
    head_.code[c][1] = static_cast<std::uint8_t>(ac);
  }
  head_.code_count = static_cast<std::uint32_t>(codes_.size());
  return true;
}

// The region's rows of MCUs, cut at every checkpoint; the longest pieces first.
void JpegPacker::find_pieces() {
  pieces_.clear();
  lengths_.clear();
  std::size_t cursor = 0;
  for (std::int64_t row = plan_.first_row; row < plan_.last_row; ++row) {
    std::int64_t begin = row * head_.mcus_per_row + plan_.first_column;
    const std::int64_t end = row * head_.mcus_per_row + plan_.last_column;
    while (begin < end) {
      while (cursor + 1 < points_.size() && points_[cursor + 1].mcu <= begin) ++cursor;
      const jpeg::Checkpoint& from = points_[cursor];
      const jpeg::Checkpoint* const next =
          cursor + 1 < points_.size() ? &points_[cursor + 1] : nullptr;
      const std::int64_t until = next != nullptr ? std::min(next->mcu, end) : end;
      PackedPiece piece{.bit = static_cast<std::uint32_t>(from.at.bit),
                        .first = static_cast<std::uint32_t>(from.mcu),
                        .begin = static_cast<std::uint32_t>(begin),
                        .end = static_cast<std::uint32_t>(until),
                        .end_bit = static_cast<std::uint32_t>(8 * unstuffed_.size()),
                        .slack = UINT32_MAX};
      if (next != nullptr && next->mcu == until) {
        const bool at_marker =
            header_.restart_interval > 0 && next->mcu % header_.restart_interval == 0;
        piece.end_bit = static_cast<std::uint32_t>(next->at.bit);
        piece.slack = at_marker ? 7 : 0;
        std::ranges::copy(next->at.dc, piece.then_dc);
      }
      std::ranges::copy(from.at.dc, piece.dc);
      pieces_.push_back(piece);
      std::uint64_t bits = piece.end_bit - piece.bit;
      if (next != nullptr && until < next->mcu)
        bits = (next->at.bit - from.at.bit) * static_cast<std::uint64_t>(until - from.mcu) /
               static_cast<std::uint64_t>(next->mcu - from.mcu);
      lengths_.push_back(static_cast<std::uint8_t>(
          kLengths - 1 - std::min<std::uint64_t>(bits / kLengthBits, kLengths - 1)));
      begin = until;
    }
  }
  head_.piece_count = static_cast<std::uint32_t>(pieces_.size());
  sort_pieces();
}

// Neighbours take about as long then: a GPU's threads wait for those of their warp.
void JpegPacker::sort_pieces() {
  std::array<std::uint32_t, kLengths + 1> places{};
  for (const std::uint8_t length : lengths_) ++places[length + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  sorted_.resize(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) sorted_[places[lengths_[i]]++] = pieces_[i];
  pieces_.swap(sorted_);
}

void JpegPacker::add_axis(PackedAxis& packed, const transform::ResizeAxis& axis, int from,
                          bool mirror) {
  packed = {.places = static_cast<std::uint32_t>(places_.size() * sizeof places_[0]),
            .weights = static_cast<std::uint32_t>(weights_.size() * sizeof weights_[0]),
            .taps = axis.taps()};
  for (int i = 0; i < axis.output(); ++i) {
    const int of = mirror ? axis.output() - 1 - i : i;
    places_.push_back(axis.first(of) - from);
    weights_.insert(weights_.end(), axis.weights(of), axis.weights(of) + axis.taps());
  }
}

void JpegPacker::lay_out() {
  std::uint32_t end = 0;
  const auto part = [&](std::size_t bytes) {
    const std::uint32_t at = end;
    end += aligned(bytes);
    return at;
  };
  (void)part(sizeof head_);
  const std::uint32_t places = part(places_.size() * sizeof places_[0]);
  const std::uint32_t weights = part(weights_.size() * sizeof weights_[0]);
  for (PackedAxis* axis : {&head_.vertical, &head_.horizontal}) {
    axis->places += places;
    axis->weights += weights;
  }
  head_.head_bytes = end;
  head_.codes = part(codes_.size() * sizeof codes_[0]);
  head_.quants = part(head_.components * sizeof(PackedQuant));
  head_.pieces = part(pieces_.size() * sizeof pieces_[0]);
  head_.words = static_cast<std::uint32_t>((unstuffed_.size() + 3) / 4 + kSlackWords);
  head_.data = part(std::size_t{4} * head_.words);
  head_.bytes = end;
}

void JpegPacker::write(std::byte* to) const noexcept {
  std::memcpy(to, &head_, sizeof head_);
  copy(places_, to + head_.vertical.places);
  copy(weights_, to + head_.vertical.weights);
  copy(codes_, to + head_.codes);
  for (std::size_t c = 0; c < head_.components; ++c) {
    const auto& steps = header_.quant[header_.component[c].quant];
    static_assert(sizeof steps == sizeof(PackedQuant));
    std::memcpy(to + head_.quants + c * sizeof steps, steps.data(), sizeof steps);
  }
  copy(pieces_, to + head_.pieces);
  std::memcpy(to + head_.data, unstuffed_.data(), unstuffed_.size());
  std::memset(to + head_.data + unstuffed_.size(), 0, head_.bytes - head_.data - unstuffed_.size());
}

bool JpegPacker::pack(const transform::PackRequest& request, std::span<std::byte> place) {
  const std::span to = aligned_place(place);
  const std::size_t bytes = prepare(request);
  const bool fits = bytes != 0 && bytes <= to.size();
  if (fits) write(to.data());
  trim();
  return fits;
}

void JpegPacker::trim() {
  unstuffed_.trim();
  jpeg::trim(pieces_);
  jpeg::trim(sorted_);
  jpeg::trim(points_);
  jpeg::trim(markers_);
}

std::span<std::byte> aligned_place(std::span<std::byte> place) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(place.data());
  const std::size_t skipped = -at % kPackedAlignment;
  return place.subspan(std::min(skipped, place.size()));
}

}  // namespace penstock::gpu_jpeg
