// transform/moved_fields: the fields that a crop moves with its image: masks and instances.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/transform/crops.hpp"
#include "src/transform/instances.hpp"
#include "src/transform/masks.hpp"

namespace penstock::transform {

/// Threads  const; scratch memory is the thread's own
class MovedFields {
 public:
  MovedFields() = default;
  MovedFields(Masks masks, MovedInstances instances)
      : masks_(std::move(masks)), instances_(std::move(instances)) {}

  /// Appends an input and an output for each field.
  ///
  /// Errors  std::invalid_argument  as Masks and MovedInstances
  void bind(std::span<const FieldSpec> fields, ImageSize sample, Binding& binding) const {
    masks_.bind(fields, sample, binding);
    instances_.bind(fields, sample, binding);
  }

  /// Writes what the window shows of each field. `in` are the inputs that bind() appended, and `first_output` is the number of
  /// its first output.
  ///
  /// Errors  Fault  as Masks and MovedInstances
  [[nodiscard]] Result<void> crop(std::span<const ConstTensorView> in, Outputs out,
                                  std::size_t first_output, const Window& window) const {
    const std::size_t masks = masks_.names().size();
    if (auto done =
            masks_.crop(in.first(masks),
                        std::span(out.begin(), out.end()).subspan(first_output, masks), window);
        !done || instances_.empty())
      return done;
    const PointMove move = point_move(window);
    return instances_.move(in.subspan(masks), out, first_output + masks,
                           {.image = window.image,
                            .sample = window.sample,
                            .moves = std::span(&move, 1),
                            .window = &window});
  }

  /// The boxes of an image of this size, where `crop` is chosen by them; else none. `in` as for crop().
  ///
  /// Errors  Fault  as MovedInstances
  [[nodiscard]] Result<std::vector<Region>> boxes(const Crop& crop,
                                                  std::span<const ConstTensorView> in,
                                                  ImageSize image) const {
    if (!needs_boxes(crop)) return std::vector<Region>{};
    return instances_.boxes(in.subspan(masks_.names().size()), image);
  }
  /// Of `image`, which becomes `made`, and may be mirrored.
  [[nodiscard]] ImageMove image_move(std::string image, std::string made, bool mirrors) const {
    ImageMove move{.takes = {.image = std::move(image),
                             .fields = {masks_.names().begin(), masks_.names().end()}},
                   .made = std::move(made),
                   .mirrors = mirrors};
    instances_.describe(move.takes);
    return move;
  }
  [[nodiscard]] bool has_masks() const noexcept { return !masks_.empty(); }
  [[nodiscard]] const MovedInstances& instances() const noexcept { return instances_; }
  [[nodiscard]] bool empty() const noexcept { return masks_.empty() && instances_.empty(); }

 private:
  Masks masks_;
  MovedInstances instances_;
};

}  // namespace penstock::transform
