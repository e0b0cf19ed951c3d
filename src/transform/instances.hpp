// transform/instances: boxes, keypoints and masks, moved as the pixels of their image are.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/instances.hpp>
#include <penstock/transform/transform.hpp>

#include "src/augment/step.hpp"
#include "src/transform/window.hpp"

namespace penstock::transform {

/// Where the points of one image are in the image that is made of it.
struct PointMove {
  /// Row by row: x' = (m[0] x + m[1] y + m[2]) / w with w = m[6] x + m[7] y + m[8], and y' likewise of m[3…5].
  std::array<double, 9> matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
  Region visible;         ///< of the new image, what shows the old one
  bool mirrored = false;  ///< whether left and right, or up and down, are exchanged
};

/// What a transform does to the pixels of one image.
struct Movement {
  ImageSize image;                     ///< before it
  ImageSize sample;                    ///< behind it
  std::span<const PointMove> moves{};  ///< one after the other
  // What happens to masks: a crop, or else steps, of which each is a move that takes pixels as they are.
  const Window* window = nullptr;
  augment::ProgramView steps{};
};

[[nodiscard]] PointMove point_move(const Window& window);
/// Of a step that is_move(), on an image of this size.
[[nodiscard]] PointMove point_move(const augment::Step& step, ImageSize image);

/// The instances of a transform: options, how they are bound, and what is done to them.
///
/// Threads  const; scratch memory is the thread's own
class MovedInstances {
 public:
  MovedInstances() = default;
  /// `taken` are the names of other fields that are put out. `is_first`: nothing was moved before, so boxes that all lie in
  /// one pixel are no boxes in pixels.
  ///
  /// Errors  std::invalid_argument  no field, one without a name or there twice, or among `taken`; other fields, or middle,
  ///                                without boxes; a limit out of range; flip_index is no permutation, or without keypoints
  MovedInstances(std::string caller, std::optional<Instances> options,
                 std::span<const std::string> taken, bool is_first);
  /// The same of a crop, which has one part, and may need boxes.
  MovedInstances(std::string caller, std::optional<Instances> options, const Crop& crop,
                 std::span<const std::string> taken);

  /// Appends an input and an output for each field. `sample` is the size of the image that is made.
  ///
  /// Errors  std::invalid_argument  no such field, or one of another type or shape
  void bind(std::span<const FieldSpec> fields, ImageSize sample, Binding& binding) const;

  /// Writes what a movement leaves of the instances of an image. `in` are the inputs that bind() appended, and `first_output` is
  /// the number of its first output.
  ///
  /// Errors  Fault  as Instances says
  [[nodiscard]] Result<void> move(std::span<const ConstTensorView> in, Outputs out,
                                  std::size_t first_output, const Movement& movement) const;

  /// Those with an area, in pixels of an image of this size and cut at its edges. `in` as for move().
  ///
  /// Errors  Fault  as Instances says of a box
  [[nodiscard]] Result<std::vector<Region>> boxes(std::span<const ConstTensorView> in,
                                                  ImageSize image) const;

  [[nodiscard]] bool empty() const noexcept { return !options_; }
  [[nodiscard]] bool has_masks() const noexcept { return options_ && !options_->masks.empty(); }
  /// Where there are any.
  [[nodiscard]] const Instances& options() const noexcept { return *options_; }
  /// One row of each output, of these inputs; as for move().
  [[nodiscard]] std::vector<FieldSpec> output_rows(std::span<const ConstTensorView> in,
                                                   ImageSize sample) const;
  /// Adds its fields, and in which form it takes them.
  void describe(ImageFields& takes) const;

 private:
  struct Scratch;
  class Rows;

  std::string caller_;
  std::optional<Instances> options_;
  bool is_first_ = true;
  std::vector<std::string>
      names_;  // of the fields: boxes, keypoints, masks and corners where there are any, then the others
};

}  // namespace penstock::transform
