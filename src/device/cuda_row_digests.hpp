// device/cuda_row_digests: the sum of the hashes of rows that lie on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime_api.h>

#include "src/device/slice_digest.hpp"

namespace penstock::device {

/// Queues what RowHasher does for each of `count` rows, and the sum into `*sum`; all of it lies on the
/// current device. Each row's hash is left in its DigestRow.
///
/// Shapes  field k of row i lies at base + fields[k].offset + i * fields[k].row_bytes, at any address
/// Errors  CudaError  a kernel could not be queued
void enqueue_row_digests(const std::byte* base, std::span<const HashedField> fields,
                         DigestRow* rows, std::uint64_t count, Digest* sum, cudaStream_t stream);

}  // namespace penstock::device
