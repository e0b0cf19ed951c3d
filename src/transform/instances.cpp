#include "src/transform/instances.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "src/augment/run.hpp"
#include "src/transform/crops.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/masks.hpp"
#include "src/transform/segmentations.hpp"

namespace penstock::transform {

namespace {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  [[nodiscard]] double width() const noexcept { return right - left; }
  [[nodiscard]] double height() const noexcept { return bottom - top; }
  [[nodiscard]] double area() const noexcept { return width() * height(); }
  [[nodiscard]] bool is_finite() const noexcept {
    return std::isfinite(left) && std::isfinite(top) && std::isfinite(right) &&
           std::isfinite(bottom);
  }
};

Box cut(const Box& box, const Region& visible) {
  const double right = visible.x + visible.width;
  const double bottom = visible.y + visible.height;
  return {std::clamp(box.left, visible.x, right), std::clamp(box.top, visible.y, bottom),
          std::clamp(box.right, visible.x, right), std::clamp(box.bottom, visible.y, bottom)};
}

// A perspective shows nothing where its denominator, 1 / w, is 8 or more: augment/sampling.hpp.
constexpr double kLeastW = 1.0 / 8;

struct Projected {
  double x = 0;
  double y = 0;
  double w = 0;

  [[nodiscard]] bool is_shown() const noexcept { return w > kLeastW; }
  [[nodiscard]] Point point() const noexcept { return {x / w, y / w}; }
};

Projected project(const Point& point, const PointMove& move) {
  const auto& m = move.matrix;
  return {m[0] * point.x + m[1] * point.y + m[2], m[3] * point.x + m[4] * point.y + m[5],
          m[6] * point.x + m[7] * point.y + m[8]};
}

// The upright box around what is shown of another one; empty where nothing is.
Box moved(const Box& box, const PointMove& move) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Box around{kInfinity, kInfinity, -kInfinity, -kInfinity};
  const auto add = [&](const Point& at) {
    around = {std::min(around.left, at.x), std::min(around.top, at.y), std::max(around.right, at.x),
              std::max(around.bottom, at.y)};
  };
  const std::array corners{project({box.left, box.top}, move), project({box.right, box.top}, move),
                           project({box.right, box.bottom}, move),
                           project({box.left, box.bottom}, move)};
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Projected& one = corners[i];
    const Projected& next = corners[(i + 1) % corners.size()];
    if (one.is_shown()) add(one.point());
    if (one.is_shown() == next.is_shown()) continue;
    const double part = (kLeastW - one.w) / (next.w - one.w);
    add({(one.x + part * (next.x - one.x)) / kLeastW, (one.y + part * (next.y - one.y)) / kLeastW});
  }
  return around;
}

Region whole(ImageSize image) {
  return {.x = 0,
          .y = 0,
          .width = static_cast<double>(image.width),
          .height = static_cast<double>(image.height)};
}

