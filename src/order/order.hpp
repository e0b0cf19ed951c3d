// order/order: the order of samples, as integers. No data are read here.
//
// An Order is a function from (iteration, position) to a SampleId. `range` numbers a source's
// samples; every other operation is an Order made from another. An iteration is one run through the
// order; `repeat` below another operation turns its outer position into the inner iteration, so
// that `shuffle` draws a new permutation each time, and the innermost iteration is the epoch.
//
// So the whole state of an order is one position, and restoring it is a multiplication.
// The exception are samples that arrive one after another (arrivals): their number is not known
// beforehand, and they come once.
//
// Start here, then operations.hpp. Each operation has a file; but take, skip and shard are in selection.cpp, and repeat_each
// is in repeat.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <penstock/core/error.hpp>

namespace penstock::order {

/// A reader of one Order. It may remember where it was (the shuffle window does) but its answers
/// are those of a pure function.
///
/// Threads  one caller at a time; several cursors of one Order are independent.
class OrderCursor {
 public:
  virtual ~OrderCursor() = default;

  /// Fills out[k] with the sample at position first + k * stride of the given iteration, as long as
  /// there are such positions, and says how many it filled. stride >= 1.
  ///
  /// Errors  std::out_of_range  the iteration does not exist: epochs are counted in 32 bits, and an
  ///         endless order has only iteration 0
  virtual std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                           std::span<SampleId> out) = 0;

  /// Fills out[k] with the sample at positions[k]; all of them must exist. For the operations that
  /// read their input out of order. `positions` is scratch: its contents are lost.
  virtual void read_at(std::uint32_t iteration, std::span<std::uint64_t> positions,
                       std::span<SampleId> out);

  /// Bytes that the cursor holds, its input's included, for the loader's budget.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
};

/// An immutable plan of positions, shared freely between threads.
class Order {
 public:
  virtual ~Order() = default;

  /// Positions in one iteration; none for an endless order.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const noexcept = 0;
  /// How many iterations of the source one iteration of this order runs through, at most; 1 unless
  /// something in it repeats, none if something in it repeats endlessly (even where a take ends
  /// it).
  [[nodiscard]] virtual std::optional<std::uint32_t> epochs() const noexcept = 0;
  /// Whether its samples arrive one after another and cannot be read a second time. Its cursors
  /// read iteration 0 only, forwards only, and end where no more arrive: before size(), where a
  /// take gives it one.
  [[nodiscard]] virtual bool is_stream() const noexcept { return false; }
  [[nodiscard]] virtual std::unique_ptr<OrderCursor> open() const = 0;
  /// One operation a piece, such as "range(400).shuffle(buffer=100).repeat()". Seeds are not in it:
  /// the fingerprint of a plan adds them.
  [[nodiscard]] virtual std::string describe() const = 0;
};

using OrderPtr = std::shared_ptr<const Order>;

}  // namespace penstock::order
