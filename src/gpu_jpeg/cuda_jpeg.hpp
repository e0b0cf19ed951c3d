// gpu_jpeg/cuda_jpeg: decodes a packed batch on a GPU, into rows of images of one size.
#pragma once

#include <cstddef>

#include <penstock/device/device.hpp>

#include "src/gpu_jpeg/packed_batch.hpp"

namespace penstock::gpu_jpeg {

/// Queues the decoding of a batch that lies on the current device.
///
/// packed   what PackedBatch::write made
/// scratch  layout.scratch_bytes, aligned as cudaMalloc's; used until the last kernel has run
/// out      u8 [rows, H, W, 3]: an image at out + its row * row_bytes
/// Errors   CudaError  a kernel could not be queued
void enqueue_jpegs(const PackedLayout& layout, const std::byte* packed, std::byte* scratch,
                   std::byte* out, std::size_t row_bytes, StreamHandle stream);

}  // namespace penstock::gpu_jpeg
