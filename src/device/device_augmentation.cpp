#include "src/device/device_augmentation.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "src/augment/draw.hpp"
#include "src/augment/operations.hpp"
#include "src/device/cuda_augmentation.hpp"

namespace penstock::device {

namespace {

// Above the streams of what else a device transform draws: see device_transform_draw.
constexpr std::uint16_t kFirstStream = 0x8000;

}  // namespace

DeviceAugmentation::DeviceAugmentation(const DeviceTransformOptions& options,
                                       const FieldSpec& input)
    : operations_(options.augment) {
  const Shape& shape = input.shape;
  const std::size_t rank = shape.rank();
  shape_ = {.height = static_cast<int>(shape[rank - 3]),
            .width = static_cast<int>(shape[rank - 2]),
            .channels = static_cast<int>(shape[rank - 1])};
  if (rank == 4) views_ = static_cast<std::size_t>(shape[0]);
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(
        fmt::format("device transform of '{}': augment: {}", options.field, what));
  };
  if (shape_.channels != 1 && shape_.channels != 3)
    refuse(fmt::format("it takes images of 1 or 3 channels, found {}", input.to_string()));
  if (std::max(shape_.height, shape_.width) > augment::kLongestSide)
    refuse(fmt::format("it takes images of at most {0}x{0} pixels, found {1}",
                       augment::kLongestSide, input.to_string()));
  augment::check_fills(operations_, shape_.channels,
                       fmt::format("device transform of '{}': augment", options.field));
  for (const Augmentation& operation : operations_) {
    most_steps_ = std::min(most_steps_ + operation.operation().most_steps, augment::kMostSteps + 1);
    mixes_ |= operation.operation().mixes;
    counts_ |= operation.operation().counts;
  }
  if (most_steps_ > augment::kMostSteps)
    refuse(
        fmt::format("the operations may draw more than {} steps an image: put some of them "
                    "into map(augment_image(…))",
                    augment::kMostSteps));
}

std::size_t DeviceAugmentation::program_bytes() const noexcept {
  return views_ * static_cast<std::size_t>(most_steps_) * sizeof(augment::Step);
}

std::size_t DeviceAugmentation::pass_bytes() const noexcept {
  return views_ * augment::most_passes(most_steps_) * sizeof(augment::Pass);
}

std::size_t DeviceAugmentation::scratch_bytes(std::uint64_t samples) const noexcept {
  return PassMemory(shape_, samples * views_, mixes_, counts_).bytes();
}

void DeviceAugmentation::draw_program(const RandomKey& key, const SampleId& sample,
                                      std::size_t view, augment::Program& program) const {
  Random random(key.of_part(sample.source), sample,
                static_cast<std::uint16_t>(kFirstStream + view));
  program.clear();
  augment::draw(operations_, {shape_.height, shape_.width}, random, program);
  if (program.size() > static_cast<std::size_t>(most_steps_))
    throw std::logic_error("an operation drew more steps than it says");
}

std::vector<augment::PassGroup> DeviceAugmentation::draw(const RandomKey& key,
                                                         std::span<const SampleId> samples,
                                                         std::span<DeviceTransformRow> rows,
                                                         std::byte* programs,
                                                         std::byte* passes) const {
  augment::Program program;
  augment::PassTable table;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    rows[at].steps = 0;
    if (rows[at].present == 0 || shape_.bytes() == 0) continue;
    draw_program(key, samples[at / views_], at % views_, program);
    rows[at].steps = static_cast<std::uint8_t>(program.size());
    if (!program.empty())
      std::memcpy(programs + at * (program_bytes() / views_), program.data(),
                  program.size() * sizeof(augment::Step));
    table.add(program, static_cast<std::uint32_t>(at));
  }
  return table.write({reinterpret_cast<augment::Pass*>(passes), table.size()});
}

void DeviceAugmentation::run(const RandomKey& key, const SampleId& sample,
                             std::byte* images) const {
  thread_local augment::Program program;
  const std::size_t bytes = shape_.bytes();
  if (bytes == 0) return;
  auto* image = reinterpret_cast<std::uint8_t*>(images);
  for (std::size_t view = 0; view < views_; ++view, image += bytes) {
    draw_program(key, sample, view, program);
    augment::run(program, image, shape_, image);
  }
}

std::byte* DeviceAugmentation::enqueue(const std::byte* in,
                                       std::span<const augment::PassGroup> groups,
                                       const std::byte* programs, const std::byte* passes,
                                       std::uint64_t samples, std::byte* scratch,
                                       StreamHandle stream) const {
  const PassMemory memory(shape_, samples * views_, mixes_, counts_);
  enqueue_passes(memory.images(in, scratch, programs, most_steps_), groups,
                 reinterpret_cast<const augment::Pass*>(passes), stream);
  return memory.result(scratch);
}

}  // namespace penstock::device
