// timm's RandAugment: its strings, its operations and how strong they are.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "src/augment/draw.hpp"
#include "src/augment/steps.hpp"
#include "src/augment/variates.hpp"

namespace penstock::augment {

namespace {

constexpr double kLevels = 10;  // what a magnitude is divided by
constexpr double kUniformDeviation = 100;

[[noreturn]] void refuse(const std::string& config, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: '{}': {}", TimmRandAugment::kName, config, what));
}

enum class TimmChoice : std::uint8_t {
  autocontrast,
  equalize,
  invert,
  rotate,
  posterize,
  solarize,
  solarize_add,
  color,
  contrast,
  brightness,
  sharpness,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
};
constexpr std::size_t kTimmChoices = 15;

/// One operation of a level from 0 to config.most / kLevels.
class TimmOperation {
 public:
  TimmOperation(const TimmRandAugment& policy, bool increasing, const Drawing& drawing)
      : policy_(policy), increasing_(increasing), drawing_(drawing) {}

  void add(TimmChoice choice, double level) const {
    switch (choice) {
      case TimmChoice::autocontrast:
        return drawing_.add(plain_step(StepKind::autocontrast));
      case TimmChoice::equalize:
        return drawing_.add(plain_step(StepKind::equalize));
      case TimmChoice::invert:
        return drawing_.add(plain_step(StepKind::invert));
      case TimmChoice::posterize: {
        const auto bits = static_cast<int>(level * 4);
        return drawing_.add(posterize_step(increasing_ ? 4 - bits : bits));
      }
      case TimmChoice::solarize: {
        const int threshold = std::min(256, static_cast<int>(level * 256));
        return drawing_.add(solarize_step(increasing_ ? 256 - threshold : threshold));
      }
      case TimmChoice::solarize_add:
        return drawing_.add(solarize_add_step(std::min(128, static_cast<int>(level * 110)), 128));
      case TimmChoice::color:
        return enhance(StepKind::saturation, level);
      case TimmChoice::contrast:
        return enhance(StepKind::contrast, level);
      case TimmChoice::brightness:
        return enhance(StepKind::brightness, level);
      case TimmChoice::sharpness:
        return enhance(StepKind::sharpness, level);
      case TimmChoice::rotate:
        return move(rotation_matrix(either(level * 30), drawing_.size));
      case TimmChoice::shear_x:
        return move({1, either(level * 0.3), 0, 0, 1, 0});
      case TimmChoice::shear_y:
        return move({1, 0, 0, either(level * 0.3), 1, 0});
      case TimmChoice::translate_x:
        return move({1, 0, either(level * 0.45) * drawing_.size.width, 0, 1, 0});
      case TimmChoice::translate_y:
        return move({1, 0, 0, 0, 1, either(level * 0.45) * drawing_.size.height});
    }
  }

 private:
  [[nodiscard]] double either(double value) const {
    return drawing_.random.uniform() < 0.5 ? -value : value;
  }
  void enhance(StepKind kind, double level) const {
    drawing_.add(factor_step(
        kind, increasing_ ? std::max(0.1, 1 + either(level * 0.9)) : level * 1.8 + 0.1));
  }
  void move(const AffineMatrix& matrix) const {
    drawing_.add(affine_step(matrix, {sampler(), policy_.options.fill}));
  }
  [[nodiscard]] Sampler sampler() const {
    const auto given = policy_.options.interpolation;
    if (given == Interpolation::nearest) return Sampler::nearest;
    const bool cubic = given ? *given == Interpolation::bicubic : drawing_.happens(0.5);
    return cubic ? Sampler::pillow_bicubic : Sampler::pillow_bilinear;
  }

  const TimmRandAugment& policy_;
  bool increasing_;
  const Drawing& drawing_;
};

double drawn_magnitude(const TimmConfig& config, const Drawing& drawing) {
  double magnitude = config.magnitude;
  if (config.deviation > kUniformDeviation)
    magnitude = drawing.random.uniform(0, magnitude);
  else if (config.deviation > 0)
    magnitude += config.deviation * normal_variate(drawing.random);
  return std::clamp(magnitude, 0.0, config.most);
}

}  // namespace

TimmConfig parse_timm(const std::string& config) {
  constexpr std::string_view kBegin = "rand";
  constexpr double kMostOperations = 16;
  constexpr double kMostNumber = 1e9;
  TimmConfig parsed;
  std::string_view rest = config;
  const auto next_section = [&rest] {
    const std::string_view section = rest.substr(0, rest.find('-'));
    rest.remove_prefix(std::min(rest.size(), section.size() + 1));
    return section;
  };
  if (next_section() != kBegin) refuse(config, "expected a string such as 'rand-m9-mstd0.5-inc1'");
  while (!rest.empty()) {
    const std::string_view section = next_section();
    const std::size_t digits = std::min(section.find_first_of("0123456789"), section.size());
    const std::string_view key = section.substr(0, digits);
    double value = 0;
    const auto [end, error] =
        std::from_chars(section.data() + digits, section.data() + section.size(), value);
    if (error != std::errc() || end != section.data() + section.size())
      refuse(config, fmt::format("the section '{}' is no name and number, such as m9", section));
    const auto within = [&](double low, double high, bool whole) {
      if (value < low || value > high || (whole && value != std::floor(value)))
        refuse(config, fmt::format("'{}' is {} from {} to {}, found {}", key,
                                   whole ? "an integer" : "a number", low, high, value));
      return value;
    };
    if (key == "m")
      parsed.magnitude = within(0, kMostNumber, true);
    else if (key == "n")
      parsed.operations = static_cast<int>(within(0, kMostOperations, true));
    else if (key == "p")
      parsed.probability = within(0, 1, false);
    else if (key == "mstd")
      parsed.deviation = within(0, kMostNumber, false);
    else if (key == "mmax")
      parsed.most = within(1, kLevels * 10, true);
    else if (key == "inc")
      parsed.increasing = within(0, 1, true) != 0;
    else
      refuse(config,
             fmt::format("there is no section '{}'; expected m, n, p, mstd, mmax or inc", section));
  }
  return parsed;
}

void draw_policy(const TimmRandAugment& policy, const Drawing& drawing) {
  const TimmConfig config = parse_timm(policy.config);
  const TimmOperation operation(policy, config.increasing, drawing);
  std::array<TimmChoice, 16> choices{};
  for (int k = 0; k < config.operations; ++k)
    choices[static_cast<std::size_t>(k)] =
        static_cast<TimmChoice>(drawing.random.below(kTimmChoices));
  for (int k = 0; k < config.operations; ++k)
    if (drawing.happens(config.probability))
      operation.add(choices[static_cast<std::size_t>(k)],
                    drawn_magnitude(config, drawing) / kLevels);
}

}  // namespace penstock::augment
