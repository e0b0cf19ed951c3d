#include "src/transform/jpeg/region.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "src/transform/jpeg/pixels.hpp"

namespace penstock::detail {
namespace {

// Bit positions are kept in 32 bits where they are stored.
constexpr std::size_t kMostBytes = std::size_t{1} << 28;

// libjpeg-turbo reads some bytes ahead of its bits, and has a warning where the file ends there.
constexpr std::uint64_t kReadAhead = 32;

// Fewer MCUs than that are not worth several streams.
constexpr std::int64_t kFewMcus = 64;

// Of the samples that are decoded together: much less than a core's own cache.
constexpr std::size_t kBandBytes = std::size_t{384} << 10;
// Where that is more: enough for the streams to end at about the same time.
constexpr int kFewestRows = 8;

// Smooth upsampling of a row looks at those above and below.
constexpr int kContextRows = 2;

}  // namespace

JpegRefusal JpegRegion::open(std::span<const std::byte> bytes) {
  if (bytes.size() > kMostBytes) return JpegRefusal::malformed;
  const JpegRefusal refusal = read_jpeg_header(bytes, header_);
  bytes_ = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  return refusal;
}

bool JpegRegion::begin(const PixelRect& rect, int span, Upsampling upsampling) {
  if (!lanes_.entropy.set(header_)) return false;
  layout_ = McuLayout(header_);
  rect_ = rect;

  // libjpeg-turbo smoothes chroma of half the width only where it has more than two columns.
  const bool smooth = upsampling == Upsampling::smooth && header_.components == 3;
  const bool narrow = header_.h == 2 && (header_.width + 1) / 2 <= 2;
  smooth_h_ = smooth && header_.h == 2 && !narrow;
  smooth_v_ = smooth && header_.v == 2 && !narrow;

  const int reach = smooth_h_ ? 2 : 0;
  first_column_ = std::max(rect.x - reach, 0) / header_.mcu_width();
  last_column_ =
      std::min((rect.x + rect.width - 1 + reach) / header_.mcu_width() + 1, header_.mcus_per_row());
  const int last = rect.y + rect.height - 1;
  next_row_ = rect.y / header_.mcu_height();
  last_row_ = last / header_.mcu_height() + 1;
  if (smooth_v_) {
    // libjpeg-turbo puts out an MCU row's last two rows when it has read the next MCU row.
    next_row_ = std::max(rect.y / 2 - 1, 0) / 8;
    if (last / 2 % 8 == 7) last_row_ = std::min(last_row_ + 1, header_.mcu_rows());
  }
  checked_rows_ = std::min(
      (last_row_ + header_.rows_together - 1) / header_.rows_together * header_.rows_together,
      header_.mcu_rows());
  ready_ = 0;

  left_ = first_column_ * header_.mcu_width();
  const std::size_t width = static_cast<std::size_t>(last_column_ - first_column_) *
                            static_cast<std::size_t>(header_.mcu_width());
  const std::size_t row_bytes = static_cast<std::size_t>(kBlockSize * layout_.blocks) * width /
                                static_cast<std::size_t>(header_.mcu_width());
  ring_rows_ = span;
  stride_ = width * kPixelBytes + std::max(kPixelSlack, kRowSlack);
  const std::size_t size = stride_ * static_cast<std::size_t>(ring_rows_);
  if (ring_.size() < size) ring_.resize(size);
  if (smooth_h_ || smooth_v_) smoothed_.resize(2 * (width + kPixelSlack));
  pointers_.resize(static_cast<std::size_t>(span));
  converted_ = rect.y;

  unstuffed_.read(bytes_.subspan(header_.scan), header_.restart_interval > 0);
  lanes_.entropy.make_skips();
  lanes_.data = unstuffed_.data();
  const std::int64_t needed = static_cast<std::int64_t>(checked_rows_) * header_.mcus_per_row();
  in_lanes_ = needed >= kFewMcus;
  if (in_lanes_) {
    band_ = std::clamp(static_cast<int>(kBandBytes / row_bytes), kFewestRows,
                       std::max(last_row_ - next_row_, kFewestRows));
    const ScanData scan{layout_,
                        {unstuffed_.data(), unstuffed_.size()},
                        unstuffed_.stretches(),
                        header_.restart_interval};
    const double part = static_cast<double>(checked_rows_) / header_.mcu_rows();
    if (!reader_.read(scan, needed, part, lanes_)) return false;
    position_ = reader_.checkpoints().back().at;
    stretch_ = unstuffed_.stretches().size() == 1
                   ? 0
                   : static_cast<std::size_t>((needed - 1) / header_.restart_interval);
    if (!ends_well()) return false;
    cursor_ = 0;
  } else {
    band_ = 1;
    position_ = {};
    next_mcu_ = 0;
    stretch_ = 0;
  }
  planes_.begin(header_, first_column_, last_column_, band_, smooth_v_ ? kContextRows : 0);
  return true;
}

std::int64_t JpegRegion::stretch_end() const noexcept {
  if (header_.restart_interval == 0) return INT64_MAX;
  return (static_cast<std::int64_t>(stretch_) + 1) * header_.restart_interval;
}

bool JpegRegion::enter_stretch() {
  const std::span<const Stretch> stretches = unstuffed_.stretches();
  const Stretch& before = stretches[stretch_];
  if (before.ended_by != StretchEnd::restart || before.restart != (stretch_ & 7)) return false;
  // A byte that was not used would be one too many.
  if (std::uint64_t{8} * before.end - position_.bit >= 8) return false;
  if (++stretch_ == stretches.size()) return false;
  position_.bit = std::uint64_t{8} * stretches[stretch_].begin;
  position_.dc = {};
  return true;
}

bool JpegRegion::skip_to(std::int64_t mcu) {
  while (next_mcu_ < mcu) {
    if (next_mcu_ == stretch_end() && !enter_stretch()) return false;
    const std::int64_t until = std::min(mcu, stretch_end());
    if (!skip_mcus(lanes_, layout_, std::uint64_t{8} * unstuffed_.stretches()[stretch_].end,
                   position_, until - next_mcu_))
      return false;
    next_mcu_ = until;
  }
  return true;
}

void JpegRegion::begin_chunk(std::size_t lane, std::uint64_t bit, int mcus) {
  const int blocks = mcus * layout_.blocks;
  for (int i = 0; i < blocks; ++i) lanes_.chunks[lane][static_cast<std::size_t>(i)].size.fill(0);
  lanes_.lane[lane].failed = false;
  lanes_.start(lane, bit, blocks);
}

bool JpegRegion::decode_to(std::int64_t mcu, int row) {
  const std::int64_t row_begin = static_cast<std::int64_t>(row) * header_.mcus_per_row();
  const Lane& lane = lanes_.lane[0];
  while (next_mcu_ < mcu) {
    if (next_mcu_ == stretch_end() && !enter_stretch()) return false;
    const std::int64_t until = std::min({mcu, stretch_end(), next_mcu_ + kChunkMcus});
    const int mcus = static_cast<int>(until - next_mcu_);
    begin_chunk(0, position_.bit, mcus);
    (void)lanes_.decode(1);
    if (lane.failed || lane.bit > std::uint64_t{8} * unstuffed_.stretches()[stretch_].end)
      return false;
    position_.bit = lane.bit;
    planes_.put(lanes_.chunks[0], 0, mcus, static_cast<int>(next_mcu_ - row_begin), row,
                position_.dc);
    next_mcu_ = until;
  }
  return true;
}

bool JpegRegion::decode_row(int row) {
  const std::int64_t begin = static_cast<std::int64_t>(row) * header_.mcus_per_row();
  if (!skip_to(begin + first_column_) || !decode_to(begin + last_column_, row)) return false;
  if (row + 1 < last_row_) return true;
  return skip_to(static_cast<std::int64_t>(checked_rows_) * header_.mcus_per_row()) && ends_well();
}

// One MCU row's, cut at every checkpoint.
void JpegRegion::add_pieces(int row) {
  const std::span<const Checkpoint> points = reader_.checkpoints();
  const std::int64_t row_begin = static_cast<std::int64_t>(row) * header_.mcus_per_row();
  std::int64_t begin = row_begin + first_column_;
  const std::int64_t end = row_begin + last_column_;
  while (begin < end) {
    while (cursor_ + 1 < points.size() && points[cursor_ + 1].mcu <= begin) ++cursor_;
    const Checkpoint* const then = cursor_ + 1 < points.size() ? &points[cursor_ + 1] : nullptr;
    const std::int64_t until = then != nullptr ? std::min(then->mcu, end) : end;
    pieces_.push_back({points[cursor_], begin, until, row,
                       then != nullptr && then->mcu == until ? then : nullptr});
    begin = until;
  }
}

bool JpegRegion::decode_pieces() {
  constexpr std::size_t kLanes = kDecodingLanes;
  std::array<Piece, kLanes> piece{};
  std::array<bool, kLanes> busy{};
  std::size_t next = 0;
  int live = 0;
  const auto chunk_mcus = [&](std::size_t lane) {
    return static_cast<int>(
        std::min<std::int64_t>(piece[lane].end - piece[lane].from.mcu, kChunkMcus));
  };
  const auto begin_piece = [&](std::size_t lane) {
    busy[lane] = next < pieces_.size();
    if (busy[lane]) {
      piece[lane] = pieces_[next++];
      ++live;
      begin_chunk(lane, piece[lane].from.at.bit, chunk_mcus(lane));
    } else {
      lanes_.start(lane, 0, kChunkMcus * layout_.blocks);
    }
  };
  for (std::size_t lane = 0; lane < kLanes; ++lane) begin_piece(lane);
  while (live > 0) {
    const std::size_t lane = lanes_.decode(kDecodingLanes);
    if (!busy[lane]) {
      lanes_.start(lane, 0, kChunkMcus * layout_.blocks);
      continue;
    }
    if (lanes_.lane[lane].failed) return false;
    Piece& mine = piece[lane];
    const int mcus = chunk_mcus(lane);
    const int first =
        static_cast<int>(std::clamp<std::int64_t>(mine.begin - mine.from.mcu, 0, mcus));
    const std::int64_t column =
        mine.from.mcu + first - static_cast<std::int64_t>(mine.row) * header_.mcus_per_row();
    planes_.put(lanes_.chunks[lane], first, mcus, static_cast<int>(column), mine.row,
                mine.from.at.dc);
    mine.from.mcu += mcus;
    mine.from.at.bit = lanes_.lane[lane].bit;
    if (mine.from.mcu < mine.end) {
      begin_chunk(lane, mine.from.at.bit, chunk_mcus(lane));
      continue;
    }
    if (mine.then != nullptr && mine.then->at != mine.from.at &&
        (header_.restart_interval == 0 || mine.end % header_.restart_interval != 0))
      return false;
    --live;
    begin_piece(lane);
  }
  return true;
}

bool JpegRegion::decode_band() {
  if (next_row_ >= last_row_) return false;
  const int first = next_row_;
  next_row_ = std::min(first + band_, last_row_);
  planes_.move_to(first);
  if (in_lanes_) {
    pieces_.clear();
    for (int row = first; row < next_row_; ++row) add_pieces(row);
    if (!decode_pieces()) return false;
  } else {
    for (int row = first; row < next_row_; ++row)
      if (!decode_row(row)) return false;
  }
  if (smooth_h_)
    for (int row = first; row < next_row_; ++row) planes_.repeat_edges(row);
  ready_ = next_row_ * header_.mcu_height();
  if (smooth_v_ && next_row_ < header_.mcu_rows()) ready_ -= header_.v;
  return true;
}

bool JpegRegion::ends_well() const noexcept {
  const Stretch& stretch = unstuffed_.stretches()[stretch_];
  return stretch.ended_by != StretchEnd::file ||
         std::uint64_t{8} * stretch.end - position_.bit >= 8 * kReadAhead;
}

void JpegRegion::convert(int y) {
  std::uint8_t* const out = slot(y);
  const int width = rect_.x + rect_.width - left_;
  const std::uint8_t* const luma = planes_.row(0, y);
  if (header_.components == 1) return rgb_row(luma, luma, luma, width, out);
  if (header_.color == JpegColor::rgb)
    return rgb_row(luma, planes_.row(1, y), planes_.row(2, y), width, out);
  const int near = y / header_.v;
  const int rows = (header_.height + header_.v - 1) / header_.v;
  const bool below = y % 2 != 0;
  const int far = std::clamp(below ? near + 1 : near - 1, 0, rows - 1);
  const std::uint8_t* chroma[2];
  for (std::size_t c = 0; c < 2; ++c) {
    chroma[c] = planes_.row(c + 1, near);
    std::uint8_t* const smoothed = smoothed_.data() + c * (smoothed_.size() / 2);
    if (smooth_h_ && smooth_v_)
      smooth_h2v2(chroma[c], planes_.row(c + 1, far), width, smoothed);
    else if (smooth_h_)
      smooth_h2(chroma[c], width, smoothed);
    else if (smooth_v_)
      smooth_v2(chroma[c], planes_.row(c + 1, far), below, width, smoothed);
    if (smooth_h_ || smooth_v_) chroma[c] = smoothed;
  }
  ycc_row(luma, chroma[0], chroma[1], smooth_h_ ? 1 : header_.h, width, out);
}

const std::uint8_t* const* JpegRegion::rows(int first, int last) {
  converted_ = std::max(converted_, first);
  for (; converted_ < last; ++converted_) {
    while (ready_ <= converted_)
      if (!decode_band()) return nullptr;
    convert(converted_);
  }
  const std::size_t skipped = static_cast<std::size_t>(rect_.x - left_) * kPixelBytes;
  for (int y = first; y < last; ++y)
    pointers_[static_cast<std::size_t>(y - first)] = slot(y) + skipped;
  return pointers_.data();
}

void JpegRegion::close() noexcept {
  bytes_ = {};
  unstuffed_.trim();
  planes_.trim();
  trim(ring_);
}

}  // namespace penstock::detail