// Not finite where there is none.
std::array<double, 9> inverse_of(const std::array<double, 9>& m) {
  std::array<double, 9> inverse{
      m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
      m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
      m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  const double determinant = m[0] * inverse[0] + m[1] * inverse[3] + m[2] * inverse[6];
  for (double& number : inverse) number /= determinant;
  return inverse;
}

// A step says where a pixel comes from, with the doubled coordinates of its middle.
std::array<double, 9> source_matrix(const augment::Step& step) {
  const auto scaled = [](std::int64_t value, int bits) {
    return std::ldexp(static_cast<double>(value), -bits);
  };
  const bool is_affine = step.kind == augment::StepKind::affine;
  const int bits = is_affine ? augment::kCoordinateBits : augment::kNumeratorBits;
  std::array<double, 9> matrix{};
  for (std::size_t i = 0; i < 6; ++i)
    matrix[i] = scaled(step.values[i], i % 3 == 2 ? bits : bits - 1);
  for (std::size_t i = 6; i < 8 && !is_affine; ++i)
    matrix[i] = scaled(step.values[i], augment::kDenominatorBits - 1);
  matrix[8] = 1;
  return matrix;
}

// Else they are masks.
bool are_segmentations(DType dtype, const Shape& shape) {
  return dtype == DType::u8 && shape.rank() == 1;
}

double number_at(const ConstTensorView& view, std::size_t index) {
  return view.dtype() == DType::f32 ? static_cast<double>(view.data<float>()[index])
                                    : view.data<double>()[index];
}

void check_options(const std::string& caller, const Instances& options) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: instances: {}", caller, what));
  };
  if (options.boxes.empty() && options.keypoints.empty())
    refuse("name the field of the boxes, or that of the keypoints");
  if (options.boxes.empty() && !options.fields.empty())
    refuse(
        fmt::format("they are removed by their boxes: name these, or leave out fields, of "
                    "which the first is '{}'",
                    options.fields.front()));
  for (const auto& [what, name] :
       {std::pair("masks", options.masks), std::pair("corners", options.corners)})
    if (options.boxes.empty() && !name.empty())
      refuse(fmt::format("they are removed by their boxes: name these, or leave out the {} '{}'",
                         what, name));
  if (options.boxes.empty() && options.middle)
    refuse("middle is that of a box, and these have no field: name it in boxes");
  if (!(options.min_size >= 0 && std::isfinite(options.min_size)))
    refuse(fmt::format("min_size is 0 pixels or more, found {}", options.min_size));
  if (!(options.min_visible >= 0 && options.min_visible <= 1))
    refuse(fmt::format("min_visible is a fraction from 0 to 1, found {}", options.min_visible));
  if (options.flip_index.empty()) return;
  if (options.keypoints.empty()) refuse("flip_index is for keypoints, and these have no field");
  std::vector<int> sorted = options.flip_index;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (std::cmp_not_equal(sorted[i], i))
      refuse(fmt::format(
          "flip_index has each number from 0 to {} once, and {} is {}", sorted.size() - 1, i,
          std::ranges::count(sorted, static_cast<int>(i)) == 0 ? "missing" : "there twice"));
}

}  // namespace

PointMove point_move(const Window& window) {
  const Region& region = window.region;
  const PixelRect& place = window.place;
  const double across = place.width / region.width;
  const double down = place.height / region.height;
  PointMove move{.matrix = {across, 0, place.x - region.x * across,  //
                            0, down, place.y - region.y * down,      //
                            0, 0, 1},
                 .visible = {.x = static_cast<double>(place.x),
                             .y = static_cast<double>(place.y),
                             .width = static_cast<double>(place.width),
                             .height = static_cast<double>(place.height)},
                 .mirrored = window.flipped};
  if (!window.flipped) return move;
  const double width = window.sample.width;
  move.matrix[0] = -move.matrix[0];
  move.matrix[2] = width - move.matrix[2];
  move.visible.x = width - move.visible.x - move.visible.width;
  return move;
}

PointMove point_move(const augment::Step& step, ImageSize image) {
  PointMove move{.visible = whole(image)};
  switch (step.kind) {
    case augment::StepKind::flip:
      move.matrix[0] = -1;
      move.matrix[2] = image.width;
      move.mirrored = true;
      break;
    case augment::StepKind::vertical_flip:
      move.matrix[4] = -1;
      move.matrix[5] = image.height;
      move.mirrored = true;
      break;
    default:
      move.matrix = inverse_of(source_matrix(step));
  }
  return move;
}

MovedInstances::MovedInstances(std::string caller, std::optional<Instances> options,
                               std::span<const std::string> taken, bool is_first)
    : caller_(std::move(caller)), options_(std::move(options)), is_first_(is_first) {
  if (!options_) return;
  check_options(caller_, *options_);
  for (const std::string& name :
       {options_->boxes, options_->keypoints, options_->masks, options_->corners})
    if (!name.empty()) names_.push_back(name);
  names_.insert(names_.end(), options_->fields.begin(), options_->fields.end());
  check_names(caller_, "field of instances", names_, taken);
}

