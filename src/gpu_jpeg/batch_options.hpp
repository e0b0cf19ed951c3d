// gpu_jpeg/batch_options: which options a decoder of batches takes.
#pragma once

#include <penstock/gpu_jpeg/batch_decoder.hpp>

namespace penstock::gpu_jpeg {

/// Errors  std::invalid_argument  no cuda device, an empty size, another filter than bilinear and bicubic, no index
void check_options(const BatchDecoderOptions& options);

}  // namespace penstock::gpu_jpeg
