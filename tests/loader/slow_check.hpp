// A training step that takes its time and looks at every byte of its batch.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace penstock::testing_support {

/// Queues a kernel that sleeps for about `microseconds` and adds to *wrong (in device memory) for
/// every row that is not (n, n * n) of FakeSource with n = (first + row) mod size.
void slow_check(const std::uint64_t* rows, std::uint64_t count, std::uint64_t first,
                std::uint64_t size, unsigned microseconds, unsigned long long* wrong,
                cudaStream_t stream);

}  // namespace penstock::testing_support
