#include "one_at_a_time.hpp"

#include <chrono>
#include <map>

#include <unistd.h>

#include "python_object.hpp"

namespace penstock::python {

std::shared_ptr<OneAtATime> OneAtATime::of(nb::handle data) {
  constexpr int kMostWrappers = 16;
  nb::object inner = nb::borrow(data);
  for (int depth = 0; depth < kMostWrappers && nb::hasattr(inner, "dataset"); ++depth)
    inner = inner.attr("dataset");
  // An entry keeps its object, so that its address is not another object's.
  static std::map<PyObject*, std::weak_ptr<OneAtATime>> all;  // the GIL guards it
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<OneAtATime>& kept = all[inner.ptr()];
  std::shared_ptr<OneAtATime> found = kept.lock();
  if (!found) {
    kept = found = std::make_shared<OneAtATime>();
    found->data_ = std::make_shared<Kept>(inner);
  }
  return found;
}

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
  // The loader's threads are joined before the interpreter goes, so that they may ask for the GIL until then.
  const nb::gil_scoped_release released;
  constexpr std::chrono::milliseconds kSlice(50);
  while (!lock.try_lock_for(kSlice))
    if (record.is_cancelled()) break;
  return lock;
}

}  // namespace penstock::python
