// source/stream/queue_core: when each producer may push, and what has arrived.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>

#include <penstock/source/stream.hpp>

#include "src/source/stream/arrived.hpp"

namespace penstock::source {

/// The queue, for callers that bring their records packed.
///
/// A push is admitted first, which reserves its room, and copies only then: a blocked producer
/// holds no memory. Blocked producers are admitted in their order, so that a large record is not
/// overtaken by small ones forever.
class Queue::Core {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  Core(std::vector<FieldSpec> fields, QueueOptions options);

  const QueueOptions options;
  const std::string name;  ///< "queue 'name'"
  const source::Packing packing;

  /// Waits for room for a record of `size` bytes; false when stopped or late. An admitted record
  /// has to be committed or withdrawn.
  ///
  /// Errors  std::invalid_argument  more than max_bytes
  ///         QueueClosed            the queue takes no more
  [[nodiscard]] bool admit(std::size_t size, const std::stop_token& stop, const Deadline& deadline);
  /// Errors  QueueClosed  closed since it was admitted
  void commit(source::PackedRecord&& record);
  void withdraw(std::size_t size) noexcept;

  void close(std::exception_ptr cause, bool reader_gone) noexcept;
  [[nodiscard]] bool closed() const;
  [[nodiscard]] std::exception_ptr cause() const;

  std::uint64_t wait(std::uint64_t wanted, const std::stop_token& stop);
  Result<source::PackedRecord> take(std::uint64_t number);
  [[nodiscard]] QueueStats stats() const;

 private:
  struct Waiter {
    std::size_t size;
    std::int64_t since;
    bool admitted = false;
    std::condition_variable_any wake{};
  };

  [[nodiscard]] bool fits(std::size_t size) const noexcept;
  void reserve(std::size_t size) noexcept;
  void unreserve(std::size_t size) noexcept;
  void admit_waiters() noexcept;
  [[noreturn]] void throw_closed() const;

  mutable std::mutex mutex_;
  source::Arrived arrived_;
  std::uint64_t reserved_ = 0;  // admitted, not committed
  std::size_t reserved_bytes_ = 0;
  std::list<Waiter*> waiters_;
  std::int64_t blocked_ns_ = 0;  // by producers that wait no more
  std::uint64_t wanted_ = 0;     // by wait(); 0 when there is no waiter
  std::condition_variable_any consumer_;
  bool closed_ = false;
  bool reader_gone_ = false;
  std::exception_ptr cause_;
};

}  // namespace penstock::source
