// order/order: which sample comes when. Pure integers: no byte is read here.
//
// An Order is a function from (iteration, position) to a SampleId. `range` numbers a source's
// samples; every other operation is an Order made from another. An iteration is one run through the
// order; `repeat` below another operation turns its outer position into the inner iteration, so
// that `shuffle` draws a new permutation each time, and the innermost iteration is the epoch.
//
// So the whole state of an order is one position, and restoring it is a multiplication.
// Start here, then order/range, select (take, skip, shard), repeat, shuffle, window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <penstock/core/sample_id.hpp>

namespace penstock {

/// A reader of one Order. It may remember where it was (the shuffle window does) but its answers
/// are those of a pure function.
///
/// Threads  one caller at a time; several cursors of one Order are independent.
class OrderCursor {
 public:
  virtual ~OrderCursor() = default;

  /// Fills out[k] with the sample at position first + k * stride of the given iteration, as long as
  /// there are such positions, and says how many it filled. stride >= 1.
  virtual std::size_t read(std::uint32_t iteration, std::uint64_t first, std::uint64_t stride,
                           std::span<SampleId> out) = 0;

  /// Bytes that the cursor holds, for the loader's budget.
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept { return sizeof(*this); }
};

/// An immutable plan of positions, shared freely between threads.
class Order {
 public:
  virtual ~Order() = default;

  /// Positions in one iteration; none for an endless order.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const noexcept = 0;
  /// How many iterations of the source one iteration of this order runs through; 1 unless it
  /// repeats, none if it repeats for ever.
  [[nodiscard]] virtual std::optional<std::uint32_t> epochs() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<OrderCursor> open() const = 0;
  /// One operation a piece, such as "range(400).shuffle(seed=7).repeat()": the plan's fingerprint.
  [[nodiscard]] virtual std::string describe() const = 0;
};

using OrderPtr = std::shared_ptr<const Order>;

}  // namespace penstock
