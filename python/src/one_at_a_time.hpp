// One thread at a time, in a process and in the children of its forks.
#pragma once

#include <memory>
#include <mutex>

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <penstock/source/source.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// A lock that a child of a fork does not inherit locked, and whose waiting ends when the loader is stopped.
class OneAtATime {
 public:
  OneAtATime() = default;
  /// That of a data set: the same for all wrappers of it that have it as `.dataset`, such as torch's Subset, while one of the
  /// callers lives that keep `data`. Needs the GIL.
  [[nodiscard]] static std::shared_ptr<OneAtATime> of(nanobind::handle data);
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;
  ~OneAtATime();

  /// Not locked where the loader that reads `record` was stopped. Needs the GIL, and gives it up while it waits.
  [[nodiscard]] std::unique_lock<std::timed_mutex> lock(const Record& record);

 private:
  std::timed_mutex& of_this_process();

  std::timed_mutex* mutex_ = nullptr;
  pid_t process_ = 0;  // whose mutex it is
  ObjectRef data_;     // that it is of
};

}  // namespace penstock::python
