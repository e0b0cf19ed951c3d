// core/host_device: marks functions that are compiled for the host and for kernels.
#pragma once

#ifdef __CUDACC__
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif
