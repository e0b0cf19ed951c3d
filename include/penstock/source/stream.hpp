// source/stream: streaming sources: records that arrive one after another, and are read once.
// The records of a Source, by contrast, can be read again and in any order.
//
// source/queue is fed by threads, source/queue_server feeds a queue from other processes, and
// source/generator calls a function for every next record.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/record.hpp>

namespace penstock {

/// Records that are numbered by their arrival: number i is the i-th that arrived. There is no
/// random access to what has not arrived, no second epoch and no resume; a shuffle works by window.
///
/// read() returns each record once, in any order among those that have arrived, and frees its
/// memory. A record that was read before, or has not arrived, is a Fault.
///
/// Threads  any of it from any thread at once; wait() from one at a time.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Names, types and shapes of a record's fields; an extent of kDynamic may differ from record to
  /// record.
  [[nodiscard]] virtual std::span<const FieldSpec> fields() const noexcept = 0;
  /// Hands record `number` out, as Source::read.
  virtual Result<void> read(std::uint64_t number, Record& record) = 0;
  /// What to call record `number` in messages.
  [[nodiscard]] virtual std::string location(std::uint64_t number) const = 0;
  /// The stream's name and fields.
  [[nodiscard]] virtual std::string fingerprint() const = 0;

  /// Waits until `wanted` records have arrived since the very start, no more will, or `stop` is
  /// requested. Returns how many have arrived: at least `wanted`, unless closed or stopped.
  virtual std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) = 0;
  /// Whether no more will arrive. What arrived before can still be read.
  [[nodiscard]] virtual bool closed() const = 0;
  /// What ended the stream; null if it simply ended or is still open. It is for the consumer,
  /// after the last record.
  [[nodiscard]] virtual std::exception_ptr cause() const = 0;

  /// Frees a record that will not be read.
  ///
  /// Errors  std::logic_error  it was read before, or has not arrived
  virtual void discard(std::uint64_t number) = 0;
  /// Says that the reader may need `records` to wait unread at the same time: its shuffle window
  /// and the batches that it fills.
  ///
  /// Errors  std::invalid_argument  there is no room for so many; the message says what to do
  virtual void require_capacity(std::uint64_t /*records*/) {}

  /// Says that a reader begins.
  ///
  /// Errors  std::logic_error  there is or was another reader: a stream is read once
  virtual void attach();
  /// Says that the reader is done: what is left is freed, and producers are told.
  virtual void detach() noexcept = 0;

 private:
  std::atomic<bool> attached_ = false;
};

using StreamPtr = std::shared_ptr<Stream>;

}  // namespace penstock
