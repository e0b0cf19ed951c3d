// sync/replicas: one thread for each device, in step with those of other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <penstock/device/device.hpp>
#include <penstock/sync/communicator.hpp>

namespace penstock {

struct ReplicasOptions {
  /// How long a replica waits in a collective for others of this process. The communicator
  /// between processes has its own timeout.
  double timeout_s = 300;
};

/// A replica's number, device and stream, and the communicator to the others.
///
/// Threads  that of its replica.
class ReplicaContext {
 public:
  ReplicaContext(Communicator& communicator, std::size_t local, StreamHandle stream)
      : communicator_(communicator), local_(local), stream_(stream) {}

  /// Over all processes, 0 to size() - 1.
  [[nodiscard]] std::uint32_t id() const noexcept { return communicator_.rank(); }
  [[nodiscard]] std::uint32_t size() const noexcept { return communicator_.size(); }
  /// In this process: the part of a Step that is this replica's.
  [[nodiscard]] std::size_t local() const noexcept { return local_; }
  [[nodiscard]] const Device& device() const noexcept { return communicator_.device(); }
  /// Of its own; null on a host device.
  [[nodiscard]] StreamHandle stream() const noexcept { return stream_; }
  [[nodiscard]] Communicator& communicator() const noexcept { return communicator_; }

 private:
  Communicator& communicator_;
  std::size_t local_;
  StreamHandle stream_;
};

/// The replicas of this process: one for each device; the same device may be named more than once
/// if it is a host device. With a communicator between processes, replica r of process p has the
/// number p * local_size() + r, and collectives go over all of them.
///
/// Threads  one at a time.
class Replicas {
 public:
  /// `processes` may be shared with others only between calls of run(). On CUDA devices it carries
  /// NCCL's id and the ends of runs; the data go through NCCL. With it this is a collective call.
  ///
  /// Errors  std::invalid_argument  no devices, or host and CUDA devices together
  ///         SyncError              another process has another number of devices
  ///         CudaError, NcclError   a device, or NCCL, cannot be used
  explicit Replicas(std::vector<Device> devices, const ReplicasOptions& options = {});
  Replicas(std::vector<Device> devices, std::shared_ptr<Communicator> processes,
           const ReplicasOptions& options = {});
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;
  ~Replicas();

  /// Over all processes.
  [[nodiscard]] std::uint32_t size() const noexcept;
  [[nodiscard]] std::size_t local_size() const noexcept { return devices_.size(); }
  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return devices_; }
  /// Whether run() is in progress.
  [[nodiscard]] bool running() const noexcept { return running_; }

  /// Calls `fn` once for every replica of this process, each on a thread of its own, the first on
  /// the caller's. Returns when all have ended, in the other processes too; on CUDA
  /// devices, when what they gave to their stream is done.
  ///
  /// An exception in one ends all: the others' collectives throw, and the first is rethrown here.
  /// So does a replica that makes fewer collectives than another, which is told at once. Where
  /// there are other processes, nothing can be run with them after an exception.
  ///
  /// Errors  SyncError  see there; whatever `fn` throws
  void run(const std::function<void(ReplicaContext&)>& fn);

  class Backend;  ///< what differs between host and CUDA devices; not for users

 private:
  std::vector<Device> devices_;
  std::unique_ptr<Backend> backend_;
  bool running_ = false;
};

}  // namespace penstock
