// source/queue: a bounded queue of records that threads push and a loader reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/source/record.hpp>
#include <penstock/source/stream.hpp>

namespace penstock {

/// How much may wait in a queue. Records count from their push until they are read.
struct QueueOptions {
  /// records that may wait. A loader needs its shuffle buffer plus some batches, and says so if it is too little
  std::uint64_t capacity = 1024;
  /// bytes that may wait. Records that the loader is waiting for are accepted beyond it: so a shuffle buffer of
  /// large records can fill instead of blocking forever
  std::size_t max_bytes = std::size_t{256} << 20;
  std::string name = "queue";  ///< for messages
};

template <class Visitor>
void visit_fields(Visitor& visit, QueueOptions& options) {
  visit("capacity", options.capacity);
  visit("max_bytes", options.max_bytes);
  visit("name", options.name);
}

/// A queue in numbers.
struct QueueStats {
  std::uint64_t pushed = 0;             ///< records, so far
  std::uint64_t read = 0;               ///< records that were read or discarded
  std::uint64_t waiting = 0;            ///< records that were pushed and not read
  std::size_t waiting_bytes = 0;        ///< their bytes
  std::uint64_t blocked_producers = 0;  ///< producers that wait now
  double blocked_s = 0;                 ///< seconds that all producers together have waited
};

/// Thrown by push: the queue takes no more records. The message says why.
class QueueClosed : public Error {
 public:
  explicit QueueClosed(const std::string& message, std::exception_ptr cause = {})
      : Error(message), cause_(std::move(cause)) {}
  /// What the queue was closed with; null if with nothing, or in another process.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

namespace source {

/// A queue that any number of threads push into while one loader reads. What was pushed before
/// close() is delivered; nothing is lost or doubled. Several records pushed by one thread arrive in
/// its order, and blocked threads are let in in the order in which they came.
///
///   auto queue = source::queue({{"observation", DType::f32, {kDynamic, 4}},
///                               {"reward", DType::f32, {kDynamic}}});
///   // on the actors' threads
///   queue->push({source::values(observations, {steps, 4}), source::values(rewards)});
///   queue->close();
///   // on the consumer's
///   Dataset(queue).shuffle({.buffer = 500}).map(…).batch(32)
///
/// Threads  any of it from any thread.
/// Owns     a push copies the record; its views may go as soon as it returns.
class Queue final : public Stream {
 public:
  /// As source::queue().
  Queue(std::vector<FieldSpec> fields, QueueOptions options);
  ~Queue() override;

  /// Adds a record, its fields in the order of fields(); waits while the queue is full.
  ///
  /// Errors  std::invalid_argument  a field has another type or shape than it should, or the record
  ///                                is larger than max_bytes; names field, expected and found
  ///         QueueClosed            the queue takes no more
  void push(std::span<const ConstTensorView> record);
  void push(std::initializer_list<ConstTensorView> record) {
    push(std::span(record.begin(), record.size()));
  }
  /// The same; false, and nothing pushed, once `stop` is requested.
  [[nodiscard]] bool push(std::span<const ConstTensorView> record, const std::stop_token& stop);
  /// The same; false, and nothing pushed, if the queue stays full for so long.
  [[nodiscard]] bool try_push_for(std::span<const ConstTensorView> record,
                                  std::chrono::nanoseconds timeout);
  /// The same; false, and nothing pushed, if the queue is full or others wait already.
  [[nodiscard]] bool try_push(std::span<const ConstTensorView> record);

  /// No more records: blocked and later pushes throw QueueClosed. The first close counts.
  void close() noexcept { close(nullptr); }
  /// The same, and why: the consumer gets `cause` after the last record, the producers in their
  /// QueueClosed.
  void close(std::exception_ptr cause) noexcept;

  [[nodiscard]] const QueueOptions& options() const noexcept;
  [[nodiscard]] QueueStats stats() const;

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override;
  Result<void> read(std::uint64_t number, Record& record) override;
  [[nodiscard]] std::string location(std::uint64_t number) const override;
  [[nodiscard]] std::string fingerprint() const override;
  std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) override;
  [[nodiscard]] bool closed() const override;
  [[nodiscard]] std::exception_ptr cause() const override;
  void discard(std::uint64_t number) override;
  void require_capacity(std::uint64_t records) override;
  void detach() noexcept override;

 private:
  friend class QueueServer;
  class Core;
  std::unique_ptr<Core> core_;
};

/// A queue of records with these fields.
///
/// Shapes  as given; an extent of kDynamic may differ from record to record.
/// Errors  std::invalid_argument  no fields, a name missing or used twice, a fixed shape without
///                                elements; a capacity or max_bytes of 0
[[nodiscard]] std::shared_ptr<Queue> queue(std::vector<FieldSpec> fields,
                                           QueueOptions options = {});

}  // namespace source
}  // namespace penstock
