// Rows of a loader's steps that are made elsewhere. penstock.remote and penstock.ray are made of this.
#include "remote_rows.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>

#include "casters.hpp"
#include "header_docs.hpp"
#include "loader_handle.hpp"
#include "readable_bytes.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// What a cause begins with: a pickled exception, or a text.
constexpr char kPickled = 'P';
constexpr char kText = 'T';

nb::object workers_module() { return nb::module_::import_("penstock._workers"); }

std::string write_cause(const std::exception_ptr& cause) {
  if (const GilIfOpen gil; gil) {
    if (const nb::object raised = python_cause(cause); raised.is_valid()) {
      const nb::bytes pickled(workers_module().attr("pickle_exception")(raised));
      return kPickled + std::string(pickled.c_str(), pickled.size());
    }
  }
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return kText + std::string(error.what());
  } catch (...) {
    return kText + std::string("an exception that is not a std::exception");
  }
}

std::exception_ptr read_cause(const std::string& carried) {
  if (carried.starts_with(kText)) return std::make_exception_ptr(Error(carried.substr(1)));
  const nb::gil_scoped_acquire gil;
  try {
    const nb::bytes pickled(carried.data() + 1, carried.size() - 1);
    return as_cpp(workers_module().attr("exception_of")(pickled));
  } catch (nb::python_error& error) {
    return as_cpp(nb::borrow(error.value()));
  }
}

struct PyRowTask {
  std::unique_ptr<ForkSafe<RowTask>> task;
  RowTask& operator*() const { return **task; }
  RowTask* operator->() const { return &**task; }
};

// Threads that call Python functions are joined without the GIL.
class PyRowMaker {
 public:
  PyRowMaker(const Dataset& plan, const std::string& settings, int threads,
             std::optional<int> io_threads)
      : maker_(without_gil([&] {
          return std::make_unique<ForkSafe<RowMaker>>(
              RowMaker(plan, settings,
                       {.threads = threads,
                        .io_threads = io_threads,
                        .causes = {.encode = write_cause, .decode = {}}}));
        })) {}
  PyRowMaker(PyRowMaker&&) noexcept = default;
  PyRowMaker& operator=(PyRowMaker&&) = delete;
  ~PyRowMaker() {
    const ReleasedGil released;
    maker_.reset();
  }

  // The answer becomes an object with a buffer, without a copy.
  [[nodiscard]] PyRowBytes make(nb::handle request) const {
    const ReadableBytes buffer(request, "make(request)");
    return PyRowBytes(without_gil([&] { return (**maker_).make(buffer.bytes()); }));
  }

 private:
  std::unique_ptr<ForkSafe<RowMaker>> maker_;
};

// Calls without the GIL; the loader may go with the reference taken here. `otherwise` where it is gone.
template <class Call, class Result>
Result with_loader(const PyRowTasks& tasks, Call&& call, Result otherwise) {
  if (tasks.is_gone()) return otherwise;
  const ReleasedGil released;
  const auto running = tasks.loader.lock();
  return running ? call(running->loader()) : otherwise;
}

std::optional<PyRowTask> take(const PyRowTasks& tasks, std::uint64_t rows, double timeout_s) {
  std::optional<RowTask> task;
  (void)wait_in_slices(timeout_s, [&](std::chrono::nanoseconds slice) {
    if (tasks.is_gone()) return true;
    const auto running = tasks.loader.lock();
    if (!running) return true;
    task = running->loader().take_task(rows, slice);
    return task.has_value();
  });
  if (!task) return std::nullopt;
  return PyRowTask{std::make_unique<ForkSafe<RowTask>>(*std::move(task))};
}

int fill_buffer(PyObject* self, Py_buffer* view, int flags) {
  const std::span<const std::byte> bytes = nb::inst_ptr<PyRowBytes>(self)->made.bytes();
  return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(bytes.data()),
                           static_cast<Py_ssize_t>(bytes.size()), 1, flags);
}

PyType_Slot buffer_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(fill_buffer)},
    {0, nullptr},
};

}  // namespace

