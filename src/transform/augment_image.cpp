#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/augment_image.hpp>

#include "src/augment/draw.hpp"
#include "src/augment/operations.hpp"
#include "src/augment/run.hpp"
#include "src/transform/catalog.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/instances.hpp"

namespace penstock {

namespace {

constexpr std::int64_t kMostInBatch = std::numeric_limits<std::uint16_t>::max();

// What a program does to the places of pixels, for numbers that cannot be mixed.
void keep_moves(augment::ProgramView program, int fill, augment::Program& moves) {
  moves.clear();
  for (augment::Step step : program) {
    if (!augment::is_move(step.kind)) continue;
    step.sampler = augment::Sampler::nearest;
    std::ranges::fill(step.fill, static_cast<std::uint8_t>(fill));
    moves.push_back(step);
  }
}

class AugmentImage final : public Transform {
 public:
  AugmentImage(AugmentImageOptions options, transform::MovedInstances instances)
      : options_(std::move(options)), instances_(std::move(instances)) {}

  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    const std::size_t input = transform::find_field(
        fields, options_.field, AugmentImageOptions::kName, transform::is_decoded);
    const FieldSpec& field = fields[input];
    const Shape& shape = field.shape;
    const std::size_t rank = shape.rank();
    if (field.dtype != DType::u8 || (rank != 3 && rank != 4) || shape.is_dynamic() ||
        (shape[rank - 1] != 1 && shape[rank - 1] != 3))
      throw std::invalid_argument(fmt::format(
          "{}: it takes images of one size, u8 [height,width,channels] or "
          "[views,height,width,channels] of 1 or 3 channels, found {}{}",
          AugmentImageOptions::kName, field.to_string(),
          field.dtype == DType::u16 ? ": images of 16 bits are cropped and flipped, and "
                                      "no more; take a function of your own"
          : transform::is_encoded(field)
              ? fmt::format(": put {} before",
                            transform::call_with_field("decode_image", field.name,
                                                       "crop=random_resized_crop(224)"))
          : transform::is_decoded(field)
              ? fmt::format(": put {} before",
                            transform::call_with_field("crop_image", field.name,
                                                       "crop=random_resized_crop(224)"))
              : transform::name_another(fields, input, transform::is_decoded)));
    if (shape[rank - 3] > augment::kLongestSide || shape[rank - 2] > augment::kLongestSide ||
        (rank == 4 && shape[0] > kMostInBatch))
      throw std::invalid_argument(
          fmt::format("{}: it takes images of at most {}x{} pixels, and {} views of one; found {}",
                      AugmentImageOptions::kName, augment::kLongestSide, augment::kLongestSide,
                      kMostInBatch, field.to_string()));
    augment::check_fills(options_.operations, static_cast<int>(shape[rank - 1]),
                         fmt::format("{} of {}", AugmentImageOptions::kName, field.to_string()));
    Binding binding{.inputs = {input}, .outputs = {field}};
    for (const std::string& name : options_.masks) bind_mask(fields, field, name, binding);
    if (!instances_.empty() && rank != 3)
      throw std::invalid_argument(
          fmt::format("{}: instances are those of one image, u8 [height,width,channels]; found {}",
                      AugmentImageOptions::kName, field.to_string()));
    instances_.bind(fields, ImageSize(shape[rank - 3], shape[rank - 2]), binding);
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    thread_local augment::Program program;
    const Shape& shape = in[0].shape();
    const std::size_t rank = shape.rank();
    const augment::ImageShape image{.height = static_cast<int>(shape[rank - 3]),
                                    .width = static_cast<int>(shape[rank - 2]),
                                    .channels = static_cast<int>(shape[rank - 1])};
    const std::int64_t views = rank == 4 ? shape[0] : 1;
    const std::size_t bytes = views == 0 ? 0 : in[0].byte_size() / static_cast<std::size_t>(views);
    const ImageSize size(image.height, image.width);
    const std::size_t first_instances = 1 + options_.masks.size();
    if (bytes == 0)
      return instances_.move(in.subspan(first_instances), out, first_instances,
                             {.image = size, .sample = size});
    const auto* from = in[0].data<std::uint8_t>();
    auto* to = out[0].data<std::uint8_t>();
    for (std::int64_t view = 0; view < views; ++view, from += bytes, to += bytes) {
      Random of_view = random.of_stream(static_cast<std::uint16_t>(view));
      program.clear();
      augment::draw(options_.operations, {image.height, image.width}, of_view, program);
      augment::run(program, from, image, to);
    }
    if (first_instances > 1) {
      thread_local augment::Program moves;
      keep_moves(program, options_.mask_fill, moves);
      for (std::size_t mask = 1; mask < first_instances; ++mask)
        augment::run(moves, in[mask].data<std::uint8_t>(), {image.height, image.width, 1},
                     out[mask].data<std::uint8_t>());
    }
    if (instances_.empty()) return {};
    thread_local std::vector<transform::PointMove> moves;
    moves.clear();
    for (const augment::Step& step : program)
      if (augment::is_move(step.kind)) moves.push_back(transform::point_move(step, size));
    thread_local augment::Program steps;
    if (instances_.has_masks()) keep_moves(program, 0, steps);
    return instances_.move(in.subspan(first_instances), out, first_instances,
                           {.image = size, .sample = size, .moves = moves, .steps = steps});
  }

