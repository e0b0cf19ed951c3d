#include "python_object.hpp"

#include <atomic>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace penstock::python {

namespace {

std::atomic<bool> is_closing = false;
std::thread::id closing_thread;
std::atomic<int> forks = 0;

std::string text_of(nb::handle exception) {
  // As the last line of a traceback.
  std::string text = nb::cast<std::string>(exception.type().attr("__name__"));
  try {
    const std::string message = nb::cast<std::string>(nb::str(exception));
    if (!message.empty()) text += ": " + message;
  } catch (nb::python_error&) {
    text += " (whose text cannot be had)";
  }
  return text;
}

}  // namespace

void begin_closing() noexcept {
  closing_thread = std::this_thread::get_id();
  is_closing = true;
}
bool closing() noexcept { return is_closing; }
bool may_take_gil() noexcept {
  if (!is_closing) return true;
  return Py_IsInitialized() != 0 && std::this_thread::get_id() == closing_thread;
}
void stand_still_if_closing() noexcept {
  while (!may_take_gil()) ::pause();
}

ObjectRef keep(nb::object object) {
  return {object.release().ptr(), [](PyObject* held) {
            if (!may_take_gil()) return;
            const nb::gil_scoped_acquire gil;
            Py_XDECREF(held);
          }};
}

PythonException::PythonException(nb::python_error& error)
    : PythonException(nb::borrow(error.value())) {}
PythonException::PythonException(nb::object raised)
    : Error(text_of(raised)), value_(keep(std::move(raised))) {}

nb::object python_cause(const std::exception_ptr& cause) {
  if (!cause) return {};
  try {
    std::rethrow_exception(cause);
  } catch (const PythonException& exception) {
    return nb::borrow(exception.value());
  } catch (...) {
    return {};
  }
}

int fork_generation() noexcept { return forks; }
void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

}  // namespace penstock::python
