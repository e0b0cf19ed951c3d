// augment/draw: makes programs of operations, with the random numbers of one sample.
#pragma once

#include <span>

#include <penstock/augment/augmentation.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/tensor.hpp>

#include "src/augment/operations.hpp"
#include "src/augment/step.hpp"

namespace penstock::augment {

/// Where drawn steps go.
struct Drawing {
  ImageSize size;
  Random& random;
  Program& program;

  void add(const Step& step) const { program.push_back(step); }
  [[nodiscard]] double from(const Range& range) const {
    return random.uniform(range.low, range.high);
  }
  [[nodiscard]] bool happens(double probability) const { return random.uniform() < probability; }
};

/// Appends what the operations draw for an image of this size. The same on every machine.
void draw(std::span<const Augmentation> operations, ImageSize size, Random& random,
          Program& program);

// ---- policies ----

void draw_policy(const TrivialAugmentWide& policy, const Drawing& drawing);
void draw_policy(const RandAugment& policy, const Drawing& drawing);
void draw_policy(const AutoAugment& policy, const Drawing& drawing);
void draw_policy(const AugMix& policy, const Drawing& drawing);
void draw_policy(const TimmRandAugment& policy, const Drawing& drawing);

}  // namespace penstock::augment
