// Python objects in the hands of C++ threads, and the end of the interpreter and of a fork's child.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include <penstock/core/error.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Set before the interpreter ends: from then on only its main thread may take the GIL.
void begin_closing() noexcept;
[[nodiscard]] bool closing() noexcept;
/// Whether this thread may take the GIL.
[[nodiscard]] bool may_take_gil() noexcept;
/// Stands still for ever where taking the GIL would end the thread in the middle of C++ frames: a
/// daemon thread that comes back from a wait while the interpreter ends. As Python 3.14 does.
void stand_still_if_closing() noexcept;

/// A reference to a Python object that may be copied and dropped on any thread, with or without the
/// GIL. Dropped when the interpreter has gone, or is going, it leaks.
using ObjectRef = std::shared_ptr<PyObject>;
[[nodiscard]] ObjectRef keep(nb::object object);
[[nodiscard]] inline nb::handle handle_of(const ObjectRef& object) { return object.get(); }

/// What a user's Python function raised, on its way through the library as a C++ exception.
class PythonException : public Error {
 public:
  /// Takes over a pending error. Needs the GIL.
  explicit PythonException(nb::python_error& error);
  /// Takes an exception object over, as the reason for the end of a queue. Needs the GIL.
  explicit PythonException(nb::object raised);
  [[nodiscard]] nb::handle value() const { return handle_of(value_); }

 private:
  ObjectRef value_;
};

/// The Python exception inside, or null.
[[nodiscard]] nb::object python_cause(const std::exception_ptr& cause);

/// How often this process has been forked into being since the module was loaded.
[[nodiscard]] int fork_generation() noexcept;
void watch_forks();

/// Owns a C++ value with threads or locks behind it. After a fork nobody knows what state these are
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
