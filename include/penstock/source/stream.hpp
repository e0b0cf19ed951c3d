// source/stream: data that no file holds: records that arrive one after another, once.
//
// source/queue is fed by threads, source/queue_server feeds a queue from other processes, and
// source/generator calls a function for every next record.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <stop_token>

#include <penstock/source/source.hpp>

namespace penstock {

/// Records that are numbered by their arrival: number i is the i-th that arrived. There is no
/// random access to what has not arrived, no second epoch and no resume; a shuffle works by window.
///
/// read() hands a record out once, in any order among those that have arrived, and lets go of its
/// memory. A record that was read before, or has not arrived, is a Fault.
///
/// Like every source's, the functions are const, since plans share their sources as const; what
/// they change is which records are left.
///
/// Threads  as Source: any of it from any thread at once; wait() from one at a time.
class Stream : public Source {
 public:
  /// The size of a source whose end nobody knows.
  static constexpr std::uint64_t kEndless = UINT64_MAX;
  [[nodiscard]] std::uint64_t size() const noexcept final { return kEndless; }

  /// Waits until `wanted` records have arrived since the very start, no more will, or `stop` is
  /// requested. Returns how many have arrived: at least `wanted`, unless closed or stopped.
  virtual std::uint64_t wait(std::uint64_t wanted, std::stop_token stop) const = 0;
  /// Whether no more will arrive. What arrived before can still be read.
  [[nodiscard]] virtual bool closed() const = 0;
  /// What ended the stream, where it did not simply end; null otherwise. It is for the consumer,
  /// after the last record.
  [[nodiscard]] virtual std::exception_ptr cause() const = 0;

  /// Lets go of a record that nobody will read.
  ///
  /// Errors  std::logic_error  it was read before, or has not arrived
  virtual void discard(std::uint64_t number) const = 0;
  /// Says that the reader may need `records` to wait unread at the same time: its shuffle window
  /// and the batches that it fills.
  ///
  /// Errors  std::invalid_argument  there is no room for so many; the remedy is in the message
  virtual void require_capacity(std::uint64_t /*records*/) const {}

  /// Says that somebody begins to read.
  ///
  /// Errors  std::logic_error  somebody else does, or has: a stream is read once
  virtual void attach() const;
  /// Says that nobody will read any more: what is left is let go of, and producers are told.
  virtual void detach() const noexcept = 0;

 private:
  mutable std::atomic<bool> attached_ = false;
};

}  // namespace penstock
