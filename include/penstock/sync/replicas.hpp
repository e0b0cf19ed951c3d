// sync/replicas: one thread for each device, in step with those of other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>
#include <penstock/sync/communicator.hpp>

namespace PENSTOCK_EXPORT penstock {

struct ReplicasOptions {
  /// How long a replica waits in a collective for others of this process. The communicator
  /// between processes has its own timeout.
  Seconds timeout{300};
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
  /// So does a replica that makes fewer collectives than another, at once. Where
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

// ---- a variable with a copy on every replica ----

/// What replicas' different values become when they assign to a mirrored variable.
enum class Aggregation : std::uint8_t {
  none,  ///< they may not: an error
  mean,
  sum,
  first,  ///< replica 0's
};

/// Untyped: what Mirrored<T> is made of.
class MirroredBuffer {
 public:
  enum class Change : std::uint8_t { assign, add, subtract };

  /// Zeros, on every device of `replicas`, which must outlive this.
  ///
  /// Errors  CudaError  no room
  MirroredBuffer(const Replicas& replicas, DType dtype, std::size_t count, Aggregation aggregation);

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] TensorView get(std::size_t local) const;
  /// From outside of run(): the same host `value` everywhere.
  void change(Change change, const std::byte* value);
  /// From inside: the aggregation of all replicas' `value`, which lies on the replica's device.
  void change(ReplicaContext& replica, Change change, const std::byte* value);
  void read(std::size_t local, std::byte* to) const;

 private:
  const Replicas* replicas_;
  DType dtype_;
  std::size_t count_;
  Aggregation aggregation_;
  std::vector<std::shared_ptr<std::byte>> copies_;
  std::vector<std::shared_ptr<std::byte>> scratch_;  // one a replica, made when it is first needed
};

/// `count` elements with a copy on each device, which stay the same as long as they are changed by
/// these calls only, or by each replica alike.
///
/// Threads  from outside one at a time and not during run(); from inside each replica on its own.
/// Stream   on CUDA devices calls from inside are queued on the replica's stream; those from
///          outside wait until they are done.
/// Owns     the copies.
/// Errors   std::logic_error       an assignment from outside during run(), or from inside where
///          the aggregation is none
///          std::invalid_argument  a value of another length
template <class T>
class Mirrored {
 public:
  explicit Mirrored(const Replicas& replicas, std::size_t count = 1,
                    Aggregation aggregation = Aggregation::none)
      : buffer_(replicas, dtype_of<T>(), count, aggregation) {}

  [[nodiscard]] std::size_t size() const noexcept { return buffer_.count(); }
  /// The copy of one of this process's replicas, in its device's memory.
  [[nodiscard]] std::span<T> get(std::size_t local) const {
    return {buffer_.get(local).template data<T>(), size()};
  }
  [[nodiscard]] std::span<T> get(const ReplicaContext& replica) const {
    return get(replica.local());
  }
  /// All copies of this process, in the order of its devices.
  [[nodiscard]] std::vector<std::span<T>> unwrap(const Replicas& replicas) const {
    std::vector<std::span<T>> all;
    for (std::size_t local = 0; local < replicas.local_size(); ++local) all.push_back(get(local));
    return all;
  }
  /// A copy of a copy, on the host.
  [[nodiscard]] std::vector<T> read(std::size_t local = 0) const {
    std::vector<T> values(size());
    buffer_.read(local, reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  /// From outside: host values.
  void assign(std::span<const T> value) { change(MirroredBuffer::Change::assign, value); }
  void assign_add(std::span<const T> value) { change(MirroredBuffer::Change::add, value); }
  void assign_sub(std::span<const T> value) { change(MirroredBuffer::Change::subtract, value); }
  /// From inside: every replica calls it, with values on its device.
  void assign(ReplicaContext& replica, std::span<const T> value) {
    change(replica, MirroredBuffer::Change::assign, value);
  }
  void assign_add(ReplicaContext& replica, std::span<const T> value) {
    change(replica, MirroredBuffer::Change::add, value);
  }
  void assign_sub(ReplicaContext& replica, std::span<const T> value) {
    change(replica, MirroredBuffer::Change::subtract, value);
  }

 private:
  void change(MirroredBuffer::Change change, std::span<const T> value) {
    require_length(value.size());
    buffer_.change(change, reinterpret_cast<const std::byte*>(value.data()));
  }
  void change(ReplicaContext& replica, MirroredBuffer::Change change, std::span<const T> value) {
    require_length(value.size());
    buffer_.change(replica, change, reinterpret_cast<const std::byte*>(value.data()));
  }
  void require_length(std::size_t found) const {
    if (found != size())
      throw std::invalid_argument("a mirrored variable of " + std::to_string(size()) +
                                  " elements was given " + std::to_string(found));
  }

  MirroredBuffer buffer_;
};

}  // namespace penstock
