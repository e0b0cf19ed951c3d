// Data that arrives: queues that threads and processes feed, and Python iterators.
#include "streams.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "header_docs.hpp"
#include "host_array.hpp"

namespace penstock::python {

/// What a generator iterates over.
struct Records {
  nb::object object;
};
template <>
struct PythonValue<Records> {
  static std::string type() {
    return "collections.abc.Iterable[collections.abc.Mapping[str, typing.Any] | "
           "collections.abc.Sequence[typing.Any]]";
  }
  static Records value(nb::handle given, const char*) { return {nb::borrow(given)}; }
};

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

PyQueue make_queue(std::vector<FieldSpec> fields, QueueOptions options) {
  auto queue = source::queue(std::move(fields), std::move(options));
  return {{queue}, queue};
}

void bind_queue(nb::module_& module) {
  nb::class_<QueueStats> stats(module, "QueueStats", StructDoc<QueueStats>::kText);
  def_members(stats, "pushed", &QueueStats::pushed, "read", &QueueStats::read, "waiting",
              &QueueStats::waiting, "waiting_bytes", &QueueStats::waiting_bytes,
              "blocked_producers", &QueueStats::blocked_producers, "blocked_s",
              &QueueStats::blocked_s);

  nb::class_<PyQueue, PyStream> queue(module, "Queue", docs::Queue);
  def_constructor(
      queue,
      Call{"Queue", &make_queue, docs::queue, Parameter<std::vector<FieldSpec>>{"fields"},
           Parameter<QueueOptions>{"options"}}
          .with(R"(    queue = ps.Queue({"observation": ("f32", (None, 4)), "reward": ("f32", ())})
    loader = ps.Dataset(queue).shuffle(buffer=500).batch(32).loader())"));
  queue
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

Dataset generate(std::vector<FieldSpec> fields, const Records& iterated, std::string name) {
  nb::object iterable = nb::steal(PyObject_GetIter(iterated.object.ptr()));
  if (!iterable.is_valid()) throw nb::python_error();
  const auto iterator = std::make_shared<Kept>(std::move(iterable));
  (void)numpy();
  auto next = [fields, iterator](RecordWriter& writer) {
    const CallOfPython call;
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
  def(module,
      Call{"generator", WithGil{&generate},
           R"(Records that a Python iterator makes, one after another, when a batch needs them.

What it raises ends the stream: the consumer gets it after the last record. A stream comes
once: no repeat, no whole shuffle, no resume.

Threads  the iterator is used by one thread at a time, with the GIL.
Errors   ValueError  no fields, a name missing or used twice)",
           Parameter<std::vector<FieldSpec>>{"fields"}, Parameter<Records>{"records"},
           Parameter<std::string>{.name = "name",
                                  .by_default = "generator",
                                  .sentence = "for messages",
                                  .keyword_only = true}});
}

}  // namespace penstock::python
