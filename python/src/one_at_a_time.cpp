#include "one_at_a_time.hpp"

#include <chrono>

#include <unistd.h>

#include "python_object.hpp"

namespace penstock::python {

OneAtATime::~OneAtATime() {
  // That of a parent may be locked for ever, by a thread that is not in this process.
  if (process_ == ::getpid()) delete mutex_;
}

std::timed_mutex& OneAtATime::of_this_process() {
  if (const pid_t self = ::getpid(); process_ != self) {
    mutex_ = new std::timed_mutex;
    process_ = self;
  }
  return *mutex_;
}

std::unique_lock<std::timed_mutex> OneAtATime::lock(const Record& record) {
  std::unique_lock lock(of_this_process(), std::try_to_lock);
  if (lock.owns_lock()) return lock;
  const ReleasedGil released;
  constexpr std::chrono::milliseconds kSlice(50);
  while (!lock.try_lock_for(kSlice))
    if (record.is_cancelled()) break;
  return lock;
}

}  // namespace penstock::python
