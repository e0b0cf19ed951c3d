// device/stream: cudaStream_t by its own name, for programs that are built without CUDA's headers.
#pragma once

struct CUstream_st;

namespace penstock {

/// The same type as cudaStream_t.
using StreamHandle = CUstream_st*;

}  // namespace penstock
