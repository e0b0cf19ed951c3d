// device/jpeg/cuda_jpeg: decodes a packed batch on a GPU, into rows of images of one size.
#pragma once

#include <cstddef>

#include <penstock/device/device.hpp>

#include "src/device/jpeg/packed_batch.hpp"

namespace penstock::device {

/// Queues the decoding of a batch that lies on the current device.
///
/// packed   what PackedBatch::write made
/// scratch  layout.scratch_bytes, aligned as cudaMalloc's; used until the last kernel has run
/// out      u8 [image_count, H, W, 3]: image i at out + i * row_bytes
/// Errors   CudaError  a kernel could not be queued
void enqueue_jpegs(const PackedLayout& layout, const std::byte* packed, std::byte* scratch,
                   std::byte* out, std::size_t row_bytes, StreamHandle stream);

}  // namespace penstock::device
