#include "src/transform/segmentations.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/transform/masks.hpp"
#include "src/transform/nearest.hpp"

namespace penstock::transform {

namespace {

constexpr std::size_t kShownOfSegmentation = 40;  // bytes in a message

// For each pixel of a line, and its end, the first output that shows it or a later one.
void first_outputs(const PillowLine& line, int extent, std::vector<int>& first) {
  thread_local std::vector<int> pixels;
  nearest_pixels(line, pixels);
  first.resize(static_cast<std::size_t>(extent) + 1);
  std::size_t output = 0;
  for (std::size_t pixel = 0; pixel < first.size(); ++pixel) {
    while (output < pixels.size() && std::cmp_less(pixels[output], pixel)) ++output;
    first[pixel] = static_cast<int>(output);
  }
}

}  // namespace

// A parser of this form alone: the text of one image has hundreds of numbers, and no names but two.
class Segmentations::Reader {
 public:
  Reader(Segmentations& all, std::string_view text) : all_(all), text_(text) {}

  Result<void> run() {
    if (!list([&] { return segmentation(); }) || !is_at_end()) return wrong();
    return {};
  }

 private:
  // All of these are false where something is wrong, as of wrong_ or of what is there.
  bool segmentation() {
    Shape shape{.begin = all_.ends_.size()};
    if (next() == '{') return runs();
    has_area_ = false;
    if (!list([&] { return polygon(); })) return false;
    shape.end = all_.ends_.size();
    if (shape.end > shape.begin && !has_area_)
      return refuse("has no polygon of three points or more");
    all_.shapes_.push_back(shape);
    return true;
  }

  bool polygon() {
    const std::size_t begin = all_.points_.size();
    if (!list([&] { return coordinate(); })) return false;
    const std::size_t count = all_.points_.size() - begin;
    if (count % 2 != 0)
      return refuse(fmt::format("has a polygon of {} numbers, and a point has two", count));
    constexpr std::size_t kOfATriangle = 6;
    has_area_ |= count >= kOfATriangle;  // a polygon of less covers no pixel
    all_.ends_.push_back(all_.points_.size());
    return true;
  }