void bind_remote_rows(nb::module_& module) {
  nb::class_<PyRowBytes>(
      module, "RowBytes", nb::type_slots(buffer_slots),
      R"(Made rows, as they travel: memoryview(rows), bytes(rows), for RowTask.finish.)")
      .def("__len__", [](const PyRowBytes& self) { return self.made.size; });

  nb::class_<PyRowTask>(module, "RowTask", docs::RowTask)
      .def_prop_ro("step", [](const PyRowTask& self) { return self->step(); })
      .def_prop_ro("replica", [](const PyRowTask& self) { return self->replica(); })
      .def_prop_ro(
          "first_row", [](const PyRowTask& self) { return self->first_row(); },
          docs::row_task_first_row)
      .def_prop_ro("rows", [](const PyRowTask& self) { return self->rows(); })
      .def_prop_ro(
          "nbytes", [](const PyRowTask& self) { return self->response_bytes(); },
          docs::row_task_response_bytes)
      .def_prop_ro(
          "request",
          [](const PyRowTask& self) {
            const auto request = self->request();
            return nb::bytes(request.data(), request.size());
          },
          "What RowMaker.make takes: 24 bytes a row.")
      .def_prop_ro(
          "is_pending", [](const PyRowTask& self) { return self->is_pending(); },
          docs::row_task_is_pending)
      .def(
          "finish",
          [](const PyRowTask& self, nb::handle made) {
            const ReadableBytes buffer(made, "finish(made)");
            const ReleasedGil released;
            return self->finish(buffer.bytes(), {.encode = {}, .decode = read_cause});
          },
          "made"_a, nb::sig("def finish(self, made: typing.Any) -> bool"), docs::row_task_finish)
      .def(
          "fail",
          [](const PyRowTask& self, nb::object error) {
            if (PyExceptionInstance_Check(error.ptr()) == 0)
              throw nb::type_error("fail(error): expected an exception");
            auto raised = as_cpp(std::move(error));
            const ReleasedGil released;
            self->fail(std::move(raised));
          },
          "error"_a, nb::sig("def fail(self, error: BaseException) -> None"), docs::row_task_fail)
      .def(
          "cancel", [](const PyRowTask& self) { without_gil([&] { self->cancel(); }); },
          docs::row_task_cancel)
      .def("__repr__", [](const PyRowTask& self) {
        return "<penstock.RowTask rows " + std::to_string(self->first_row()) + " to " +
               std::to_string(self->first_row() + self->rows()) + " of step " +
               std::to_string(self->step()) + ">";
      });

  nb::class_<PyRowTasks>(
      module, "RowTasks",
      R"(The rows of a loader that workers elsewhere may make: Loader.row_tasks(). Does not keep the loader.

Threads  any)")
      .def_prop_ro(
          "is_gone", &PyRowTasks::is_gone,
          "Whether the loader was dropped. After stop it may go on, so then it is not gone.")
      .def_prop_ro(
          "settings",
          [](const PyRowTasks& self) {
            return with_loader(
                self, [](Loader& loader) { return loader.row_settings(); }, std::string());
          },
          docs::loader_row_settings)
      .def(
          "take", &take, "rows"_a, "timeout"_a,
          R"(Claims at most `rows` rows that are not made yet; the loader's threads make the others. Waits until
there are some, at most `timeout` seconds; returns None when the time is over, so also after the end of the data.

Errors  ValueError  rows is 0)")
      .def(
          "enable_local_rows",
          [](const PyRowTasks& self, bool enabled) {
            (void)with_loader(
                self,
                [enabled](Loader& loader) {
                  loader.enable_local_rows(enabled);
                  return 0;
                },
                0);
          },
          "enabled"_a, docs::loader_enable_local_rows);

  nb::class_<PyRowMaker>(
      module, "RowMaker",
      R"(Makes rows for loaders of the same plan in other processes, with threads of its own.

`settings`: those of Loader.row_tasks(). `threads`: 0 for one per core; `io_threads` as for Dataset.loader.

Threads  make from any number; the earliest step comes first
Errors   Error  the plan, its data or the version of penstock differ from the loader's: says what)")
      .def(nb::init<const Dataset&, const std::string&, int, std::optional<int>>(), "plan"_a,
           "settings"_a, nb::kw_only(), "threads"_a = 0, "io_threads"_a.none() = nb::none())
      .def(ExplainedConstructor())
      .def("make", &PyRowMaker::make, "request"_a,
           nb::sig("def make(self, request: typing.Any) -> RowBytes"), docs::row_maker_make);
}

}  // namespace penstock::python