MovedInstances::MovedInstances(std::string caller, std::optional<Instances> options,
                               const Crop& crop, std::span<const std::string> taken)
    : MovedInstances(std::move(caller), std::move(options), taken, true) {
  if (needs_boxes(crop) && (!options_ || options_->boxes.empty()))
    throw std::invalid_argument(fmt::format(
        "{}: {} is chosen by the boxes of an image: name their field in the option instances",
        caller_, crop.to_string()));
  if (options_ && crop.parts() != 0)
    throw std::invalid_argument(fmt::format("{}: instances follow one crop, and {} makes {}",
                                            caller_, crop.to_string(), crop.parts()));
}

void MovedInstances::describe(ImageFields& takes) const {
  if (!options_) return;
  takes.fields.insert(takes.fields.end(), names_.begin(), names_.end());
  takes.boxes = options_->boxes;
  takes.keypoints = options_->keypoints;
  takes.masks = options_->masks;
  takes.corners = options_->corners;
  takes.format = options_->format;
  takes.normalized = options_->normalized;
  takes.flip_index = options_->flip_index;
}

void MovedInstances::bind(std::span<const FieldSpec> fields, ImageSize sample,
                          Binding& binding) const {
  if (!options_) return;
  const auto refuse = [&](const std::string& expected, const FieldSpec& found) {
    throw std::invalid_argument(fmt::format(
        "{}: {}; found {}{}", caller_, expected, found.to_string(),
        !found.shape.is_dynamic() && found.shape.rank() > 0
            ? ": it has one number of rows in all samples, as pad gives it; put pad behind"
            : ""));
  };
  for (const std::string& name : names_) {
    for (const auto& [what, field, sources] :
         {std::tuple("masks", &options_->masks, "coco and yolo have"),
          std::tuple("corners", &options_->corners, "yolo has")})
      if (name == *field && std::ranges::find(fields, name, &FieldSpec::name) == fields.end())
        throw std::invalid_argument(
            fmt::format("{0}: there is no field '{1}' for the {2}: {3} one with {2} = true",
                        caller_, name, what, sources));
    const std::size_t input = find_field(fields, name, caller_);
    FieldSpec field = fields[input];
    const auto extents = field.shape.extents();
    const bool has_rows =
        !extents.empty() && extents[0] == kDynamic && std::ranges::count(extents, kDynamic) == 1;
    const bool is_real = field.dtype == DType::f32 || field.dtype == DType::f64;
    if (name == options_->boxes) {
      if (!has_rows || !is_real || extents.size() != 2 || extents[1] != 4)
        refuse("boxes are f32 or f64 [?,4], which a map can make of others", field);
      field.dtype = DType::f32;
    } else if (name == options_->keypoints) {
      if (!has_rows || !is_real || extents.size() != 3 || extents[1] == 0 || extents[2] != 3)
        refuse("keypoints are f32 or f64 [?,k,3], of x, y and visibility", field);
      if (!options_->flip_index.empty() &&
          std::cmp_not_equal(options_->flip_index.size(), extents[1]))
        throw std::invalid_argument(
            fmt::format("{}: flip_index has {} numbers, and an instance {} keypoints: {}", caller_,
                        options_->flip_index.size(), extents[1], field.to_string()));
      field.dtype = DType::f32;
    } else if (name == options_->corners) {
      if (!is_real || field.shape != Shape{kDynamic, 4, 2})
        refuse("corners are f32 or f64 [?,4,2], of x and y", field);
      field.dtype = DType::f32;
    } else if (name == options_->masks) {
      const bool are_bytes = field.dtype == DType::u8 || field.dtype == DType::boolean;
      const Shape made{kDynamic, sample.height, sample.width};
      const bool are_images = are_bytes && extents.size() == 3 && extents[0] == kDynamic;
      if (is_first_ ? !are_images && !are_segmentations(field.dtype, field.shape)
                    : !are_bytes || field.shape != made)
        refuse(is_first_ ? "masks are segmentations, u8 [?], or u8 or bool [?,H,W]"
                         : "masks are u8 or bool [?,H,W] of the image's height and width, which "
                           "decode_image makes of segmentations",
               field);
      field.shape = made;
    } else if (!has_rows) {
      refuse("a field of instances has one row for each, [?,...]", field);
    }
    binding.inputs.push_back(input);
    binding.outputs.push_back(std::move(field));
  }
}

