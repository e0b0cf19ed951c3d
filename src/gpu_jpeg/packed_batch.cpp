#include "src/gpu_jpeg/packed_batch.hpp"

#include <algorithm>
#include <cstring>

#include "src/jpeg/decoder/idct.hpp"
#include "src/jpeg/index/entry_points.hpp"

namespace penstock::gpu_jpeg {

namespace {

// Positions of bits are kept in 32 bits.
constexpr std::size_t kMostBytes = std::size_t{1} << 28;
// A thread looks that far ahead of what it decodes.
constexpr std::size_t kSlackWords = 4;
// Images of one encoder share their tables, and mostly come together.
constexpr std::size_t kLastOnes = 8;
constexpr std::size_t kAlignment = 256;

constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool same(const jpeg::HuffmanSpec& a, const jpeg::HuffmanSpec& b) {
  return a.counts == b.counts && a.symbols == b.symbols;
}

template <class T>
void copy(const std::vector<T>& from, std::byte* to) noexcept {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

}  // namespace

bool PackedBatch::add(std::span<const std::byte> bytes, const JpegIndex& index,
                      const PackedCrop& crop) {
  if (bytes.size() > kMostBytes || jpeg::read_jpeg_header(bytes, header_)) return false;
  vertical_.plan(header_.height, crop.box.y, crop.box.height, output_.height, filter_);
  horizontal_.plan(header_.width, crop.box.x, crop.box.width, output_.width, filter_);
  const PixelRect rect{horizontal_.begin(), vertical_.begin(),
                       horizontal_.end() - horizontal_.begin(),
                       vertical_.end() - vertical_.begin()};
  plan_ = jpeg::RegionPlan(header_, rect, chroma_, 1);
  const std::span scan(reinterpret_cast<const std::uint8_t*>(bytes.data()) + header_.scan,
                       bytes.size() - header_.scan);
  if (!jpeg::use_index(index, header_, plan_, scan, unstuffed_, points_, markers_)) return false;
  PackedImage image;
  if (!add_codes(image)) return false;
  add_quants(image);
  image.components = header_.components;
  image.is_ycc = header_.color == jpeg::JpegColor::ycc ? 1 : 0;
  image.h = plan_.h;
  image.v = plan_.v;
  image.smooth_h = plan_.smooth_h ? 1 : 0;
  image.smooth_v = plan_.smooth_v ? 1 : 0;
  image.chroma_width = jpeg::RegionPlan::samples_of(header_.width, jpeg::kBlockSide, header_.h);
  image.chroma_height = jpeg::RegionPlan::samples_of(header_.height, jpeg::kBlockSide, header_.v);
  image.mcus_per_row = header_.mcus_per_row();
  image.first_column = plan_.first_column;
  image.columns = plan_.last_column - plan_.first_column;
  image.first_row = plan_.first_row;
  image.rows = plan_.last_row - plan_.first_row;
  image.x = rect.x;
  image.y = rect.y;
  image.width = rect.width;
  image.height = rect.height;
  image.vertical = add_axis(vertical_, rect.y, false);
  image.horizontal = add_axis(horizontal_, rect.x, crop.mirror);
  const std::uint64_t before = blocks_;
  const auto mcus =
      static_cast<std::uint64_t>(image.columns) * static_cast<std::uint64_t>(image.rows);
  for (int c = 0; c < image.components; ++c) {
    image.first_block[c] = blocks_;
    blocks_ += c == 0 ? mcus * static_cast<std::uint64_t>(image.h * image.v) : mcus;
  }
  image.first_pixel = pixels_;
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(rect.width) * static_cast<std::uint64_t>(rect.height);
  pixels_ += pixels;
  most_blocks_ = std::max(most_blocks_, blocks_ - before);
  most_pixels_ = std::max(most_pixels_, pixels);
  add_pieces(image);
  add_data(image);
  image.row = static_cast<std::uint32_t>(row_++);
  images_.push_back(image);
  return true;
}

std::optional<std::uint32_t> PackedBatch::code_of(const jpeg::HuffmanSpec& spec, bool dc) {
  const std::size_t first = specs_.size() - std::min(specs_.size(), kLastOnes);
  for (std::size_t i = specs_.size(); i-- > first;)
    if (specs_[i].dc == dc && same(specs_[i].spec, spec)) return static_cast<std::uint32_t>(i);
  jpeg::CanonicalCode code;
  if (!code.set(spec, dc)) return std::nullopt;
  specs_.push_back({spec, dc});
  codes_.push_back(code);
  return static_cast<std::uint32_t>(codes_.size() - 1);
}

bool PackedBatch::add_codes(PackedImage& image) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c) {
    const jpeg::JpegComponent& component = header_.component[c];
    const auto dc = code_of(header_.dc[component.dc], true);
    const auto ac = code_of(header_.ac[component.ac], false);
    if (!dc || !ac) return false;
    image.codes[c][0] = *dc;
    image.codes[c][1] = *ac;
  }
  return true;
}

