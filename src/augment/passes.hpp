// augment/passes: programs as passes over images, for a device that does one pass over many images at a time.
//
// A pass begins with what reads other pixels than the one that it writes, or with what was counted in the image; steps
// that need the pixel alone follow in the same pass. A pass that is behind another of its image has a higher level; those of
// one level and kind are run together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "src/augment/step.hpp"
#include "src/core/host_device.hpp"

namespace penstock::augment {

/// Where a pass finds its pixels.
enum class PassKind : std::uint8_t {
  points,     // where it writes them
  moved,      // affine, perspective, flips
  sharpened,  // around them
  blurred,    // further around them
};
inline constexpr int kPassKinds = 4;

/// Where a pass leaves its pixels.
enum class PassEnd : std::uint8_t {
  nothing,  // they are counted alone
  store,
  add,  // to the sums of a mixture
  mix,  // the mixture is made
};

/// What a pass counts of the pixels that it makes, for the next one of the image.
enum class PassCounts : std::uint8_t { nothing, luma, levels };

/// Runs of steps that are tables of levels; so many of them fit into a pass.
inline constexpr int kMostRuns = 3;

/// One pass over one image. Images lie in buffers: 0 has them as they came and stays as it is.
struct Pass {
  std::uint32_t image = 0;
  std::uint32_t weight = 0;      // add, mix: of these pixels
  std::uint32_t own_weight = 0;  // mix: of the image that the mixture began with
  std::uint8_t first = 0;        // of the program's steps
  std::uint8_t steps = 0;
  PassKind kind = PassKind::points;
  PassEnd end = PassEnd::store;
  PassCounts counts = PassCounts::nothing;
  std::uint8_t from = 0;      // buffers
  std::uint8_t to = 0;        // store, mix
  std::uint8_t original = 0;  // mix: what the mixture began with
  std::uint8_t begins = 0;    // add, mix: nothing is in the sums yet
  std::uint8_t unused[3] = {};
};
static_assert(sizeof(Pass) == 24 && std::is_trivially_copyable_v<Pass>);

/// A program has no more steps.
inline constexpr int kMostSteps = 255;

/// Buffers besides the first one that programs need, and which of them has the images in the end.
inline constexpr int kBuffers = 2;
inline constexpr int kBuffersOfMixtures = 3;
inline constexpr std::uint8_t kResult = 1;

/// Whether a step is a function of levels, a table; what needs the whole pixel is not.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool is_table(StepKind kind) noexcept {
  return kind <= StepKind::equalize;
}

/// How many passes a program of so many steps takes at most.
[[nodiscard]] constexpr std::size_t most_passes(int steps) noexcept {
  return 2 * static_cast<std::size_t>(steps) + 1;
}

/// Passes of one level and kind, which lie beside each other.
struct PassGroup {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  std::uint16_t level = 0;
  PassKind kind = PassKind::points;
  bool counts = false;  // some of them
};

/// Collects the passes of many images.
class PassTable {
 public:
  /// The image ends in the buffer kResult, and is copied there where the program does nothing. It has pixels.
  void add(ProgramView program, std::uint32_t image);
  /// Writes the passes, group by group in the order in which they run.
  [[nodiscard]] std::vector<PassGroup> write(std::span<Pass> to) const;
  [[nodiscard]] std::size_t size() const noexcept { return passes_.size(); }

 private:
  struct Leveled {
    Pass pass;
    std::uint16_t level;
  };
  std::vector<Leveled> passes_;
};

}  // namespace penstock::augment
