// sync/communicator: collectives over the replicas of a training job, over any transport.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

namespace penstock {

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
///          and the result is there when the call returns.
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

}  // namespace penstock