void PackedBatch::add_quants(PackedImage& image) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(header_.components); ++c) {
    const auto& zigzag = header_.quant[header_.component[c].quant];
    PackedQuant quant;
    for (std::size_t i = 0; i < jpeg::kBlockSize; ++i) quant.steps[i] = zigzag[jpeg::kZigzagOf[i]];
    const std::size_t first = quants_.size() - std::min(quants_.size(), kLastOnes);
    std::size_t at = first;
    while (at < quants_.size() && std::memcmp(&quants_[at], &quant, sizeof quant) != 0) ++at;
    if (at == quants_.size()) quants_.push_back(quant);
    image.quants[c] = static_cast<std::uint32_t>(at);
  }
}

// The region's rows of MCUs, cut at every checkpoint.
void PackedBatch::add_pieces(const PackedImage& image) {
  std::size_t cursor = 0;
  for (std::int64_t row = plan_.first_row; row < plan_.last_row; ++row) {
    std::int64_t begin = row * image.mcus_per_row + plan_.first_column;
    const std::int64_t end = row * image.mcus_per_row + plan_.last_column;
    while (begin < end) {
      while (cursor + 1 < points_.size() && points_[cursor + 1].mcu <= begin) ++cursor;
      const jpeg::Checkpoint& from = points_[cursor];
      const jpeg::Checkpoint* const next =
          cursor + 1 < points_.size() ? &points_[cursor + 1] : nullptr;
      const std::int64_t until = next != nullptr ? std::min(next->mcu, end) : end;
      PackedPiece piece{.image = static_cast<std::uint32_t>(images_.size()),
                        .bit = static_cast<std::uint32_t>(from.at.bit),
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
      }
      std::ranges::copy(from.at.dc, piece.dc);
      pieces_.push_back(piece);
      begin = until;
    }
  }
}

void PackedBatch::add_data(PackedImage& image) {
  const std::size_t size = unstuffed_.size();
  image.first_word = static_cast<std::uint32_t>(words_.size());
  image.words = static_cast<std::uint32_t>((size + 3) / 4 + kSlackWords);
  words_.resize(words_.size() + image.words);
  std::memcpy(words_.data() + image.first_word, unstuffed_.data(), size);
}

PackedAxis PackedBatch::add_axis(const transform::ResizeAxis& axis, int from, bool mirror) {
  const PackedAxis packed{.places = static_cast<std::uint32_t>(places_.size()),
                          .weights = static_cast<std::uint32_t>(weights_.size()),
                          .taps = axis.taps()};
  for (int i = 0; i < axis.output(); ++i) {
    const int of = mirror ? axis.output() - 1 - i : i;
    places_.push_back(axis.first(of) - from);
    weights_.insert(weights_.end(), axis.weights(of), axis.weights(of) + axis.taps());
  }
  return packed;
}

void PackedBatch::clear() noexcept {
  images_.clear();
  pieces_.clear();
  specs_.clear();
  codes_.clear();
  quants_.clear();
  places_.clear();
  weights_.clear();
  words_.clear();
  row_ = 0;
  blocks_ = pixels_ = most_blocks_ = most_pixels_ = 0;
}

PackedLayout PackedBatch::layout() const noexcept {
  PackedLayout layout;
  const auto part = [](std::size_t& total, std::size_t bytes) {
    const std::size_t at = total;
    total += aligned(bytes);
    return at;
  };
  std::size_t& packed = layout.bytes;
  layout.images = part(packed, images_.size() * sizeof(PackedImage));
  layout.pieces = part(packed, pieces_.size() * sizeof(PackedPiece));
  layout.codes = part(packed, codes_.size() * sizeof(jpeg::CanonicalCode));
  layout.quants = part(packed, quants_.size() * sizeof(PackedQuant));
  layout.places = part(packed, places_.size() * sizeof places_[0]);
  layout.weights = part(packed, weights_.size() * sizeof weights_[0]);
  layout.natural = part(packed, jpeg::kBlockSize);
  layout.data = part(packed, words_.size() * sizeof words_[0]);

  std::size_t& scratch = layout.scratch_bytes;
  layout.tables = part(scratch, codes_.size() * sizeof(jpeg::SymbolTable));
  layout.coefficients = part(scratch, blocks_ * jpeg::kBlockSize * sizeof(std::int16_t));
  layout.samples = part(scratch, blocks_ * jpeg::kBlockSize);
  layout.pixels = part(scratch, pixels_ * jpeg::kPixelBytes);
  layout.failed = part(scratch, images_.size() * sizeof(std::uint32_t));

  layout.image_count = static_cast<std::uint32_t>(images_.size());
  layout.piece_count = static_cast<std::uint32_t>(pieces_.size());
  layout.code_count = static_cast<std::uint32_t>(codes_.size());
  layout.most_blocks = most_blocks_;
  layout.most_pixels = most_pixels_;
  layout.output = output_;
  layout.filter = filter_;
  return layout;
}

void PackedBatch::write(std::byte* to) const noexcept {
  const PackedLayout layout = this->layout();
  copy(images_, to + layout.images);
  copy(pieces_, to + layout.pieces);
  copy(codes_, to + layout.codes);
  copy(quants_, to + layout.quants);
  copy(places_, to + layout.places);
  copy(weights_, to + layout.weights);
  for (std::size_t i = 0; i < jpeg::kBlockSize; ++i)
    to[layout.natural + jpeg::kZigzagOf[i]] = static_cast<std::byte>(i);
  copy(words_, to + layout.data);
}

}  // namespace penstock::gpu_jpeg
