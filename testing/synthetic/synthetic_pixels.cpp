#include "testing/synthetic/synthetic_pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "testing/synthetic/synthetic_noise.hpp"

namespace penstock::testing {

namespace {

constexpr std::uint32_t kOperation = 0x53594E54;  // any number that no operation of a plan has

// Which of an image's random sequences is which.
enum Stream : std::uint16_t { kPlan, kScene, kLumaGrain, kChromaGrain, kFirstField };

constexpr int kUsualSide = 433;  // sqrt(500 * 375)

void choose_size(Random& random, ImagePlan& plan) {
  struct Usual {
    double until;
    int width;
    int height;
  };
  constexpr Usual kUsual[] = {
      {0.40, 500, 375}, {0.52, 500, 333}, {0.63, 375, 500}, {0.69, 333, 500}, {0.74, 500, 500}};
  constexpr double kSmallUntil = 0.90;
  constexpr double kMediumUntil = 0.98;

  const double pick = random.uniform();
  for (const Usual& usual : kUsual) {
    if (pick >= usual.until) continue;
    plan.width = usual.width;
    plan.height = usual.height;
    return;
  }
  const auto side = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  if (pick < kSmallUntil) {
    plan.width = side(90, 400);
    plan.height = side(90, 400);
  } else if (pick < kMediumUntil) {
    plan.width = side(400, 800);
    plan.height = side(400, 800);
  } else {
    plan.width = side(1000, 2400);
    plan.height = plan.width * side(60, 80) / 100;
    if (random.below(4) == 0) std::swap(plan.width, plan.height);
  }
}

void choose_encoding(Random& random, ImagePlan& plan) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  const double quality = random.uniform();
  const bool large = std::max(plan.width, plan.height) >= 1000;
  if (large || quality < 0.18) {
    plan.quality = between(75, 92);
  } else if (quality < 0.30) {
    plan.quality = between(90, 98);
  } else {
    plan.quality = 96;
  }
  const double sampling = random.uniform();
  if (sampling < 0.02) {
    plan.sampling = ChromaSampling::grey;
  } else if (sampling < 0.06) {
    plan.sampling = ChromaSampling::s422;
  } else if (sampling < 0.32) {
    plan.sampling = ChromaSampling::s420;
  }
  plan.progressive = random.below(100) == 0;
}

// A class's colour: a point on a diamond around neutral grey, in units of the diamond's radius.
struct Tint {
  float cb;
  float cr;
};
Tint tint_of(int label, int classes) {
  const float t = 4.0F * static_cast<float>(label) / static_cast<float>(classes);
  const auto wave = [](float at) {  // a triangle wave of period 4: 1 at 0, -1 at 2
    const float place = at - 4.0F * std::floor(at / 4.0F);
    return place < 2.0F ? 1.0F - place : place - 3.0F;
  };
  return {wave(t), wave(t - 1.0F)};
}

// A class's texture: stripes along one axis, the other, both (checks), or none.
struct Stripes {
  float per_x = 0;
  float per_y = 0;
  float phase_x = 0;
  float phase_y = 0;
  float height = 0;  // of the luma wave
};

float triangle(float at) noexcept {
  const float place = at - std::floor(at);
  return place < 0.5F ? 4.0F * place - 1.0F : 3.0F - 4.0F * place;
}

// A flat patch with a hard edge: an ellipse, or a box whose sides lean.
struct Patch {
  bool round = false;
  float x = 0;
  float y = 0;
  float half_width = 0;
  float half_height = 0;
  float lean = 0;
  float luma = 0;
  float saturation = 0;
};

float between(Random& random, float low, float high) {
  return static_cast<float>(random.uniform(low, high));
}

class Painter {
 public:
  explicit Painter(const ImagePlan& plan)
      : plan_(plan),
        width_(static_cast<std::size_t>(plan.width)),
        scale_(std::sqrt(static_cast<float>(plan.width) * static_cast<float>(plan.height)) /
               static_cast<float>(kUsualSide)),
        tint_(tint_of(plan.label, plan.classes)) {
    Random random(plan.key, {.number = plan.number}, kScene);
    base_ = between(random, 95, 160);
    colour_ = between(random, 46, 58);
    detail_ = between(random, 0.2F, 3.2F);
    choose_stripes(random);
    choose_patches(random);
    for (const Octave& octave : kCoarse) add_field(coarse_, octave);
    for (const Octave& octave : kFine) add_field(fine_, octave);
    for (const Octave& octave : kChroma) {
      add_field(cb_, octave);
      add_field(cr_, octave);
    }
    add_field(mask_, kMask);
    add_field(saturation_, kSaturation);
  }