namespace {

// What rounding may take from a size of pixels in f32, and from a product of fractions.
constexpr double kRoundedSize = 1e-3;
constexpr double kRoundedShare = 1e-9;

// Whether all of several points lie in the first pixel, as fractions of an image's sides do.
class FirstPixel {
 public:
  void add(const Point& point) noexcept {
    ++count_;
    has_all_ = has_all_ && point.x >= 0 && point.y >= 0 && point.x < 1 && point.y < 1;
    has_any_ = has_any_ || point.x > 0 || point.y > 0;
  }
  [[nodiscard]] bool has_all() const noexcept { return count_ > 1 && has_all_ && has_any_; }

 private:
  int count_ = 0;
  bool has_all_ = true;
  bool has_any_ = false;
};

}  // namespace

// What a thread keeps between images.
struct MovedInstances::Scratch {
  std::vector<Box> boxes;
  std::vector<std::size_t> kept;  // numbers of the rows that stay
  std::vector<Point> corners;     // of these rows
  Segmentations segmentations;

  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
};

// The instances of one image, on their way.
class MovedInstances::Rows {
 public:
  Rows(const MovedInstances& of, const Movement& movement)
      : of_(of),
        options_(*of.options_),
        movement_(movement),
        image_(movement.image),
        moves_(movement.moves) {}

  Result<void> move_boxes(const ConstTensorView& in) {
    const auto count = static_cast<std::size_t>(in.shape()[0]);
    scratch_.boxes.resize(count);
    scratch_.kept.clear();
    FirstPixel first_pixel;
    for (std::size_t row = 0; row < count; ++row) {
      auto read = box_at(in, row);
      if (!read) return std::move(read.fault());
      Box box = *read;
      first_pixel.add({box.left, box.top});
      first_pixel.add({box.right, box.bottom});
      if (follow(box)) scratch_.kept.push_back(row);
      scratch_.boxes[row] = box;
    }
    return check(first_pixel, options_.boxes);
  }

  Result<std::vector<Region>> regions(const ConstTensorView& in) const {
    std::vector<Region> all;
    for (std::size_t row = 0; row < static_cast<std::size_t>(in.shape()[0]); ++row) {
      auto read = box_at(in, row);
      if (!read) return std::move(read.fault());
      const Box box = cut(*read, whole(image_));
      if (box.width() > 0 && box.height() > 0)
        all.push_back({.x = box.left, .y = box.top, .width = box.width(), .height = box.height()});
    }
    return all;
  }

  void keep_all(std::size_t count) {
    scratch_.kept.resize(count);
    for (std::size_t row = 0; row < count; ++row) scratch_.kept[row] = row;
  }

  void write_boxes(float* out) const {
    for (const std::size_t row : scratch_.kept) {
      const Box& box = scratch_.boxes[row];
      for (const double number : {box.left, box.top, box.right, box.bottom})
        *out++ = static_cast<float>(number);
    }
  }

