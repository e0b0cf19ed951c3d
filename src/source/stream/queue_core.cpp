#include "src/source/stream/queue_core.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/core/process.hpp>

#include "src/core/exception_text.hpp"

namespace penstock::source {

Queue::Core::Core(std::vector<FieldSpec> fields, QueueOptions given)
    : options(std::move(given)),
      name(fmt::format("queue '{}'", options.name)),
      packing(std::move(fields), name) {
  if (options.capacity == 0 || options.max_bytes == 0)
    throw std::invalid_argument(fmt::format(
        "{}: expected a capacity and max_bytes of at least 1, found {} and {}: a loader needs room "
        "for its shuffle buffer and some batches",
        name, options.capacity, options.max_bytes));
  if (packing.fixed_size().value_or(0) > options.max_bytes)
    throw std::invalid_argument(fmt::format(
        "{}: a record has {} bytes, more than max_bytes = {}: raise max_bytes to that many for "
        "every record that may wait",
        name, *packing.fixed_size(), options.max_bytes));
}

bool Queue::Core::fits(std::size_t size) const noexcept {
  if (arrived_.waiting() + reserved_ >= options.capacity) return false;
  // What the loader waits for comes in whatever the bytes: nothing that it has drawn can be read,
  // and so make room, before its batch is complete.
  if (arrived_.count() + reserved_ < wanted_) return true;
  const std::size_t held = arrived_.waiting_bytes() + reserved_bytes_;
  return held <= options.max_bytes && size <= options.max_bytes - held;
}

void Queue::Core::reserve(std::size_t size) noexcept {
  ++reserved_;
  reserved_bytes_ += size;
}

void Queue::Core::unreserve(std::size_t size) noexcept {
  --reserved_;
  reserved_bytes_ -= size;
}

void Queue::Core::admit_waiters() noexcept {
  while (!waiters_.empty() && fits(waiters_.front()->size)) {
    Waiter& waiter = *waiters_.front();
    waiters_.pop_front();
    reserve(waiter.size);
    waiter.admitted = true;
    waiter.wake.notify_one();
  }
}

void Queue::Core::throw_closed() const {
  const std::string why =
      reader_gone_ ? "the loader that read it is gone" : core::text_of(cause_, "it was closed");
  throw QueueClosed(fmt::format("{} takes no more records: {}", name, why), cause_);
}

bool Queue::Core::admit(std::size_t size, const std::stop_token& stop, const Deadline& deadline) {
  if (size > options.max_bytes)
    throw std::invalid_argument(
        fmt::format("{}: expected records of at most max_bytes = {} bytes, found one of {}: raise "
                    "max_bytes, or push smaller records",
                    name, options.max_bytes, size));
  std::unique_lock lock(mutex_);
  if (closed_) throw_closed();
  if (stop.stop_requested()) return false;
  if (waiters_.empty() && fits(size)) {
    reserve(size);
    return true;
  }
  if (deadline && *deadline <= std::chrono::steady_clock::now()) return false;

  Waiter self{size, now_ns()};
  waiters_.push_back(&self);
  const auto done = [&] { return self.admitted || closed_; };
  if (deadline)
    (void)self.wake.wait_until(lock, stop, *deadline, done);
  else
    (void)self.wake.wait(lock, stop, done);
  blocked_ns_ += now_ns() - self.since;
  if (self.admitted) return true;
  waiters_.remove(&self);
  admit_waiters();  // smaller ones may have waited behind this one
  if (closed_) throw_closed();
  return false;
}

void Queue::Core::commit(source::PackedRecord&& record) {
  const std::lock_guard lock(mutex_);
  unreserve(record.size);
  if (closed_) throw_closed();
  try {
    arrived_.add(std::move(record));
  } catch (...) {
    admit_waiters();
    throw;
  }
  if (wanted_ != 0 && arrived_.count() >= wanted_) consumer_.notify_all();
}

void Queue::Core::withdraw(std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  unreserve(size);
  admit_waiters();
}

void Queue::Core::close(std::exception_ptr cause, bool reader_gone) noexcept {
  std::unordered_map<std::uint64_t, source::PackedRecord> unread;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (reader_gone) unread = arrived_.clear();
  if (closed_) return;
  closed_ = true;
  reader_gone_ = reader_gone;
  cause_ = std::move(cause);
  for (Waiter* waiter : waiters_) waiter->wake.notify_one();
  consumer_.notify_all();
}

bool Queue::Core::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::exception_ptr Queue::Core::cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

std::uint64_t Queue::Core::wait(std::uint64_t wanted, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (arrived_.count() < wanted) {
    wanted_ = wanted;
    admit_waiters();
    (void)consumer_.wait(lock, stop, [&] { return arrived_.count() >= wanted || closed_; });
    wanted_ = 0;
  }
  return arrived_.count();
}

Result<source::PackedRecord> Queue::Core::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto taken = arrived_.take(number, name);
  if (taken) admit_waiters();
  return taken;
}

QueueStats Queue::Core::stats() const {
  const std::lock_guard lock(mutex_);
  std::int64_t blocked_ns = blocked_ns_;
  const std::int64_t now = now_ns();
  for (const Waiter* waiter : waiters_) blocked_ns += now - waiter->since;
  return {.pushed = arrived_.count(),
          .read = arrived_.count() - arrived_.waiting(),
          .waiting = arrived_.waiting(),
          .waiting_bytes = arrived_.waiting_bytes(),
          .blocked_producers = waiters_.size(),
          .blocked_s = static_cast<double>(blocked_ns) * 1e-9};
}

}  // namespace penstock::source