  std::vector<std::uint8_t> paint() {
    const bool grey = plan_.sampling == ChromaSampling::grey;
    const std::size_t row_bytes = width_ * (grey ? 1 : 3);
    std::vector<std::uint8_t> pixels(row_bytes * static_cast<std::size_t>(plan_.height));
    for (int y = 0; y < plan_.height; ++y) {
      std::uint8_t* const out = pixels.data() + static_cast<std::size_t>(y) * row_bytes;
      paint_luma(y);
      if (grey) {
        store(luma_row_, out, 1);
        continue;
      }
      paint_chroma(y);
      store(luma_row_, out, 3);
      store(cb_row_, out + 1, 3);
      store(cr_row_, out + 2, 3);
    }
    return pixels;
  }

 private:
  using Row = std::vector<float>;

  struct Octave {
    int cell;  // in an image of the usual size
    float amplitude;
  };
  struct Field {
    SmoothNoise noise;
    float amplitude;
  };
  // Photographs have about the same contrast at every scale.
  static constexpr Octave kCoarse[] = {{150, 14}, {71, 14}, {33, 13}};
  static constexpr Octave kFine[] = {{15, 14}, {7, 15}, {3, 17}};
  static constexpr Octave kChroma[] = {{41, 3}, {11, 3}, {4, 2.5F}};
  static constexpr Octave kMask = {57, 0.75F};
  static constexpr Octave kSaturation = {47, 0.2F};
  static constexpr float kLumaGrainHeight = 22;
  static constexpr float kChromaGrainHeight = 6;

  void add_field(std::vector<Field>& fields, const Octave& octave) {
    const auto cell = static_cast<int>(static_cast<float>(octave.cell) * scale_ + 0.5F);
    const Random random(plan_.key, {.number = plan_.number}, next_stream());
    fields.push_back(
        {SmoothNoise(random, plan_.width, plan_.height, std::max(2, cell)), octave.amplitude});
  }
  std::uint16_t next_stream() noexcept {
    return static_cast<std::uint16_t>(kFirstField + fields_++);
  }

  void choose_stripes(Random& random) {
    const float side = static_cast<float>(std::min(plan_.width, plan_.height));
    const float stripes = between(random, 7, 10) / side;
    stripes_.phase_x = between(random, 0, 1);
    stripes_.phase_y = between(random, 0, 1);
    stripes_.height = between(random, 16, 24);
    if (plan_.label % 4 == 1 || plan_.label % 4 == 3) stripes_.per_x = stripes;
    if (plan_.label % 4 == 2 || plan_.label % 4 == 3) stripes_.per_y = stripes;
  }

  void choose_patches(Random& random) {
    patches_.resize(5 + random.below(10));
    for (Patch& patch : patches_) {
      const float side =
          std::sqrt(static_cast<float>(plan_.width) * static_cast<float>(plan_.height));
      patch.round = random.below(2) == 0;
      patch.x = between(random, 0, static_cast<float>(plan_.width));
      patch.y = between(random, 0, static_cast<float>(plan_.height));
      patch.half_width = side * between(random, 0.03F, 0.25F);
      patch.half_height = side * between(random, 0.03F, 0.25F);
      patch.lean = between(random, -0.7F, 0.7F);
      patch.luma = between(random, -30, 30);
      patch.saturation = between(random, -0.3F, 0.15F);
    }
  }

  void add(std::vector<Field>& fields, int y, Row& row) {
    for (Field& field : fields) {
      field.noise.row(y, scratch_);
      for (std::size_t x = 0; x < width_; ++x) row[x] += field.amplitude * scratch_[x];
    }
  }
  void add_grain(int y, Stream stream, float amplitude, Row& row) {
    // The row takes the epoch's place: a large image needs more numbers than one stream has.
    const Random random(plan_.key, {.number = plan_.number, .epoch = static_cast<std::uint32_t>(y)},
                        stream);
    grain_row(random, scratch_);
    for (std::size_t x = 0; x < width_; ++x) row[x] += amplitude * scratch_[x];
  }

