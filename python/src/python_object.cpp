#include "python_object.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include <pthread.h>
#include <unistd.h>

namespace penstock::python {

namespace {

std::atomic<bool> is_closing = false;
std::thread::id closing_thread;
std::atomic<int> taking = 0;  // threads that may take the GIL, and do not have it yet
std::atomic<int> forks = 0;

bool is_over() noexcept { return is_closing && Py_IsInitialized() == 0; }
// Whether this thread may take the GIL. If so, it says end_taking() when it has it: the interpreter does not end before that.
bool begin_taking() noexcept {
  ++taking;
  if (!is_closing || std::this_thread::get_id() == closing_thread) return true;
  --taking;
  return false;
}
void end_taking() noexcept { --taking; }

struct AllKept {
  std::mutex mutex;  // never held while waiting for the GIL
  std::unordered_set<Kept*> objects;
};
// Never destroyed: the last ones may go with the process.
AllKept& all_kept() {
  static auto* const all = new AllKept;
  return *all;
}

void drop(PyObject* object) {
  if (object == nullptr) return;
  if (const GilIfOpen gil; gil) Py_DECREF(object);
}

std::string last_line_of(nb::handle exception) {
  // As the last line of a traceback.
  std::string text = nb::cast<std::string>(exception.type().attr("__name__"));
  try {
    // It may quote names of files that are not UTF-8.
    const nb::str shown(exception);
    const auto bytes =
        nb::steal<nb::bytes>(PyUnicode_AsEncodedString(shown.ptr(), "utf-8", "backslashreplace"));
    if (!bytes.is_valid()) throw nb::python_error();
    const std::string message(bytes.c_str(), bytes.size());
    if (!message.empty()) text += ": " + message;
  } catch (nb::python_error&) {
    text += " (its message cannot be read)";
  }
  return text;
}

}  // namespace

void keep_thread_state() {
  struct State {
    State() {
      (void)PyGILState_Ensure();
      (void)PyEval_SaveThread();
    }
    ~State() {
      if (is_over() || !begin_taking()) return;
      (void)PyGILState_Ensure();
      end_taking();
      PyGILState_Release(PyGILState_LOCKED);
      PyGILState_Release(PyGILState_UNLOCKED);
    }
  };
  if (PyGILState_GetThisThreadState() != nullptr) return;  // one of Python's own, or kept already
  thread_local std::optional<State> state;
  state.emplace();
}

void begin_closing() noexcept {
  constexpr std::chrono::milliseconds kLook(1);
  constexpr int kMostLooks = 10'000;
  closing_thread = std::this_thread::get_id();
  is_closing = true;
  const ReleasedGil released;
  for (int looks = 0; taking != 0 && looks < kMostLooks; ++looks)
    std::this_thread::sleep_for(kLook);
}
bool closing() noexcept { return is_closing; }

GilIfOpen::GilIfOpen() noexcept {
  if (is_over() || !begin_taking()) return;
  gil_.emplace();
  end_taking();
}
ReleasedGil::~ReleasedGil() {
  while (!begin_taking()) ::pause();
  PyEval_RestoreThread(state_);
  end_taking();
}

Kept::Kept(nb::object object) : object_(object.release().ptr()) {
  const std::lock_guard lock(all_kept().mutex);
  all_kept().objects.insert(this);
}
Kept::~Kept() {
  PyObject* object = nullptr;
  {
    const std::lock_guard lock(all_kept().mutex);
    all_kept().objects.erase(this);
    object = object_;
  }
  drop(object);
}
nb::object object_of(const ObjectRef& kept) {
  return kept ? nb::borrow(kept->object_) : nb::object();
}
void release_kept() {
  std::vector<nb::object> released;  // after the lock: what goes may own others
  const std::lock_guard lock(all_kept().mutex);
  for (Kept* kept : all_kept().objects)
    released.push_back(nb::steal(std::exchange(kept->object_, nullptr)));
}
std::shared_ptr<const void> keep_memory(nb::object object) {
  return {object.release().ptr(), drop};
}

PythonException::PythonException(nb::object raised)
    : Error(last_line_of(raised)), value_(std::make_shared<Kept>(std::move(raised))) {}

namespace {

class PythonMemoryError final : public PythonException, public OutOfMemory {
 public:
  using PythonException::PythonException;
};

}  // namespace

std::exception_ptr as_cpp(nb::object raised) {
  if (PyErr_GivenExceptionMatches(raised.ptr(), PyExc_MemoryError) != 0)
    return std::make_exception_ptr(PythonMemoryError(std::move(raised)));
  return std::make_exception_ptr(PythonException(std::move(raised)));
}

void rethrow(nb::python_error& error) { std::rethrow_exception(as_cpp(nb::borrow(error.value()))); }

nb::object python_cause(const std::exception_ptr& cause) {
  if (!cause) return {};
  try {
    std::rethrow_exception(cause);
  } catch (const PythonException& exception) {
    return exception.value();
  } catch (...) {
    return {};
  }
}

int fork_generation() noexcept { return forks; }
void watch_forks() {
  pthread_atfork([] { all_kept().mutex.lock(); }, [] { all_kept().mutex.unlock(); },
                 [] {
                   all_kept().mutex.unlock();
                   taking = 0;  // those threads are not there
                   ++forks;
                 });
}

}  // namespace penstock::python
