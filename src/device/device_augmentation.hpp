// device/device_augmentation: what a device transform does to images before all else: programs of augment/, drawn by the
// host and run where the images go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/device/device_transform.hpp>

#include "src/augment/passes.hpp"
#include "src/augment/run.hpp"

namespace penstock::device {

/// Threads  immutable; any number of threads.
class DeviceAugmentation {
 public:
  /// Errors  std::invalid_argument  images of 2 or 4 channels, or too large; operations that draw too many steps
  DeviceAugmentation(const DeviceTransformOptions& options, const FieldSpec& input);

  /// Of one sample, in a slice.
  [[nodiscard]] std::size_t program_bytes() const noexcept;
  [[nodiscard]] std::size_t pass_bytes() const noexcept;
  /// Of a GPU, for so many samples; a multiple of what aligned() gives.
  [[nodiscard]] std::size_t scratch_bytes(std::uint64_t samples) const noexcept;

  /// Draws a program for each image that is there, and says in its row how many steps it has. `programs` and `passes` are
  /// places of the bytes above, for all samples. The result is for enqueue().
  ///
  /// Shapes  rows [samples, views]
  [[nodiscard]] std::vector<augment::PassGroup> draw(const RandomKey& key,
                                                     std::span<const SampleId> samples,
                                                     std::span<DeviceTransformRow> rows,
                                                     std::byte* programs, std::byte* passes) const;

  /// Draws the same for one sample, and does it to its images on the host, on the calling thread.
  ///
  /// Shapes  images u8 [views, height, width, channels]
  void run(const RandomKey& key, const SampleId& sample, std::byte* images) const;
  /// What was drawn is done on a GPU, for `samples` samples; everything lies there, and nothing waits. Returns where the
  /// images are then: in the scratch memory. Rows without a sample are left as they are.
  ///
  /// Stream  the work is queued on `stream` of the current device
  /// Errors  CudaError
  [[nodiscard]] std::byte* enqueue(const std::byte* in, std::span<const augment::PassGroup> groups,
                                   const std::byte* programs, const std::byte* passes,
                                   std::uint64_t samples, std::byte* scratch,
                                   StreamHandle stream) const;

 private:
  void draw_program(const RandomKey& key, const SampleId& sample, std::size_t view,
                    augment::Program& program) const;

  std::vector<Augmentation> operations_;
  augment::ImageShape shape_;
  std::size_t views_ = 1;
  int most_steps_ = 0;
  bool mixes_ = false;   // something does
  bool counts_ = false;  // likewise
};

}  // namespace penstock::device
