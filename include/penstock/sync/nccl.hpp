// sync/nccl: CUDA devices of any number of processes and machines. NCCL is opened when it is first
// used, so that programs start where it is absent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace penstock {

/// NCCL cannot be found, or one of its calls failed.
class NcclError : public Error {
 public:
  NcclError(int code, const std::string& message) : Error(message), code_(code) {}
  /// The ncclResult_t, as a number.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

struct NcclOptions {
  /// How long to wait for the others to join, and for a collective to finish.
  double timeout_s = 300;
};

/// 128 bytes from which a group is made: one rank asks for them and gives them to the others.
///
/// Errors  NcclError  NCCL cannot be found; says where it was looked for
[[nodiscard]] std::string nccl_unique_id();

/// One rank of a group on CUDA devices, the bytes carried by the caller. A collective call.
///
/// Calls return when their work is queued. A thread of the communicator watches it: what fails, or
/// is not done in time, is aborted, so that streams continue, and the next call throws.
///
/// Errors  NcclError, CudaError
///         SyncError  the others did not join in time
[[nodiscard]] std::unique_ptr<Communicator> nccl_communicator(const std::string& unique_id,
                                                              std::uint32_t rank,
                                                              std::uint32_t size,
                                                              const Device& device,
                                                              const NcclOptions& options = {});
/// One rank for each process of a rendezvous, which also tells who died or is late.
[[nodiscard]] std::unique_ptr<Communicator> nccl_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const Device& device, const NcclOptions& options = {});

}  // namespace penstock