  bool coordinate() {
    double number = 0;
    if (!read(number)) return false;
    // f32 holds it, so that sums and products of a few are finite.
    if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max())))
      return refuse(fmt::format("has the coordinate {}, and expected are finite numbers", number));
    all_.points_.push_back(number);
    return true;
  }

  bool runs() {
    Shape shape{.has_runs = true, .begin = all_.runs_.size(), .end = all_.runs_.size()};
    bool has_size = false;
    bool has_counts = false;
    ++at_;  // the brace
    do {
      const auto key = quoted();
      if (!key || !take(':')) return false;
      if (*key == "size" && !std::exchange(has_size, true)) {
        if (!size(shape)) return false;
      } else if (*key == "counts" && !std::exchange(has_counts, true)) {
        if (next() == '"' ? !compressed_counts() : !list([&] { return one_count(); })) return false;
      } else {
        return refuse(fmt::format("has \"{}\", and runs have a size and counts, each once",
                                  core::printable(*key, kShownOfSegmentation)));
      }
    } while (take(','));
    if (!take('}')) return false;
    if (!has_size || !has_counts) return refuse("has no size, or no counts, for its runs");
    shape.end = all_.runs_.size();
    const auto first = all_.runs_.begin() + static_cast<std::ptrdiff_t>(shape.begin);
    const auto pixels = std::accumulate(first, all_.runs_.end(), std::uint64_t{0});
    if (pixels !=
        static_cast<std::uint64_t>(shape.height) * static_cast<std::uint64_t>(shape.width))
      return refuse(fmt::format("has runs of {} pixels, and an image of {}x{} (height x width)",
                                pixels, shape.height, shape.width));
    all_.shapes_.push_back(shape);
    return true;
  }

  bool size(Shape& shape) {
    int sides = 0;
    const bool is_list = list([&] {
      std::int64_t side = 0;
      if (!read_whole(side)) return false;
      if (side < 0 || side > std::numeric_limits<std::int32_t>::max())
        return refuse(fmt::format("has {} in the size of its runs", side));
      (sides == 0 ? shape.height : shape.width) = side;
      return ++sides <= 2;
    });
    if (is_list && sides == 2) return true;
    return wrong_.empty() ? refuse("has a size that is not height and width") : false;
  }

  bool one_count() {
    std::int64_t count = 0;
    return read_whole(count) && add_run(count);
  }

  bool add_run(std::int64_t count) {
    if (!std::in_range<std::uint32_t>(count))
      return refuse(fmt::format("has a run of {} pixels", count));
    all_.runs_.push_back(static_cast<std::uint32_t>(count));
    return true;
  }

  // Five bits a character, the lowest first; from the third count on the difference to the last but one.
  bool compressed_counts() {
    const auto text = quoted();
    if (!text) return false;
    const std::size_t begin = all_.runs_.size();
    std::int64_t count = 0;
    int bits = 0;
    for (const char character : *text) {
      constexpr int kMostBits = 35;
      const int value = character - '0';
      if (value < 0 || value >= 64 || bits >= kMostBits)
        return refuse("has counts that are no compressed runs");
      count |= static_cast<std::int64_t>(value & 31) << bits;
      bits += 5;
      if ((value & 32) != 0) continue;
      if ((value & 16) != 0) count -= std::int64_t{1} << bits;
      const std::size_t known = all_.runs_.size();
      if (known - begin > 2) count += all_.runs_[known - 2];
      if (!add_run(count)) return false;
      count = 0;
      bits = 0;
    }
    return bits == 0 || refuse("has compressed counts that end too early");
  }

  template <class Element>
  bool list(const Element& element) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return take(']');
  }

  bool read(double& number) {
    (void)next();
    const char* const begin = text_.data() + at_;
    const auto read = std::from_chars(begin, text_.data() + text_.size(), number);
    if (read.ec == std::errc::result_out_of_range)  // larger or smaller than any
      number = std::string_view(begin, read.ptr).find("e-") == std::string_view::npos &&
                       std::string_view(begin, read.ptr).find("E-") == std::string_view::npos
                   ? std::numeric_limits<double>::infinity()
                   : 0;
    else if (read.ec != std::errc())
      return false;
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return true;
  }
  // A number of pixels, which may be written as 5.0.
  bool read_whole(std::int64_t& number) {
    double value = 0;
    if (!read(value)) return false;
    constexpr double kMost = 1e15;
    if (value != std::trunc(value) || std::abs(value) > kMost)
      return refuse(fmt::format("has {} for a number of pixels", value));
    number = static_cast<std::int64_t>(value);
    return true;
  }

  // A text, of which the characters that compressed counts have may be escaped, as \ and < are by some writers.
  const std::string* quoted() {
    quoted_.clear();
    if (!take('"')) return nullptr;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
        constexpr std::string_view kUnicode = "u00";
        const std::string_view rest = text_.substr(std::min(at_, text_.size()));
        if (rest.starts_with(kUnicode)) {
          constexpr std::size_t kDigits = 2;
          unsigned code = 0;
          const char* const digits = rest.data() + kUnicode.size();
          if (rest.size() < kUnicode.size() + kDigits ||
              std::from_chars(digits, digits + kDigits, code, 16).ptr != digits + kDigits ||
              code >= 128)
            return nullptr;
          quoted_ += static_cast<char>(code);
          at_ += kUnicode.size() + kDigits - 1;
          continue;
        }
        if (rest.empty() || (rest[0] != '\\' && rest[0] != '/' && rest[0] != '"')) return nullptr;
      }
      quoted_ += text_[at_];
    }
    return take('"') ? &quoted_ : nullptr;
  }

  // The next character that is no blank; 0 at the end.
  char next() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) {
    if (next() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool is_at_end() {
    (void)next();
    return at_ == text_.size();
  }

  bool refuse(std::string what) {
    wrong_ = std::move(what);
    return false;
  }
  [[nodiscard]] Fault wrong() const {
    const std::string of = fmt::format("the segmentation of instance {} ", all_.shapes_.size());
    if (!wrong_.empty()) return Fault{.reason = of + wrong_};
    const std::string_view found = text_.substr(std::min(at_, text_.size()), kShownOfSegmentation);
    return Fault{.reason = fmt::format(
                     "{}is not as COCO writes it, a list of polygons or an object with size and "
                     "counts: at byte {} of the list of all, {}",
                     of, at_,
                     found.empty() ? "where it ends" : "there is " + core::printable(found))};
  }

  Segmentations& all_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool has_area_ = false;  // of the polygons of a segmentation
  std::string quoted_;
  std::string wrong_;
};

Result<void> Segmentations::read(std::string_view text) {
  shapes_.clear();
  ends_.clear();
  points_.clear();
  runs_.clear();
  return Reader(*this, text).run();
}

// Draws by marks: each is where a column of the image changes from outside to inside, or back. All are set first; then each row
// takes over what the one above it has.
class Segmentations::Drawing {
 public:
  explicit Drawing(Segmentations& scratch) : window_(*scratch.window_), scratch_(scratch) {}

  // Onto zeros, [sample height, sample width].
  void begin(std::uint8_t* out) {
    const PixelRect& place = window_.place;
    const int left = window_.flipped ? window_.sample.width - place.x - place.width : place.x;
    out_ = out + std::ptrdiff_t{place.y} * window_.sample.width + left;
    left_ = place.width;
    right_ = 0;
    top_ = place.height;
    bottom_ = 0;
  }

  // From this row of the image on, in one of its columns.
  void mark(std::int64_t column, std::int64_t row) {
    const int y = scratch_.first_row_[static_cast<std::size_t>(row)];
    const int begin = scratch_.first_column_[static_cast<std::size_t>(column)];
    const int end = scratch_.first_column_[static_cast<std::size_t>(column) + 1];
    if (begin == end) return;
    bottom_ = std::max(bottom_, y);
    if (y == window_.place.height) return;
    top_ = std::min(top_, y);
    const auto from = window_.flipped ? window_.place.width - end : begin;
    left_ = std::min(left_, from);
    right_ = std::max(right_, from + end - begin);
    std::uint8_t* const at = out_ + std::ptrdiff_t{y} * window_.sample.width + from;
    for (int x = 0; x < end - begin; ++x) at[x] ^= 1;
  }

  // What is marked becomes whole.
  void finish() const {
    if (left_ >= right_) return;
    const int end = std::min(bottom_ + 1, window_.place.height);
    for (int y = top_ + 1; y < end; ++y) {
      std::uint8_t* const row = row_at(out_, y);
      const std::uint8_t* const above = row_at(out_, y - 1);
      for (int x = left_; x < right_; ++x) row[x] ^= above[x];
    }
  }

  // Joins what was drawn to another drawing, and clears it.
  void move_to(std::uint8_t* other) const {
    for (int y = top_; y < window_.place.height && left_ < right_; ++y) {
      std::uint8_t* const row = row_at(out_, y);
      std::uint8_t* const to = other + (row - scratch_.another_.data());
      for (int x = left_; x < right_; ++x) to[x] |= row[x];
      std::fill(row + left_, row + right_, std::uint8_t{0});
    }
  }

  // Source  rleFrPoly of cocoapi's common/maskApi.c: the outline on a grid five times as fine; of it, what crosses the middle of a
  //         column of pixels
  void mark_polygon(const double* points, std::size_t count, double across, double down) {
    const auto corner = [&](std::size_t i) {
      return Corner{fine(points[2 * i] * across), fine(points[2 * i + 1] * down)};
    };
    for (std::size_t i = 0; i < count; ++i) mark_edge(corner(i), corner((i + 1) % count));
  }

  void mark_runs(const std::uint32_t* runs, std::size_t count) {
    const std::int64_t height = window_.image.height;
    std::int64_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t end = at + runs[i];
      if (i % 2 == 1 && end > at) {
        for (std::int64_t column = at / height; column * height < end; ++column) {
          mark(column, std::max(at - column * height, std::int64_t{0}));
          mark(column, std::min(end - column * height, height));
        }
      }
      at = end;
    }
  }

 private:
  static constexpr std::int64_t kFineness = 5;

  struct Corner {
    std::int64_t x;
    std::int64_t y;
  };

  // Towards zero, as C's int(5 x + 0.5).
  static std::int64_t fine(double coordinate) {
    constexpr double kFarthest = std::int64_t{1} << 40;  // far from every image
    return static_cast<std::int64_t>(
        std::clamp(kFineness * coordinate + 0.5, -kFarthest, kFarthest));
  }

  void mark_edge(Corner from, Corner to) {
    const std::int64_t wide = std::abs(to.x - from.x);
    const std::int64_t high = std::abs(to.y - from.y);
    if (wide == 0) return;
    const bool is_flat = wide >= high;
    if (is_flat ? from.x > to.x : from.y > to.y) std::swap(from, to);
    const double slope = is_flat ? static_cast<double>(to.y - from.y) / static_cast<double>(wide)
                                 : static_cast<double>(to.x - from.x) / static_cast<double>(high);
    // The middle of column c is between 5 c + 2 and 5 c + 3.
    const std::int64_t least = std::min(from.x, to.x);
    const std::int64_t first = std::max(std::int64_t{0}, (least + 2) / kFineness);
    const std::int64_t end =
        std::min(std::int64_t{window_.image.width}, (std::max(from.x, to.x) + 2) / kFineness);
    for (std::int64_t column = first; column < end; ++column) {
      const std::int64_t before = kFineness * column + 2;
      if (is_flat) {
        const auto height_at = [&](std::int64_t step) {
          return static_cast<std::int64_t>(static_cast<double>(from.y) +
                                           slope * static_cast<double>(step) + 0.5);
        };
        mark_crossing(column, std::min(height_at(before - from.x), height_at(before + 1 - from.x)));
      } else {
        mark_crossing(column, from.y + last_step(from, slope, high, before));
      }
    }
  }

  // Of a steep edge the last step before it crosses from `before` to the next fine column, or back.
  static std::int64_t last_step(const Corner& from, double slope, std::int64_t steps,
                                std::int64_t before) {
    const auto is_across = [&](std::int64_t step) {
      const auto x = static_cast<std::int64_t>(static_cast<double>(from.x) +
                                               slope * static_cast<double>(step) + 0.5);
      return slope > 0 ? x > before : x <= before;
    };
    const double guess = (static_cast<double>(before) + 0.5 - static_cast<double>(from.x)) / slope;
    std::int64_t step = std::clamp(static_cast<std::int64_t>(guess), std::int64_t{0}, steps - 1);
    while (step > 0 && is_across(step)) --step;
    while (step < steps - 1 && !is_across(step + 1)) ++step;
    return step;
  }

  void mark_crossing(std::int64_t column, std::int64_t fine_y) {
    const double y = (static_cast<double>(fine_y) + 0.5) / kFineness - 0.5;
    const double last = window_.image.height;
    mark(column, static_cast<std::int64_t>(std::ceil(std::clamp(y, 0.0, last))));
  }

  [[nodiscard]] std::uint8_t* row_at(std::uint8_t* first, int y) const {
    return first + std::ptrdiff_t{y} * window_.sample.width;
  }

  const Window& window_;
  Segmentations& scratch_;
  std::uint8_t* out_ = nullptr;
  // What has marks, of the place.
  int left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;
};