  Result<void> write_keypoints(const ConstTensorView& in, float* out) const {
    const auto points = static_cast<std::size_t>(in.shape()[1]);
    const bool exchanged = !options_.flip_index.empty() &&
                           std::ranges::count(moves_, true, &PointMove::mirrored) % 2 == 1;
    FirstPixel first_pixel;
    for (const std::size_t row : scratch_.kept)
      for (std::size_t k = 0; k < points; ++k, out += 3) {
        const std::size_t from = exchanged ? static_cast<std::size_t>(options_.flip_index[k]) : k;
        const std::size_t at = (row * points + from) * 3;
        const double visibility = number_at(in, at + 2);
        Point point{number_at(in, at), number_at(in, at + 1)};
        const auto refuse = [&](std::string_view what) {
          return fault_of(options_.keypoints,
                          fmt::format("keypoint {} of instance {}, ({}, {}, {}), {}", from, row,
                                      point.x, point.y, visibility, what));
        };
        if (!std::isfinite(visibility) ||
            (visibility != 0 && !(std::isfinite(point.x) && std::isfinite(point.y))))
          return refuse("is not finite");
        if (visibility != 0 && options_.normalized && std::max(point.x, point.y) > kNoFraction)
          return refuse(kInPixels);
        if (visibility != 0) first_pixel.add(point);
        const bool is_visible = visibility != 0 && follow(point);
        out[0] = is_visible ? static_cast<float>(point.x) : 0;
        out[1] = is_visible ? static_cast<float>(point.y) : 0;
        out[2] = is_visible ? static_cast<float>(visibility) : 0;
      }
    return check(first_pixel, options_.keypoints);
  }

  // Without the instances of which a corner is not shown.
  Result<void> move_corners(const ConstTensorView& in) {
    constexpr std::size_t kCorners = 4;
    scratch_.corners.clear();
    FirstPixel first_pixel;
    std::size_t left = 0;
    for (const std::size_t row : scratch_.kept) {
      bool shows = true;
      for (std::size_t at = row * kCorners; at < (row + 1) * kCorners; ++at) {
        Point point{number_at(in, 2 * at), number_at(in, 2 * at + 1)};
        const auto refuse = [&](std::string_view what) {
          return fault_of(options_.corners,
                          fmt::format("corner {} of instance {}, ({}, {}), {}", at % kCorners, row,
                                      point.x, point.y, what));
        };
        if (!(std::isfinite(point.x) && std::isfinite(point.y))) return refuse("is not finite");
        if (options_.normalized && std::max(point.x, point.y) > kNoFraction)
          return refuse(kInPixels);
        first_pixel.add(point);
        if (options_.normalized) point = {point.x * image_.width, point.y * image_.height};
        for (const PointMove& move : moves_) {
          const Projected to = project(point, move);
          shows = shows && to.is_shown();
          point = to.point();
        }
        scratch_.corners.push_back(point);
      }
      if (shows)
        scratch_.kept[left++] = row;
      else
        scratch_.corners.resize(scratch_.corners.size() - kCorners);
    }
    scratch_.kept.resize(left);
    return check(first_pixel, options_.corners);
  }

  void write_corners(float* out) const {
    for (const Point& point : scratch_.corners) {
      *out++ = static_cast<float>(point.x);
      *out++ = static_cast<float>(point.y);
    }
  }