  void paint_luma(int y) {
    std::fill(luma_row_.begin(), luma_row_.end(), 0.0F);
    add(fine_, y, luma_row_);
    add_grain(y, kLumaGrain, kLumaGrainHeight / std::max(1.0F, scale_), luma_row_);
    // Fine detail is patchy, as sky beside foliage.
    std::fill(mask_row_.begin(), mask_row_.end(), 0.8F);
    add(mask_, y, mask_row_);
    const float down = triangle(stripes_.per_y * static_cast<float>(y) + stripes_.phase_y);
    for (std::size_t x = 0; x < width_; ++x) {
      float wave = stripes_.per_y > 0 ? down : 0.0F;
      if (stripes_.per_x > 0) {
        const float across = triangle(stripes_.per_x * static_cast<float>(x) + stripes_.phase_x);
        wave = stripes_.per_y > 0 ? wave * across : across;
      }
      const float rough = mask_row_[x] * mask_row_[x] * detail_;
      luma_row_[x] = base_ + stripes_.height * wave + rough * luma_row_[x];
      mask_row_[x] = rough;
    }
    add(coarse_, y, luma_row_);
    std::fill(saturation_row_.begin(), saturation_row_.end(), 1.0F);
    for (const Patch& patch : patches_) add_patch(patch, y);
  }

  void add_patch(const Patch& patch, int y) {
    const float dy = static_cast<float>(y) - patch.y;
    const float ratio = dy / patch.half_height;
    if (ratio < -1.0F || ratio > 1.0F) return;
    const float half =
        patch.round ? patch.half_width * std::sqrt(1.0F - ratio * ratio) : patch.half_width;
    const float middle = patch.x + (patch.round ? 0.0F : patch.lean * dy);
    const auto limit = [&](float x) {
      return static_cast<std::size_t>(std::clamp(x, 0.0F, static_cast<float>(width_)));
    };
    for (std::size_t x = limit(middle - half); x < limit(middle + half); ++x) {
      luma_row_[x] += patch.luma;
      saturation_row_[x] += patch.saturation;
    }
  }

  void paint_chroma(int y) {
    add(saturation_, y, saturation_row_);
    std::fill(cb_row_.begin(), cb_row_.end(), 0.0F);
    std::fill(cr_row_.begin(), cr_row_.end(), 0.0F);
    add(cb_, y, cb_row_);
    add(cr_, y, cr_row_);
    add_grain(2 * y, kChromaGrain, kChromaGrainHeight / std::max(1.0F, scale_), cb_row_);
    add_grain(2 * y + 1, kChromaGrain, kChromaGrainHeight / std::max(1.0F, scale_), cr_row_);
    for (std::size_t x = 0; x < width_; ++x) {
      const float saturation = colour_ * std::clamp(saturation_row_[x], 0.35F, 1.4F);
      const float rough = std::min(mask_row_[x], 1.5F);
      cb_row_[x] = 128.0F + saturation * tint_.cb + rough * cb_row_[x];
      cr_row_[x] = 128.0F + saturation * tint_.cr + rough * cr_row_[x];
    }
  }

  void store(const Row& row, std::uint8_t* out, std::size_t stride) const {
    for (std::size_t x = 0; x < width_; ++x) {
      out[x * stride] = static_cast<std::uint8_t>(std::clamp(row[x], 0.0F, 255.0F) + 0.5F);
    }
  }

  const ImagePlan& plan_;
  std::size_t width_;
  float scale_;  // 1 for an image of the usual size
  Tint tint_;
  float base_ = 0;
  float colour_ = 0;
  float detail_ = 0;
  Stripes stripes_;
  std::vector<Patch> patches_;
  int fields_ = 0;
  std::vector<Field> coarse_, fine_, cb_, cr_, mask_, saturation_;
  Row scratch_ = Row(width_), luma_row_ = Row(width_), mask_row_ = Row(width_),
      saturation_row_ = Row(width_), cb_row_ = Row(width_), cr_row_ = Row(width_);
};

}  // namespace

ImagePlan plan_image(std::uint64_t seed, std::uint64_t number, int classes) {
  ImagePlan plan;
  plan.key = RandomKey(seed, kOperation);
  plan.number = number;
  plan.classes = classes;
  plan.label = static_cast<int>(number % static_cast<std::uint64_t>(classes));
  Random random(plan.key, {.number = number}, kPlan);
  choose_size(random, plan);
  choose_encoding(random, plan);
  return plan;
}

std::vector<std::uint8_t> paint_image(const ImagePlan& plan) { return Painter(plan).paint(); }

}  // namespace penstock::testing