void Segmentations::see(const Window& window) {
  window_ = &window;
  first_outputs(window.across, window.image.width, first_column_);
  first_outputs(window.down, window.image.height, first_row_);
}

Result<void> Segmentations::draw(std::size_t number, bool normalized, std::uint8_t* out) {
  const Window& window = *window_;
  const Shape& shape = shapes_[number];
  const auto refuse = [&](const std::string& what) {
    return Fault{.reason = fmt::format("the segmentation of instance {}: {}", number, what)};
  };
  const std::size_t pixels = static_cast<std::size_t>(window.sample.height) *
                             static_cast<std::size_t>(window.sample.width);
  std::fill_n(out, pixels, std::uint8_t{0});
  Drawing drawing(*this);
  if (shape.has_runs) {
    if (auto fits = check_mask_size(shape.height, shape.width, window); !fits)
      return refuse(fits.fault().reason);
    drawing.begin(out);
    drawing.mark_runs(runs_.data() + shape.begin, shape.end - shape.begin);
    drawing.finish();
    return {};
  }
  const double across = normalized ? window.image.width : 1;
  const double down = normalized ? window.image.height : 1;
  for (std::size_t polygon = shape.begin; polygon < shape.end; ++polygon) {
    const std::size_t begin = polygon == 0 ? 0 : ends_[polygon - 1];
    const double* const points = points_.data() + begin;
    const std::size_t count = ends_[polygon] - begin;
    if (normalized &&
        std::any_of(points, points + count, [](double at) { return at > kNoFraction; }))
      return refuse(std::string(kInPixels));
    const bool is_first = polygon == shape.begin;
    if (!is_first && another_.size() < pixels) another_.resize(pixels);
    drawing.begin(is_first ? out : another_.data());
    drawing.mark_polygon(points, count / 2, across, down);
    drawing.finish();
    if (!is_first) drawing.move_to(out);
  }
  return {};
}

}  // namespace penstock::transform