  // Of segmentations, which are read for it. Nothing is wrong with other fields.
  Result<std::int64_t> count_rows(const ConstTensorView& in) const {
    if (!are_segmentations(in.dtype(), in.shape())) return in.shape()[0];
    const auto bytes = in.bytes();
    auto read =
        scratch_.segmentations.read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!read) return fault_of(options_.masks, read.fault().reason);
    return static_cast<std::int64_t>(scratch_.segmentations.count());
  }

  Result<void> write_masks(const ConstTensorView& in, const TensorView& to) const {
    auto* out = reinterpret_cast<std::uint8_t*>(to.raw());
    const ImageSize& sample = movement_.sample;
    const auto pixels =
        static_cast<std::size_t>(sample.height) * static_cast<std::size_t>(sample.width);
    const bool are_drawn = are_segmentations(in.dtype(), in.shape());
    const std::size_t of_one =
        are_drawn ? 0 : in.byte_size() / static_cast<std::size_t>(in.shape()[0]);
    if (!are_drawn && movement_.window != nullptr)
      if (auto fits = check_mask_size(in.shape()[1], in.shape()[2], *movement_.window); !fits)
        return fault_of(options_.masks, fits.fault().reason);
    if (are_drawn) {
      scratch_.segmentations.see(*movement_.window);
      FirstPixel first_pixel;
      const auto corners = scratch_.segmentations.corners();
      for (std::size_t i = 0; i + 1 < corners.size(); i += 2)
        first_pixel.add({corners[i], corners[i + 1]});
      if (auto fits = check(first_pixel, options_.masks); !fits) return fits;
    }
    for (const std::size_t row : scratch_.kept) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(in.raw()) + row * of_one;
      if (are_drawn) {
        if (auto drawn = scratch_.segmentations.draw(row, options_.normalized, out); !drawn)
          return fault_of(options_.masks, drawn.fault().reason);
      } else if (movement_.window != nullptr) {
        crop_mask_of_bytes(from, *movement_.window, out);
      } else {
        augment::run(movement_.steps, from, {sample.height, sample.width, 1}, out);
      }
      out += pixels;
    }
    return {};
  }

  void copy_rows(const ConstTensorView& in, const TensorView& out) const {
    const std::size_t bytes = in.byte_size() / static_cast<std::size_t>(in.shape()[0]);
    std::byte* to = out.raw();
    for (const std::size_t row : scratch_.kept) {
      if (bytes != 0) std::memcpy(to, in.raw() + row * bytes, bytes);
      to += bytes;
    }
  }

  [[nodiscard]] std::size_t left() const noexcept { return scratch_.kept.size(); }
  // Of the field of the boxes or, without boxes, of the keypoints.
  [[nodiscard]] Fault fault(const std::string& reason) const {
    return fault_of(of_.names_.front(), reason);
  }
  [[nodiscard]] static Fault fault_of(const std::string& field, const std::string& reason) {
    return Fault{.reason = fmt::format("'{}': {}", field, reason)};
  }

 private:
  [[nodiscard]] Result<void> check(const FirstPixel& points, const std::string& field) const {
    if (!of_.is_first_ || options_.normalized || !points.has_all()) return {};
    return fault_of(field,
                    "all of them lie in the first pixel: set normalized = true if they are "
                    "fractions of the image's width and height");
  }

  // In pixels of the image.
  Result<Box> box_at(const ConstTensorView& in, std::size_t row) const {
    std::array<double, 4> given{};
    for (std::size_t i = 0; i < 4; ++i) given[i] = number_at(in, 4 * row + i);
    const auto refuse = [&](std::string_view what) {
      return fault(fmt::format("the box of instance {}, ({}, {}, {}, {}), {}", row, given[0],
                               given[1], given[2], given[3], what));
    };
    Box box{given[0], given[1], given[2], given[3]};
    if (!box.is_finite()) return refuse("is not finite");
    switch (options_.format) {
      case BoxFormat::xyxy:
        if (box.width() < 0 || box.height() < 0)
          return refuse("ends before it begins: set format = xywh or cxcywh if it has another one");
        break;
      case BoxFormat::xywh:
        box = {given[0], given[1], given[0] + given[2], given[1] + given[3]};
        break;
      case BoxFormat::cxcywh:
        box = {given[0] - given[2] / 2, given[1] - given[3] / 2, given[0] + given[2] / 2,
               given[1] + given[3] / 2};
        break;
    }
    if (box.width() < 0 || box.height() < 0) return refuse("has a size below 0");
    if (!options_.normalized) return box;
    if (std::max(box.right, box.bottom) > kNoFraction) return refuse(kInPixels);
    return Box{box.left * image_.width, box.top * image_.height, box.right * image_.width,
               box.bottom * image_.height};
  }

  // False where it is to be removed.
  bool follow(Box& box) const {
    double visible = 1;
    Point middle{(box.left + box.right) / 2, (box.top + box.bottom) / 2};
    if (options_.middle && !follow_in_pixels(middle)) return false;
    const auto show = [&](const Region& region) {
      const double area = box.area();
      box = cut(box, region);
      if (area > 0) visible *= box.area() / area;
    };
    show(whole(image_));
    for (const PointMove& move : moves_) {
      if (!(box.width() > 0 && box.height() > 0)) return false;
      box = moved(box, move);
      if (!box.is_finite()) return false;  // nothing of it is shown
      show(move.visible);
    }
    const double least = options_.min_size - kRoundedSize;
    return box.width() > 0 && box.height() > 0 && box.width() >= least && box.height() >= least &&
           visible >= options_.min_visible - kRoundedShare;
  }

  // False where it is no longer in the image.
  bool follow(Point& point) const {
    if (options_.normalized) point = {point.x * image_.width, point.y * image_.height};
    return follow_in_pixels(point);
  }
  bool follow_in_pixels(Point& point) const {
    const auto shows = [&](const Region& region) {
      return point.x >= region.x && point.x <= region.x + region.width && point.y >= region.y &&
             point.y <= region.y + region.height;
    };
    if (!shows(whole(image_))) return false;
    return std::ranges::all_of(moves_, [&](const PointMove& move) {
      const Projected to = project(point, move);
      if (!to.is_shown()) return false;
      point = to.point();
      return shows(move.visible);
    });
  }

  const MovedInstances& of_;
  const Instances& options_;
  const Movement& movement_;
  ImageSize image_;
  std::span<const PointMove> moves_;
  Scratch& scratch_ = Scratch::of_this_thread();
};

