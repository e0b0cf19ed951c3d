// sync/communicator: collectives over the replicas of a training job, over any transport.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace PENSTOCK_EXPORT penstock {

/// A collective failed: a peer died, timed out, ended, or made another call. The message names it.
/// The communicator cannot be used from then on: later calls throw the same error again.
class SyncError : public Error {
 public:
  using Error::Error;
};

/// How the ranks' values are combined. A mean is the sum divided once, by the number of ranks; of
/// integers it is cut towards zero.
enum class ReduceOp : std::uint8_t { sum, product, min, max, mean };
template <>
struct EnumNames<ReduceOp> {
  static constexpr std::pair<ReduceOp, const char*> kNames[] = {{ReduceOp::sum, "sum"},
                                                                {ReduceOp::product, "product"},
                                                                {ReduceOp::min, "min"},
                                                                {ReduceOp::max, "max"},
                                                                {ReduceOp::mean, "mean"}};
};

/// One call of a collective, as all ranks must make it.
struct Collective {
  enum class Kind : std::uint8_t {
    all_reduce,
    reduce,
    broadcast,
    all_gather,
    reduce_scatter,
    barrier,
    duplicate,
    end_of_run,  ///< Replicas::run() has come to its end in this process
  };
  Kind kind = Kind::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t root = 0;
  std::uint64_t count = 0;  ///< elements that each rank gives or, in reduce_scatter, gets
  std::uint32_t parts = 1;  ///< in which they lie
  std::uint64_t cut = 0;    ///< a digest of the counts of these

  /// "all_reduce(sum, f32 [1000])".
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Elements in a row, as collectives take them.
template <class T>
[[nodiscard]] auto view_of(std::span<T> elements) noexcept {
  const Shape shape{static_cast<std::int64_t>(elements.size())};
  if constexpr (std::is_const_v<T>)
    return ConstTensorView(std::as_bytes(elements).data(), dtype_of<T>(), shape);
  else
    return TensorView(std::as_writable_bytes(elements).data(), dtype_of<T>(), shape);
}
template <class T>
[[nodiscard]] TensorView view_of(std::vector<T>& elements) noexcept {
  return view_of(std::span(elements));
}
template <class T>
[[nodiscard]] ConstTensorView view_of(const std::vector<T>& elements) noexcept {
  return view_of(std::span(elements));
}

/// One rank's end of a group. Every rank makes the same calls in the same order; a rank that does
/// not is an error that names it, as is one that is dead or late. f16 and bf16 are summed in f32.
///
/// On host devices ranks are added in the order of their numbers, whatever the timing, so that
/// results are the same in every run.
///
/// Threads  one at a time; communicators that were duplicated from one another are independent.
/// Stream   on a CUDA device calls queue their work on `stream` and return; host devices ignore it,
///          and the result is there when the call returns. A call that throws what has broken the
///          communicator waits for `stream` first, 10 s at most, so that its calls' memory can be
///          freed.
/// Errors   std::invalid_argument  arguments that fit no call; nothing was sent
///          SyncError              see there
class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// Where the buffers of its calls lie.
  [[nodiscard]] const Device& device() const noexcept { return device_; }

  /// `data` becomes the reduction of all ranks' data, on every rank. Of one rank it stays as it is.
  void all_reduce(TensorView data, ReduceOp op = ReduceOp::sum, StreamHandle stream = nullptr);
  /// The same with each of `parts`, of one type, as one call: the ranks meet once. Their counts are
  /// the same on every rank.
  void all_reduce(std::span<const TensorView> parts, ReduceOp op = ReduceOp::sum,
                  StreamHandle stream = nullptr);
  /// The same on the root alone; the others' data stay as they are.
  void reduce(TensorView data, std::uint32_t root, ReduceOp op = ReduceOp::sum,
              StreamHandle stream = nullptr);
  /// `data` becomes the root's, on every rank.
  void broadcast(TensorView data, std::uint32_t root, StreamHandle stream = nullptr);
  /// Shapes  in: n elements; out: size() * n, in the order of the ranks. `in` may lie in its place.
  void all_gather(ConstTensorView in, TensorView out, StreamHandle stream = nullptr);
  /// Rank r gets the reduction of every rank's r-th piece.
  ///
  /// Shapes  in: size() * n elements; out: n, outside of `in`.
  void reduce_scatter(ConstTensorView in, TensorView out, ReduceOp op = ReduceOp::sum,
                      StreamHandle stream = nullptr);
  /// Returns when every rank has called it.
  void barrier();

