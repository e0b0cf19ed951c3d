// sync/mirrored: a variable with a copy on every replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/sync/replicas.hpp>

namespace penstock {

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