Result<std::vector<Region>> MovedInstances::boxes(std::span<const ConstTensorView> in,
                                                  ImageSize image) const {
  const Movement none{.image = image, .sample = image};
  return Rows(*this, none).regions(in[0]);
}

std::vector<FieldSpec> MovedInstances::output_rows(std::span<const ConstTensorView> in,
                                                   ImageSize sample) const {
  std::vector<FieldSpec> rows;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const bool is_place = names_[i] == options_->boxes || names_[i] == options_->keypoints ||
                          names_[i] == options_->corners;
    const Shape row = names_[i] == options_->masks ? Shape{sample.height, sample.width}
                                                   : Shape(in[i].shape().extents().subspan(1));
    rows.push_back({names_[i], is_place ? DType::f32 : in[i].dtype(), row});
  }
  return rows;
}

Result<void> MovedInstances::move(std::span<const ConstTensorView> in, Outputs out,
                                  std::size_t first_output, const Movement& movement) const {
  if (!options_) return {};
  Rows rows(*this, movement);
  const std::int64_t count = in[0].shape()[0];
  for (std::size_t i = 1; i < names_.size(); ++i) {
    const bool are_masks = names_[i] == options_->masks;
    const auto found = are_masks ? rows.count_rows(in[i]) : Result(in[i].shape()[0]);
    if (!found) return found.fault();
    if (*found != count)
      return rows.fault(
          fmt::format("there are {} rows, and {} of '{}': each instance has one in "
                      "each field",
                      count, *found, names_[i]));
  }
  if (options_->boxes.empty())
    rows.keep_all(static_cast<std::size_t>(count));
  else if (auto done = rows.move_boxes(in[0]); !done)
    return done;
  if (const auto corners = std::ranges::find(names_, options_->corners); corners != names_.end())
    if (auto done = rows.move_corners(in[static_cast<std::size_t>(corners - names_.begin())]);
        !done)
      return done;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Shape row = names_[i] == options_->masks
                          ? Shape{movement.sample.height, movement.sample.width}
                          : Shape(in[i].shape().extents().subspan(1));
    const TensorView& to =
        out.resize(first_output + i, row.with_rows(static_cast<std::int64_t>(rows.left())));
    if (rows.left() == 0) continue;
    if (names_[i] == options_->boxes) {
      rows.write_boxes(to.data<float>());
    } else if (names_[i] == options_->keypoints) {
      if (auto done = rows.write_keypoints(in[i], to.data<float>()); !done) return done;
    } else if (names_[i] == options_->corners) {
      rows.write_corners(to.data<float>());
    } else if (names_[i] == options_->masks) {
      if (auto done = rows.write_masks(in[i], to); !done) return done;
    } else {
      rows.copy_rows(in[i], to);
    }
  }
  return {};
}

}  // namespace penstock::transform