  /// A new communicator of the same ranks, for concurrent calls. A collective call itself.
  [[nodiscard]] virtual std::unique_ptr<Communicator> duplicate() = 0;
  /// Throws what has broken the communicator, if anything has. On CUDA devices calls return before they are done, and what
  /// another rank's death leaves behind is garbage, though the device reports no error: call this when the host has waited
  /// for the device, before results are kept (a checkpoint, a score).
  ///
  /// Errors  SyncError, NcclError, CudaError
  virtual void check() {}
  /// Tells the others that this rank will make no more calls, and why, so that they need not wait
  /// for it. Does not throw.
  virtual void leave(const std::string& why) noexcept = 0;

 protected:
  Communicator(std::uint32_t rank, std::uint32_t size, Device device)
      : rank_(rank), size_(size), device_(device) {}

  /// For communicators that stand on another one.
  static void perform_on(Communicator& other, const Collective& call, const std::byte* in,
                         std::byte* out, StreamHandle stream = nullptr) {
    other.perform(call, in, out, stream);
  }
  static void perform_on(Communicator& other, const Collective& call,
                         std::span<const TensorView> parts) {
    other.perform_parts(call, parts, nullptr);
  }
  /// An all_reduce of several parts, which `call` counts together; one by one unless overridden.
  virtual void perform_parts(const Collective& call, std::span<const TensorView> parts,
                             StreamHandle stream);

 private:
  friend class Replicas;

  /// Does what `call` says. `in` equals `out` where a call has one buffer.
  virtual void perform(const Collective& call, const std::byte* in, std::byte* out,
                       StreamHandle stream) = 0;

  std::uint32_t rank_;
  std::uint32_t size_;
  Device device_;
};

// ---- texts of all ranks, over a communicator ----

/// For require_agreement(). Each call is two collective calls.
///
/// Owns    nothing: the communicator outlives it
/// Errors  std::invalid_argument  the communicator's buffers do not lie on the host
[[nodiscard]] Exchange exchange_over(Communicator& communicator);

/// The root's text, in all processes: of a file that only it has, say. Two collective calls.
///
/// Errors  std::invalid_argument  as exchange_over()
[[nodiscard]] std::string broadcast_text(Communicator& communicator, const std::string& text,
                                         std::uint32_t root = 0);

// ---- processes started by mpirun or srun, on host memory. Link penstock::mpi ----

struct MpiOptions {
  /// How long a collective waits for the others. MPI itself notices a dead process, and its
  /// launcher then ends the whole job; this is for those that are late.
  Seconds timeout{300};
  /// As GlooOptions::any_order.
  bool any_order = false;
};

/// All processes of MPI_COMM_WORLD, by messages on a communicator of our own. MPI is initialised,
/// with MPI_THREAD_MULTIPLE, unless the program has done so, and is then finalised when it ends.
///
/// Where a call has taken too long, and no communicator was made since, the process ends without MPI_Finalize, which would
/// wait for the one that is stuck; the launcher then ends the whole job. If the stuck process continues
/// before that, MPI may still read or write the memory of the call that failed: it cannot take back a message.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the program has initialised MPI without MPI_THREAD_MULTIPLE, or finalised it
[[nodiscard]] std::unique_ptr<Communicator> mpi_communicator(const MpiOptions& options = {});

// ---- processes on host memory; the others survive the death of one. Link penstock::gloo ----

struct GlooOptions {
  /// How long a collective waits for the others.
  Seconds timeout{300};
  /// Fewer messages for sums, means and products in all_reduce of 65 bytes to 1 MiB, by recursive halving and doubling. The last
  /// bits of floats then depend on the number of processes; they are the same on all ranks and in every run. Set the same value
  /// in every process. 16-bit floats, and all other calls, stay as they are.
  bool any_order = false;
};

/// The processes of a rendezvous, over TCP. It keeps the rendezvous, which notices at once that a process died.
///
/// A duplicate that leaves in the middle of a call, while its data are on their way, ends the connections of all
/// duplicates: Gloo would read and write the caller's memory for as long as they last.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the others cannot be reached
[[nodiscard]] std::unique_ptr<Communicator> gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options = {});

// ---- CUDA devices of any number of processes and machines. NCCL is opened when it is first used, so that programs start where it is absent ----

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
  Seconds timeout{300};
  /// NCCL's file, tried before the system's where the process has none yet and PENSTOCK_NCCL_LIBRARY names none. Counts in
  /// the process's first use of NCCL.
  std::string library{};
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
/// One rank for each process of a rendezvous, which also finds the process that died or is late.
[[nodiscard]] std::unique_ptr<Communicator> nccl_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const Device& device, const NcclOptions& options = {});

}  // namespace penstock
