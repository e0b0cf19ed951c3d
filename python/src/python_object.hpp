// Python objects in the hands of C++ threads, and the end of the interpreter and of a fork's child.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include <penstock/core/description.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Before the interpreter ends, with the GIL: from then on only this thread may take it.
void begin_closing() noexcept;
[[nodiscard]] bool closing() noexcept;
/// Keeps Python's state of this thread until the thread ends, for one that calls Python often: making one
/// costs microseconds, and what a function keeps in threading.local() would be gone after each call.
void keep_thread_state();
/// The GIL, where this thread may take it: not any more while the interpreter ends, which would end the thread in the middle of
/// C++ frames.
class GilIfOpen {
 public:
  GilIfOpen() noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return gil_.has_value(); }

 private:
  std::optional<nb::gil_scoped_acquire> gil_;
};
/// Gives the GIL up for as long as it lives. A daemon thread that comes back while the interpreter ends stands still for ever,
/// as in Python 3.14.
class ReleasedGil {
 public:
  ReleasedGil() noexcept : state_(PyEval_SaveThread()) {}
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// A Python object in the hands of C++: a function, an exception. Python's collector does not see
/// what holds it, so release_kept() takes it away before the interpreter ends, or whatever refers to
/// a loader of its own would never go.
class Kept {
 public:
  /// Needs the GIL.
  explicit Kept(nb::object object);
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  /// On any thread, with or without the GIL.
  ~Kept();

 private:
  friend nb::object object_of(const std::shared_ptr<const Kept>& kept);
  friend void release_kept();

  PyObject* object_;
};
using ObjectRef = std::shared_ptr<const Kept>;
/// The object; none when there is no reference or it was taken away. Needs the GIL.
[[nodiscard]] nb::object object_of(const ObjectRef& kept);
/// Needs the GIL, and that no loader runs.
void release_kept();
/// Keeps an object with memory that C++ reads; release_kept() leaves it. Needs the GIL; the pointer
/// may be dropped on any thread.
[[nodiscard]] std::shared_ptr<const void> keep_memory(nb::object object);

/// Marks this thread, for as long as it lives, as one on which the library calls Python. Python may begin a collection there, and
/// what it drops must not wait for the library's threads, of which this one is one.
class CallOfPython {
 public:
  CallOfPython() noexcept { ++depth; }
  ~CallOfPython() { --depth; }
  CallOfPython(const CallOfPython&) = delete;
  CallOfPython& operator=(const CallOfPython&) = delete;

  [[nodiscard]] static bool is_on_this_thread() noexcept { return depth > 0; }

 private:
  static inline thread_local int depth = 0;
};

/// What calls of a Python function cost: relaxed counters, for any number of threads.
class CallTimes {
 public:
  [[nodiscard]] FunctionTime times(std::string name, std::string remedy) const {
    return {.name = std::move(name),
            .lock = "the GIL",
            .remedy = std::move(remedy),
            .calls = calls_,
            .wait_s = static_cast<double>(wait_ns_) * 1e-9,
            .busy_s = static_cast<double>(busy_ns_) * 1e-9};
  }

 private:
  friend class TimedGil;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<std::int64_t> wait_ns_ = 0;
  std::atomic<std::int64_t> busy_ns_ = 0;
};

/// The GIL, for one call of a Python function, or some. A thread that gives it up to another that wants it waits until
/// that one has it: this is waiting, too.
class TimedGil {
 public:
  explicit TimedGil(CallTimes& times, std::uint64_t calls = 1) : times_(times), calls_(calls) {
    keep_thread_state();
    gil_.emplace();
    held_ns_ = now_ns();
  }
  ~TimedGil() {
    const std::int64_t done_ns = now_ns();
    gil_.reset();
    times_.calls_ += calls_;
    times_.busy_ns_ += done_ns - held_ns_;
    times_.wait_ns_ += held_ns_ - begin_ns_ + now_ns() - done_ns;
  }
  /// What came before was waiting, too: for another lock.
  void begin_work() noexcept { held_ns_ = now_ns(); }
  TimedGil(const TimedGil&) = delete;
  TimedGil& operator=(const TimedGil&) = delete;

 private:
  CallOfPython call_;
  CallTimes& times_;
  std::uint64_t calls_;
  std::int64_t begin_ns_ = now_ns();
  std::int64_t held_ns_ = 0;
  std::optional<nb::gil_scoped_acquire> gil_;
};

/// What a user's Python function raised, on its way through the library as a C++ exception.
class PythonException : public Error {
 public:
  /// Takes an exception object over. Needs the GIL.
  explicit PythonException(nb::object raised);
  /// None when it was taken away. Needs the GIL.
  [[nodiscard]] nb::object value() const { return object_of(value_); }

 private:
  ObjectRef value_;
};

/// What was raised, as a PythonException; a MemoryError as one that is an OutOfMemory, too. Needs the GIL.
[[nodiscard]] std::exception_ptr as_cpp(nb::object raised);
/// Takes over a pending error, and throws that.
[[noreturn]] void rethrow(nb::python_error& error);

/// The Python exception inside, or null.
[[nodiscard]] nb::object python_cause(const std::exception_ptr& cause);

/// How often this process has been forked into being since the module was loaded.
[[nodiscard]] int fork_generation() noexcept;
void watch_forks();

/// Owns a C++ value with threads or locks behind it. After a fork it is unknown what state these are
/// in, and the threads are not there: the child's copy is left alone.
template <class T>
class ForkSafe {
 public:
  explicit ForkSafe(T value) : value_(new T(std::move(value))) {}
  ForkSafe(const ForkSafe& other) : value_(new T(*other.value_)), generation_(other.generation_) {}
  ForkSafe(ForkSafe&& other) noexcept
      : value_(std::exchange(other.value_, nullptr)), generation_(other.generation_) {}
  ForkSafe& operator=(const ForkSafe&) = delete;
  ForkSafe& operator=(ForkSafe&&) = delete;
  ~ForkSafe() {
    if (!forked()) delete value_;
  }

  [[nodiscard]] bool forked() const noexcept { return generation_ != fork_generation(); }
  T& operator*() const noexcept { return *value_; }
  T* operator->() const noexcept { return value_; }

 private:
  T* value_;
  int generation_ = fork_generation();
};

}  // namespace penstock::python
