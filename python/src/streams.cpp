// Data that arrives: queues that threads and processes feed, and Python iterators.
#include "streams.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"
#include "python_object.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using std::chrono::nanoseconds;

bool push(const PyQueue& self, nb::handle record, std::optional<double> timeout) {
  const PythonRecord arrays(record, self.queue->fields());
  const std::vector<ConstTensorView> views = arrays.views();
  return wait_in_slices(timeout,
                        [&](nanoseconds slice) { return self.queue->try_push_for(views, slice); });
}

void close_queue(const PyQueue& self, nb::object cause) {
  std::exception_ptr exception;
  if (!cause.is_none()) {
    if (PyExceptionInstance_Check(cause.ptr()) == 0)
      throw nb::type_error("close: the cause must be an exception");
    exception = as_cpp(nb::borrow(cause));
  }
  without_gil([&] { self.queue->close(exception); });
}

void bind_queue(nb::module_& module) {
  nb::class_<QueueStats>(module, "QueueStats", "A queue in numbers.")
      .def_ro("pushed", &QueueStats::pushed)
      .def_ro("read", &QueueStats::read, "Or discarded.")
      .def_ro("waiting", &QueueStats::waiting, "Pushed and not read.")
      .def_ro("waiting_bytes", &QueueStats::waiting_bytes)
      .def_ro("blocked_producers", &QueueStats::blocked_producers, "Now.")
      .def_ro("blocked_s", &QueueStats::blocked_s, "By all producers together, so far.");

  nb::class_<PyQueue, PyStream>(
      module, "Queue",
      R"(A bounded queue that any number of threads push records into while
one loader reads: Dataset(queue).shuffle(buffer=500).batch(32).

What was pushed before close() is delivered; nothing is lost or doubled.

Threads  any of it from any thread.)")
      .def(
          "__init__",
          [](PyQueue* self, const Fields& fields, std::uint64_t capacity, std::size_t max_bytes,
             std::string name) {
            auto queue = source::queue(
                fields.value(),
                {.capacity = capacity, .max_bytes = max_bytes, .name = std::move(name)});
            new (self) PyQueue{{queue}, queue};
          },
          "fields"_a, nb::kw_only(), "capacity"_a = 1024, "max_bytes"_a = std::size_t{256} << 20,
          "name"_a = "queue",
          R"(Fields such as {"observation": ("f32", (None, 4)), "reward": ("f32", ())}; None is an
extent that differs from record to record. `capacity` in records: a loader needs its shuffle
buffer plus some batches.

Errors  ValueError  no fields, a name twice, a capacity or max_bytes of 0)")
      .def(ExplainedConstructor())
      .def("push", &push, "record"_a, "timeout"_a.none() = nb::none(),
           nb::sig("def push(self, record: collections.abc.Mapping[str, typing.Any] | "
                   "collections.abc.Sequence[typing.Any], timeout: float | None = None) -> bool"),
           R"(Adds a record, {"observation": ..., "reward": ...} or its fields in order; waits while
the queue is full, at most `timeout` seconds. False, and nothing pushed, if it stays full.

Owns    a push copies the record.
Errors  ValueError   a field has another type or shape than it should
        QueueClosed  the queue takes no more)")
      .def("close", &close_queue, "cause"_a.none() = nb::none(),
           nb::sig("def close(self, cause: BaseException | None = None) -> None"),
           R"(No more records. The consumer gets `cause` after the last one, the producers in
their QueueClosed. The first close counts.)")
      .def("stats",
           [](const PyQueue& self) { return without_gil([&] { return self.queue->stats(); }); });
}

Dataset generate(const Fields& given, nb::handle records, std::string name) {
  std::vector<FieldSpec> fields = given.value();
  nb::object iterable = nb::steal(PyObject_GetIter(records.ptr()));
  if (!iterable.is_valid()) throw nb::python_error();
  const auto iterator = std::make_shared<Kept>(std::move(iterable));
  (void)numpy();
  auto next = [fields, iterator](RecordWriter& writer) {
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object records = object_of(iterator);
      if (!records.is_valid()) return false;
      const nb::object record = nb::steal(PyIter_Next(records.ptr()));
      if (!record.is_valid()) {
        if (PyErr_Occurred() != nullptr) throw nb::python_error();
        return false;
      }
      const PythonRecord arrays(record, fields);
      const std::vector<ConstTensorView> views = arrays.views();
      for (std::size_t i = 0; i < fields.size(); ++i) writer.set(fields[i].name, views[i]);
      return true;
    } catch (nb::python_error& error) {
      rethrow(error);
    }
  };
  return Dataset(source::generator(std::move(fields), std::move(next), std::move(name)));
}

}  // namespace

void bind_streams(nb::module_& module) {
  bind_queue(module);
  module.def("generator", &generate, "fields"_a, "records"_a, nb::kw_only(), "name"_a = "generator",
             nb::sig("def generator(fields: collections.abc.Sequence[FieldSpec] | "
                     "collections.abc.Mapping[str, tuple[str, collections.abc.Sequence[int | "
                     "None]]], records: collections.abc.Iterable[collections.abc.Mapping[str, "
                     "typing.Any] | collections.abc.Sequence[typing.Any]], *, name: str = "
                     "'generator') -> Dataset"),
             R"(Records that a Python iterator makes, one after another, when a batch needs them.

What it raises ends the stream: the consumer gets it after the last record. A stream comes
once: no repeat, no whole shuffle, no resume.

Threads  the iterator is used by one thread at a time, with the GIL.
Errors   ValueError  no fields, a name missing or used twice)");
}

}  // namespace penstock::python
