// device/cuda_augmentation: passes over images that lie on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <penstock/device/device.hpp>

#include "src/augment/passes.hpp"
#include "src/augment/run.hpp"

namespace penstock::device {

/// What a pass counted in an image.
struct ImageCounts {
  std::uint32_t levels[3][256] = {};  // of each channel
  unsigned long long luma = 0;        // the sum
};

/// Where images and what belongs to them lie. Passed to kernels by value.
struct PassImages {
  augment::ImageShape shape;
  std::size_t image_bytes = 0;
  std::size_t buffer_bytes = 0;
  std::size_t images = 0;
  int most_steps = 0;  // from program to program
  const augment::Step* programs = nullptr;
  const std::uint8_t* in = nullptr;  // buffer 0
  std::uint8_t* buffers = nullptr;   // from 1 on
  ImageCounts* counts = nullptr;     // of even levels, then of odd ones; no pass asks without any
  std::uint32_t* sums = nullptr;     // of mixtures; null without any
};

/// Scratch memory on a GPU for passes over so many images.
class PassMemory {
 public:
  PassMemory(const augment::ImageShape& shape, std::uint64_t images, bool mixes,
             bool counts) noexcept;

  /// A multiple of what aligned() gives.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// `programs` has places for so many steps an image.
  [[nodiscard]] PassImages images(const std::byte* in, std::byte* scratch,
                                  const std::byte* programs, int most_steps) const noexcept;
  /// The images when all passes are done.
  [[nodiscard]] std::byte* result(std::byte* scratch) const noexcept {
    static_assert(augment::kResult == 1);
    return scratch;
  }

 private:
  augment::ImageShape shape_;
  std::size_t images_;
  bool mixes_;
  std::size_t buffer_bytes_;
  std::size_t counts_;  // offsets
  std::size_t sums_;
  std::size_t bytes_;
};

/// Queues the passes, which lie on the current device with all else.
///
/// Errors  CudaError  a kernel could not be queued
void enqueue_passes(const PassImages& images, std::span<const augment::PassGroup> groups,
                    const augment::Pass* passes, StreamHandle stream);

}  // namespace penstock::device