  [[nodiscard]] std::optional<ImageMove> image_move() const override {
    const auto& all = options_.operations;
    const bool moves = std::ranges::any_of(
        all, [](const Augmentation& operation) { return operation.operation().moves; });
    const bool mirrors = std::ranges::any_of(
        all, [](const Augmentation& operation) { return operation.operation().mirrors; });
    ImageMove move{.takes = {.image = options_.field, .fields = options_.masks},
                   .made = options_.field,
                   .mirrors = mirrors};
    instances_.describe(move.takes);
    const bool stay = move.takes.format == BoxFormat::xyxy && !move.takes.normalized;
    return moves || !stay ? move : ImageMove{};
  }
  [[nodiscard]] Description description() const override { return transform::describe(options_); }

 private:
  static void bind_mask(std::span<const FieldSpec> fields, const FieldSpec& image,
                        const std::string& name, Binding& binding) {
    const std::size_t input = transform::find_field(fields, name, AugmentImageOptions::kName);
    const FieldSpec& mask = fields[input];
    if (image.shape.rank() != 3 || mask.dtype != DType::u8 ||
        mask.shape != Shape{image.shape[0], image.shape[1]})
      throw std::invalid_argument(
          fmt::format("{}: a mask is u8 [height,width] of one image, u8 [height,width,channels]; "
                      "found {} of {}",
                      AugmentImageOptions::kName, mask.to_string(), image.to_string()));
    binding.inputs.push_back(input);
    binding.outputs.push_back(mask);
  }

  AugmentImageOptions options_;
  transform::MovedInstances instances_;
};

}  // namespace

TransformPtr augment_image(AugmentImageOptions options) {
  if (options.field.empty())
    throw std::invalid_argument(fmt::format("{}: name the field", AugmentImageOptions::kName));
  transform::check_names(AugmentImageOptions::kName, "mask", options.masks,
                         std::array{options.field});
  if (!std::in_range<std::uint8_t>(options.mask_fill))
    throw std::invalid_argument(fmt::format("{}: mask_fill is 0 to 255, found {}",
                                            AugmentImageOptions::kName, options.mask_fill));
  for (const Augmentation& operation : options.operations)
    if ((!options.masks.empty() || options.instances) && operation.operation().mixes)
      throw std::invalid_argument(
          fmt::format("{}: {} cannot be mixed, and {} mixes images: leave out one of the two",
                      AugmentImageOptions::kName, options.instances ? "instances" : "masks",
                      operation.to_string()));
  std::vector<std::string> taken = options.masks;
  taken.push_back(options.field);
  transform::MovedInstances instances(AugmentImageOptions::kName, options.instances, taken, false);
  return std::make_shared<AugmentImage>(std::move(options), std::move(instances));
}

}  // namespace penstock
