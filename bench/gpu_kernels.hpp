// A kernel that takes its time.
#pragma once

#include <cuda_runtime_api.h>

/// Keeps one multiprocessor of the current device busy for `milliseconds`.
void spin(double milliseconds, cudaStream_t stream);
/// A kernel that nothing else launches.
void launch_nothing(cudaStream_t stream);
