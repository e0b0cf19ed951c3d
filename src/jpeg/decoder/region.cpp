#include "src/jpeg/decoder/region.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <penstock/core/process.hpp>

#include "src/jpeg/decoder/entry_points.hpp"
#include "src/jpeg/decoder/pixels.hpp"

namespace penstock::jpeg {
namespace {

// Bit positions are kept in 32 bits where they are stored.
constexpr std::size_t kMostBytes = std::size_t{1} << 28;

// Of the samples that are decoded together: much less than a core's own cache.
constexpr std::size_t kBandBytes = std::size_t{384} << 10;
// Where that is more: enough for the streams to end at about the same time.
constexpr int kFewestRows = 8;

// Smooth upsampling of a row looks at those above and below.
constexpr int kContextRows = 2;

}  // namespace

std::optional<JpegFallback> JpegRegion::open(std::span<const std::byte> bytes) {
  if (bytes.size() > kMostBytes) return JpegFallback::header;
  bytes_ = {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  return read_jpeg_header(bytes, header_);
}

bool JpegRegion::begin(const PixelRect& rect, int span, Chroma upsampling, int scale,
                       const IndexUse& use) {
  index_ = use.index;
  build_index_ = use.build_index;
  entry_bits_ = use.entry_bits;
  built_index_.reset();
  layout_ = McuLayout(header_);
  rect_ = rect;
  plan_ = RegionPlan(header_, rect, upsampling, scale);
  if (!lanes_.entropy.set(header_) || !find_points()) return false;
  if (plan_.luma_side == 1) {
    lanes_.entropy.make_skips();
    lanes_.entropy.skip_luma_ac(layout_);
  }
  cursor_ = 0;
  prepare_rows(span);
  return true;
}

bool JpegRegion::find_points() {
  used_index_ =
      index_ != nullptr && use_index(*index_, header_, plan_, bytes_.subspan(header_.scan),
                                     unstuffed_, known_, markers_);
  unchecked_.clear();
  if (used_index_) {
    points_ = known_;
    lanes_.data = unstuffed_.data();
    return true;
  }
  // Of no use: another one would be.
  if (index_ != nullptr) build_index_ = true;
  return scan_for_points();
}

// Restart intervals of the region, within one row, are checked as they are decoded: to their ends,
// though that may be a bit too far. It is not worth that where most of the interval is beside the
// region; and the last one's end is looked at in another way.
void JpegRegion::choose_unchecked() {
  const std::int64_t interval = header_.restart_interval;
  const std::int64_t columns = header_.mcus_per_row();
  if (build_index_ || interval == 0 || interval > columns) return;
  const std::int64_t last = (plan_.checked_mcus - 1) / interval;
  // With fewer there is nothing to decode.
  if (std::cmp_less_equal(unstuffed_.segments().size(), last)) return;
  unchecked_.assign(static_cast<std::size_t>(last), 0);
  for (std::int64_t row = plan_.first_row; row < plan_.last_row; ++row) {
    const std::int64_t begin = row * columns + plan_.first_column;
    const std::int64_t end = row * columns + plan_.last_column;
    const std::int64_t earliest = std::max(row * columns, begin - kChunkMcus);
    const std::int64_t latest = std::min((row + 1) * columns, end + interval / 2);
    for (std::int64_t i = (earliest + interval - 1) / interval;
         i < last && (i + 1) * interval <= latest; ++i)
      if ((i + 1) * interval > begin) unchecked_[static_cast<std::size_t>(i)] = 1;
  }
}

bool JpegRegion::scan_for_points() {
  const std::span<const std::uint8_t> scan_bytes = bytes_.subspan(header_.scan);
  unstuffed_.read(scan_bytes, header_.restart_interval > 0);
  lanes_.data = unstuffed_.data();
  lanes_.entropy.make_skips();
  choose_unchecked();
  const ScanData scan{layout_,
                      {unstuffed_.data(), unstuffed_.size()},
                      unstuffed_.segments(),
                      header_.restart_interval,
                      unchecked_};
  const std::int64_t all = std::int64_t{header_.mcu_rows()} * header_.mcus_per_row();
  const std::int64_t until = build_index_ ? all : plan_.checked_mcus;
  const double part = static_cast<double>(until) / static_cast<double>(all);
  const bool sound = reader_.read(scan, until, part, lanes_);
  points_ = reader_.checkpoints();
  if (build_index_) build_index(scan_bytes.size());
  if (!sound && (!build_index_ || !reader_.read_on(scan, plan_.checked_mcus, lanes_))) return false;
  points_ = reader_.checkpoints();
  const auto end = std::ranges::lower_bound(points_, plan_.checked_mcus, {}, &Checkpoint::mcu);
  if (end == points_.end()) return false;
  const std::size_t segment =
      header_.restart_interval == 0
          ? 0
          : static_cast<std::size_t>((plan_.checked_mcus - 1) / header_.restart_interval);
  // Where that is not the checkpoint looked for, it is one behind it: then all is well before it.
  return ends_before_file(unstuffed_.segments()[segment], end->at.bit);
}

void JpegRegion::build_index(std::size_t scan_bytes) {
  if (entry_bits_ == 0) {
    built_index_ = make_index(header_, points_, unstuffed_, scan_bytes);
    return;
  }
  known_.clear();
  for (std::size_t i = 0; i < points_.size(); ++i) {
    known_.push_back(points_[i]);
    if (i + 1 == points_.size()) break;
    Checkpoint point = points_[i];
    const Checkpoint& next = points_[i + 1];
    const std::int64_t mcus = next.mcu - point.mcu;
    const std::uint64_t bits = next.at.bit - point.at.bit;
    if (bits <= entry_bits_) continue;
    const std::int64_t step =
        std::max<std::int64_t>(1, mcus * entry_bits_ / static_cast<std::int64_t>(bits));
    while (point.mcu + step < next.mcu && skip_mcus(lanes_, layout_, next.at.bit, point.at, step)) {
      point.mcu += step;
      known_.push_back(point);
    }
  }
  built_index_ = make_index(header_, known_, unstuffed_, scan_bytes, entry_bits_);
}

void JpegRegion::prepare_rows(int span) {
  const auto columns = static_cast<std::size_t>(plan_.last_column - plan_.first_column);
  const std::size_t row_bytes = static_cast<std::size_t>(kBlockSize * layout_.blocks) * columns;
  const int rows = std::max(plan_.last_row - plan_.first_row, kFewestRows);
  band_ = static_cast<int>(
      std::clamp<std::size_t>(kBandBytes / row_bytes, kFewestRows, static_cast<std::size_t>(rows)));
  planes_.begin(header_, plan_, band_, plan_.smooth_v ? kContextRows : 0);
  next_row_ = plan_.first_row;
  ready_ = 0;

  const std::size_t width = columns * static_cast<std::size_t>(plan_.mcu_width);
  left_ = plan_.first_column * plan_.mcu_width;
  ring_rows_ = span;
  stride_ = width * kPixelBytes + std::max(kPixelSlack, kRowSlack);
  const std::size_t size = stride_ * static_cast<std::size_t>(ring_rows_);
  if (ring_.size() < size) ring_.resize(size);
  if (plan_.smooth_h || plan_.smooth_v) smoothed_.resize(2 * (width + kPixelSlack));
  pointers_.resize(static_cast<std::size_t>(span));
  converted_ = rect_.y;
}

// One MCU row's, cut at every checkpoint.
void JpegRegion::add_pieces(int row) {
  const std::int64_t row_begin = std::int64_t{row} * header_.mcus_per_row();
  std::int64_t begin = row_begin + plan_.first_column;
  const std::int64_t end = row_begin + plan_.last_column;
  while (begin < end) {
    while (cursor_ + 1 < points_.size() && points_[cursor_ + 1].mcu <= begin) ++cursor_;
    const Checkpoint* const then = cursor_ + 1 < points_.size() ? &points_[cursor_ + 1] : nullptr;
    const std::int64_t until = then != nullptr ? std::min(then->mcu, end) : end;
    const Checkpoint& from = points_[cursor_];
    pieces_.push_back(
        {from, begin, until, row, then != nullptr && then->mcu == until ? then : nullptr});
    if (!unchecked_.empty()) {
      const auto interval = static_cast<std::size_t>(from.mcu / header_.restart_interval);
      if (interval < unchecked_.size() && unchecked_[interval] != 0) {
        pieces_.back().last_bit = std::uint64_t{8} * unstuffed_.segments()[interval].end;
        pieces_.back().end = static_cast<std::int64_t>(interval + 1) * header_.restart_interval;
      }
    }
    begin = until;
  }
}

void JpegRegion::begin_chunk(std::size_t lane, const Piece& piece) {
  const auto mcus = std::min<std::int64_t>(piece.end - piece.from.mcu, kChunkMcus);
  const int blocks = static_cast<int>(mcus) * layout_.blocks;
  for (int i = 0; i < blocks; ++i) lanes_.chunks[lane][static_cast<std::size_t>(i)].size.fill(0);
  lanes_.lane[lane].failed = false;
  lanes_.start(lane, piece.from.at.bit, blocks);
}

// `bit` is behind it.
bool JpegRegion::finish_chunk(const Chunk& chunk, std::uint64_t bit, Piece& piece) {
  if (bit > std::uint64_t{8} * unstuffed_.size()) return false;
  const auto mcus =
      static_cast<int>(std::min<std::int64_t>(piece.end - piece.from.mcu, kChunkMcus));
  const auto first =
      static_cast<int>(std::clamp<std::int64_t>(piece.begin - piece.from.mcu, 0, mcus));
  const std::int64_t row_begin = std::int64_t{piece.row} * header_.mcus_per_row();
  const std::int64_t column = piece.from.mcu + first - row_begin;
  const auto last = static_cast<int>(
      std::clamp<std::int64_t>(row_begin + plan_.last_column - piece.from.mcu, first, mcus));
  if (!planes_.put(chunk, first, last, static_cast<int>(column), piece.row, piece.from.at.dc))
    return false;
  piece.from.mcu += mcus;
  piece.from.at.bit = bit;
  // A byte that was not used would be one too many, where a marker comes next.
  if (piece.last_bit != 0 && piece.from.mcu == piece.end &&
      (bit > piece.last_bit || piece.last_bit - bit >= 8))
    return false;
  if (piece.from.mcu < piece.end || piece.then == nullptr) return true;
  // A restart marker stands before some checkpoints; where it does is known.
  const bool restarts = header_.restart_interval > 0 && piece.end % header_.restart_interval == 0;
  return restarts || piece.then->at == piece.from.at;
}

bool JpegRegion::decode_in_lockstep() {
  std::array<Piece, kLockstepLanes> piece{};
  std::size_t next = 0;
  std::size_t live = 0;
  const auto begin_chunk = [&](std::size_t lane) {
    const Piece& own = piece[lane];
    const auto mcus = std::min<std::int64_t>(own.end - own.from.mcu, kChunkMcus);
    lockstep_.start(lane, own.from.at.bit, static_cast<int>(mcus) * layout_.blocks);
  };
  const auto begin_piece = [&](std::size_t lane) {
    if (next == pieces_.size()) return;
    piece[lane] = pieces_[next++];
    ++live;
    begin_chunk(lane);
  };
  lockstep_.begin(lanes_.entropy, layout_, lanes_.data);
  for (std::size_t lane = 0; lane < kLockstepLanes; ++lane) begin_piece(lane);
  while (live > 0) {
    std::uint32_t done = lockstep_.decode();
    if (done == 0) return false;
    for (; done != 0; done &= done - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(done));
      Chunk& chunk = lanes_.chunks[0];
      lockstep_.take(lane, chunk);
      if (!finish_chunk(chunk, lockstep_.bit(lane), piece[lane])) return false;
      if (piece[lane].from.mcu < piece[lane].end) {
        begin_chunk(lane);
        continue;
      }
      --live;
      begin_piece(lane);
    }
  }
  lockstep_.finish();
  return true;
}

bool JpegRegion::decode_pieces() {
  if (plan_.luma_side == 1) return decode_in_lanes();
  switch (Lockstep::choose(pieces_.size())) {
    case Lockstep::Choice::no:
      return decode_in_lanes();
    case Lockstep::Choice::yes:
      return decode_in_lockstep();
    case Lockstep::Choice::try_both:
      break;
  }
  // The same samples twice. The first time brings the data into the cache, and is not timed.
  if (!decode_in_lanes()) return false;
  const std::int64_t begin = now_ns();
  if (!decode_in_lockstep()) return false;
  const std::int64_t between = now_ns();
  if (!decode_in_lanes()) return false;
  Lockstep::note(between - begin, now_ns() - between);
  return true;
}

bool JpegRegion::decode_in_lanes() {
  constexpr std::size_t kLanes = kDecodingLanes;
  std::array<Piece, kLanes> piece{};
  std::array<bool, kLanes> busy{};
  std::size_t next = 0;
  std::size_t live = 0;
  const auto begin_piece = [&](std::size_t lane) {
    busy[lane] = next < pieces_.size();
    if (busy[lane]) {
      piece[lane] = pieces_[next++];
      ++live;
      begin_chunk(lane, piece[lane]);
    } else {
      // It runs on, over nothing in particular.
      lanes_.start(lane, 0, kChunkMcus * layout_.blocks);
    }
  };
  for (std::size_t lane = 0; lane < kLanes; ++lane) begin_piece(lane);
  while (live > 0) {
    const std::size_t lane = lanes_.decode(kDecodingLanes);
    if (!busy[lane]) {
      begin_piece(lane);
      continue;
    }
    const Lane& stream = lanes_.lane[lane];
    if (stream.failed || !finish_chunk(lanes_.chunks[lane], stream.bit, piece[lane])) return false;
    if (piece[lane].from.mcu < piece[lane].end) {
      begin_chunk(lane, piece[lane]);
      continue;
    }
    --live;
    begin_piece(lane);
  }
  return true;
}

bool JpegRegion::decode_band() {
  if (next_row_ >= plan_.last_row) return false;
  const int first = next_row_;
  next_row_ = std::min(first + band_, plan_.last_row);
  planes_.move_to(first);
  pieces_.clear();
  for (int row = first; row < next_row_; ++row) add_pieces(row);
  if (!decode_pieces()) return false;
  if (plan_.smooth_h)
    for (int row = first; row < next_row_; ++row) planes_.repeat_edges(row);
  ready_ = next_row_ * plan_.mcu_height;
  if (plan_.smooth_v && next_row_ < header_.mcu_rows()) ready_ -= plan_.v;
  return true;
}

void JpegRegion::convert(int y) {
  std::uint8_t* const out = slot(y);
  const int width = rect_.x + rect_.width - left_;
  const std::uint8_t* const luma = planes_.row(0, y);
  if (header_.components == 1) return rgb_row(luma, luma, luma, width, out);
  if (header_.color == JpegColor::rgb)
    return rgb_row(luma, planes_.row(1, y), planes_.row(2, y), width, out);
  const int near = y / plan_.v;
  const int rows = RegionPlan::samples_of(header_.height, plan_.chroma_side, header_.v);
  const bool below = y % 2 != 0;
  const int far = std::clamp(below ? near + 1 : near - 1, 0, rows - 1);
  const std::uint8_t* chroma[2];
  for (std::size_t c = 0; c < 2; ++c) {
    chroma[c] = planes_.row(c + 1, near);
    std::uint8_t* const smoothed = smoothed_.data() + c * (smoothed_.size() / 2);
    if (plan_.smooth_h && plan_.smooth_v)
      smooth_h2v2(chroma[c], planes_.row(c + 1, far), width, smoothed);
    else if (plan_.smooth_h)
      smooth_h2(chroma[c], width, smoothed);
    else if (plan_.smooth_v)
      smooth_v2(chroma[c], planes_.row(c + 1, far), below, width, smoothed);
    if (plan_.smooth_h || plan_.smooth_v) chroma[c] = smoothed;
  }
  ycc_row(luma, chroma[0], chroma[1], plan_.smooth_h ? 1 : plan_.h, width, out);
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
  index_ = nullptr;
  build_index_ = false;
  entry_bits_ = 0;
  built_index_.reset();
  unstuffed_.trim();
  planes_.trim();
  trim(ring_);
}

}  // namespace penstock::jpeg
