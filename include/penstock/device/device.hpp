// device/device: the names of the places that batches go to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/process.hpp>

struct CUstream_st;

namespace PENSTOCK_EXPORT penstock {

/// The same type as cudaStream_t.
using StreamHandle = CUstream_st*;

/// host:i or cuda:i. Host devices are real devices: a program for four GPUs runs on host:0 …
/// host:3.
struct Device {
  enum class Kind { host, cuda };

  Kind kind = Kind::host;
  int index = 0;

  /// "host:0", "cuda:1"; "cuda" alone is cuda:0.
  ///
  /// Errors  std::invalid_argument  anything else
  [[nodiscard]] static Device parse(std::string_view name);
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Device&, const Device&) = default;
};

/// host:0 … host:count-1.
[[nodiscard]] std::vector<Device> host_devices(int count);

/// The programs' flag: "auto" (all_gpus_or_host()), "host:4" (four host devices), a device ("cuda:0",
/// "host:0"), or a list such as "cuda:0,1" or "cuda:0,host:0".
///
/// Errors  std::invalid_argument  not such a string, or an empty list
[[nodiscard]] std::vector<Device> parse_devices(std::string_view spec);

/// GPUs that can be used here; 0 without a driver or in a build without CUDA.
///
/// Errors  CudaError  there is a driver, and it does not work: too old, not ready, or used in a process that was forked
///         after its parent had used CUDA. Says which: training on the CPU instead would be no help.
[[nodiscard]] int gpu_count();

/// The NUMA node whose memory is nearest to a GPU; none for a host device, and where the machine
/// has one node or does not say. Never throws.
[[nodiscard]] std::optional<int> numa_node(const Device& device);

/// Every GPU there is, or host:0. Where torchrun, mpirun or srun started several processes on this
/// machine, this one's share of them: the GPUs i with i mod local_world == local_rank, or one that
/// it shares where there are fewer GPUs than processes.
///
/// Errors  Error      the launchers' variables contradict each other
///         CudaError  as gpu_count()
[[nodiscard]] std::vector<Device> all_gpus_or_host(
    const Launch& launch = Launch::from_environment());

}  // namespace penstock
