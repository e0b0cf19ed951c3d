// Which options the operations take.
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "src/augment/numbers.hpp"
#include "src/augment/operations.hpp"

namespace penstock::augment {

namespace {

constexpr double kMostShear = 80;  // degrees
constexpr double kMostSigma = 100;
constexpr int kMostMagnitudes = 1000;
constexpr int kMostOperations = 16;
constexpr int kMostChains = 10;

[[noreturn]] void refuse(const char* name, const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", name, what));
}

void check_range(const char* name, const char* field, const Range& range, double low, double high) {
  if (!(range.low >= low && range.low <= range.high && range.high <= high))
    refuse(name, fmt::format("{} is a range within {} to {}, found [{}, {}]", field, low, high,
                             range.low, range.high));
}

template <class T>
void check_number(const char* name, const char* field, T number, T low, T high) {
  if (!(number >= low && number <= high))
    refuse(name, fmt::format("{} is from {} to {}, found {}", field, low, high, number));
}

void check_factor(const char* name, const char* field, const Range& range) {
  check_range(name, field, range, 0, kMostFactor);
}

void check_hue(const char* name, const char* field, const Range& range) {
  check_range(name, field, range, -0.5, 0.5);
}

void check_probability(const char* name, double probability) {
  check_number(name, "probability", probability, 0.0, 1.0);
}

struct Check {
  template <WithoutOptions T>
  void operator()(const T&) const {}
  template <OfOneRange T>
  void operator()(const T& of) const {
    check_factor(T::kName, T::kField, of.range);
  }
  void operator()(const Hue& of) const { check_hue(Hue::kName, Hue::kField, of.range); }
  void operator()(const ColorJitter& of) const {
    check_factor(ColorJitter::kName, "brightness", of.options.brightness);
    check_factor(ColorJitter::kName, "contrast", of.options.contrast);
    check_factor(ColorJitter::kName, "saturation", of.options.saturation);
    check_hue(ColorJitter::kName, "hue", of.options.hue);
  }
  void operator()(const Solarize& of) const {
    check_number(Solarize::kName, "threshold", of.threshold, 0, 256);
  }
  void operator()(const Posterize& of) const {
    check_number(Posterize::kName, "bits", of.bits, 0, 8);
  }
  void operator()(const GaussianBlur& of) const {
    check_number(GaussianBlur::kName, "kernel_size", of.kernel_size, 1, kWidestBlur);
    if (of.kernel_size % 2 == 0)
      refuse(GaussianBlur::kName, fmt::format("kernel_size is odd, found {}", of.kernel_size));
    check_range(GaussianBlur::kName, "sigma", of.sigma, 0.01, kMostSigma);
  }
  void operator()(const Flip& of) const { check_probability(Flip::kName, of.probability); }
  void operator()(const VerticalFlip& of) const {
    check_probability(VerticalFlip::kName, of.probability);
  }
  void operator()(const Rotate& of) const {
    check_range(Rotate::kName, "degrees", of.degrees, -360, 360);
  }
  void operator()(const Shear& of) const {
    check_range(Shear::kName, "x", of.x, -kMostShear, kMostShear);
    check_range(Shear::kName, "y", of.y, -kMostShear, kMostShear);
  }
  void operator()(const Translate& of) const {
    check_range(Translate::kName, "x", of.x, -1, 1);
    check_range(Translate::kName, "y", of.y, -1, 1);
  }
  void operator()(const Affine& of) const {
    const AffineOptions& options = of.options;
    check_range(Affine::kName, "degrees", options.degrees, -360, 360);
    check_range(Affine::kName, "translate_x", options.translate_x, -1, 1);
    check_range(Affine::kName, "translate_y", options.translate_y, -1, 1);
    check_range(Affine::kName, "scale", options.scale, 0.01, 100);
    check_range(Affine::kName, "shear_x", options.shear_x, -kMostShear, kMostShear);
    check_range(Affine::kName, "shear_y", options.shear_y, -kMostShear, kMostShear);
  }
  void operator()(const Perspective& of) const {
    check_number(Perspective::kName, "distortion", of.distortion, 0.0, 1.0);
  }
  void operator()(const RandomApply& of) const {
    check_probability(RandomApply::kName, of.probability);
  }
  void operator()(const RandomChoice& of) const {
    if (of.operations.empty()) refuse(RandomChoice::kName, "give it operations to choose from");
    if (of.weights.empty()) return;
    if (of.weights.size() != of.operations.size())
      refuse(RandomChoice::kName,
             fmt::format("weights are as many as the operations, {}, or none; found {}",
                         of.operations.size(), of.weights.size()));
    double sum = 0;
    for (const double weight : of.weights) {
      if (!(weight >= 0) || !std::isfinite(weight))
        refuse(RandomChoice::kName, fmt::format("a weight is 0 or more, found {}", weight));
      sum += weight;
    }
    if (!(sum > 0) || !std::isfinite(sum))
      refuse(RandomChoice::kName, fmt::format("one weight is above 0; their sum is {}", sum));
  }
  void operator()(const TrivialAugmentWide& of) const {
    check_number(TrivialAugmentWide::kName, "magnitudes", of.magnitudes, 2, kMostMagnitudes);
  }
  void operator()(const RandAugment& of) const {
    check_number(RandAugment::kName, "operations", of.options.operations, 0, kMostOperations);
    check_number(RandAugment::kName, "magnitudes", of.options.magnitudes, 2, kMostMagnitudes);
    check_number(RandAugment::kName, "magnitude", of.options.magnitude, 0,
                 of.options.magnitudes - 1);
  }
  void operator()(const AutoAugment&) const {}
  void operator()(const AugMix& of) const {
    check_number(AugMix::kName, "severity", of.options.severity, 1, 10);
    check_number(AugMix::kName, "width", of.options.width, 1, kMostChains);
    check_number(AugMix::kName, "depth", of.options.depth, 0, kMostOperations);
    check_number(AugMix::kName, "alpha", of.options.alpha, 0.001, 1000.0);
  }
  void operator()(const TimmRandAugment& of) const { (void)parse_timm(of.config); }
};

}  // namespace

void check(const AnyOperation& operation) { std::visit(Check{}, operation); }

}  // namespace penstock::augment
