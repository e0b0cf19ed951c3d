// sync/nccl/nccl_library: NCCL's functions, found at run time.
#pragma once

#include <string>

#include <nccl.h>

namespace penstock::sync {

/// First a copy that the process has loaded already (PyTorch's, for one: two would not know of each
/// other), then $PENSTOCK_NCCL_LIBRARY, then the preferred one, then the system's, then that of a Python installation.
///
/// Threads  const.
struct NcclLibrary {
  /// Errors  NcclError  none was found, or one that is too old
  [[nodiscard]] static const NcclLibrary& get();
  /// Where get() has not been called yet. Empty: no change.
  static void prefer(const std::string& file);

  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommSplit) comm_split = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;

 private:
  NcclLibrary();
  void* handle_ = nullptr;  // never closed: NCCL has threads
};

}  // namespace penstock::sync
