// gpu_jpeg/cuda_jpeg: decodes packed JPEGs on a GPU, into images.
#pragma once

#include <cstddef>
#include <functional>

#include <penstock/device/device.hpp>

#include "src/gpu_jpeg/placed_jpegs.hpp"

namespace penstock::gpu_jpeg {

/// Queues the decoding of a batch that lies on the current device.
///
/// images   batch.images()
/// packed   what PlacedJpeg::packed counts from
/// scratch  batch.scratch_bytes(), aligned as cudaMalloc's; used until the last kernel has run. Its beginning then says which
///          images failed (PlacedJpegs::flag_bytes)
/// out      what PlacedJpeg::out counts from: u8 [H, W, 3] of each image, which may lie where the image was packed
/// behind   is called behind each kernel that was queued, with its name
/// Errors   CudaError  a kernel could not be queued
void enqueue_jpegs(const PlacedJpegs& batch, const PlacedJpeg* images, const std::byte* packed,
                   std::byte* scratch, std::byte* out, StreamHandle stream,
                   const std::function<void(const char*)>& behind = {});

}  // namespace penstock::gpu_jpeg
