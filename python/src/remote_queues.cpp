// A queue whose producers are other processes of this machine.
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>

#include "header_docs.hpp"
#include "streams.hpp"

namespace penstock::python {

template <>
struct PythonValue<std::shared_ptr<source::Queue>> {
  static std::string type() { return "Queue"; }
  static std::shared_ptr<source::Queue> value(nb::handle given, const char*) {
    PyQueue queue;
    if (!nb::try_cast(given, queue)) throw nb::next_overload();
    return queue.queue;
  }
};

namespace {

using namespace nb::literals;
using std::chrono::nanoseconds;
using Path = std::filesystem::path;

// Of this process; null once it was stopped.
template <class T>
class OfThisProcess {
 public:
  OfThisProcess(std::shared_ptr<T> value, std::string name)
      : value_(std::move(value)), name_(std::move(name)) {}

  /// A caller keeps it while it uses it.
  [[nodiscard]] std::shared_ptr<T> get() const {
    if (value_.forked())
      throw Error("this " + name_ +
                  " belongs to the process from which this one was forked: make one here, or start "
                  "processes with spawn");
    if (*value_ == nullptr) throw std::logic_error("this " + name_ + " has been stopped");
    return *value_;
  }
  /// Needs the GIL, as get() does.
  void reset() {
    if (value_.forked()) return;
    std::shared_ptr<T> last = std::exchange(*value_, nullptr);
    without_gil([&] { last.reset(); });
  }

 private:
  ForkSafe<std::shared_ptr<T>> value_;
  std::string name_;
};

using Server = OfThisProcess<source::QueueServer>;
using Client = OfThisProcess<source::QueueClient>;

// In a thread of its own, so that Ctrl-C ends it.
std::shared_ptr<source::QueueClient> connect(const Path& path, const std::vector<FieldSpec>& fields,
                                             QueueClientOptions options) {
  return stoppably(
      [&](const std::stop_token& stop) {
        options.stop = stop;
        return std::make_shared<source::QueueClient>(path, fields, options);
      },
      [] {});
}

struct PyQueueClient {
  Client client;
  std::vector<FieldSpec> fields;
  bool waits_for_each;
};

PyQueueClient connected(const Path& path, const std::vector<FieldSpec>& fields,
                        const QueueClientOptions& options) {
  return {.client = Client(connect(path, fields, options), "queue client"),
          .fields = fields,
          .waits_for_each = options.unacknowledged == 0};
}

bool push_remotely(const PyQueueClient& self, nb::handle record, std::optional<double> timeout) {
  if (timeout && self.waits_for_each)
    throw std::invalid_argument(
        "push: a client with unacknowledged=0 waits until the queue has its record, and cannot "
        "take "
        "it back after a timeout: leave the timeout out, or set unacknowledged to 1 or more");
  const PythonRecord arrays(record, self.fields);
  const std::vector<ConstTensorView> views = arrays.views();
  const auto client = self.client.get();
  if (!wait_in_slices(timeout,
                      [&](nanoseconds slice) { return client->try_push_for(views, slice); }))
    return false;
  if (self.waits_for_each)
    wait_in_slices([&](nanoseconds slice) { return client->try_flush_for(slice); });
  return true;
}

void close(const PyQueueClient& self, const std::optional<std::string>& cause) {
  const auto client = self.client.get();
  wait_in_slices([&](nanoseconds slice) {
    return client->try_close_for(slice,
                                 cause ? std::optional<std::string_view>(*cause) : std::nullopt);
  });
}

Server serve(std::shared_ptr<source::Queue> queue, const Path& path,
             const QueueServerOptions& options) {
  return {std::make_shared<source::QueueServer>(std::move(queue), path, options), "queue server"};
}

void bind_server(nb::module_& module) {
  nb::class_<QueueServerStats> stats(module, "QueueServerStats",
                                     StructDoc<QueueServerStats>::kText);
  def_members(stats, "connected", &QueueServerStats::connected, "finished",
              &QueueServerStats::finished, "lost", &QueueServerStats::lost, "refused",
              &QueueServerStats::refused, "last_error", &QueueServerStats::last_error);
  nb::class_<Server> servers(
      module, "QueueServer",
      R"(Pushes into a queue what QueueClients in other processes of this machine send:

    queue = Queue(fields)
    with QueueServer(queue, "/tmp/moves.sock", expected_clients=8):
        for step in Dataset(queue).shuffle(buffer=1000).batch(128).loader(): ...

A record counts once the queue has it; a client that dies in the middle of one loses that one
only. While the queue is full, clients wait.

Threads  any of it from any thread.
Owns     the socket file, which only its owner may use; a dead server's is replaced.)");
  def_constructor(servers, Call{"QueueServer", &serve, docs::queue_server_init,
                                Parameter<std::shared_ptr<source::Queue>>{"queue"},
                                Parameter<Path>{"path"}, Parameter<QueueServerOptions>{"options"}});
  servers.def_prop_ro("path", [](const Server& self) { return self.get()->path(); })
      .def("stats", [](const Server& self) { return self.get()->stats(); })
      .def(
          "stop", [](Server& self) { self.reset(); },
          "Disconnects the clients, and removes the socket file. The queue stays open for others.")
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__", [](Server& self, nb::handle, nb::handle, nb::handle) { self.reset(); },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

void bind_client(nb::module_& module) {
  nb::class_<PyQueueClient> clients(
      module, "QueueClient",
      R"(The other end of a QueueServer, in a process that makes records:

    with QueueClient("/tmp/moves.sock", fields) as actor:
        for _ in range(1000):
            actor.push(play())

At the end of the `with` block it is closed, which says that this client is done. One that ends
without close(), by an exception for instance, counts as lost: the server then closes the queue or
continues.

Threads  any of it from any thread; one push at a time, the others wait.)");
  def_constructor(
      clients,
      Call{"QueueClient", WithGil{&connected}, docs::queue_client_init, Parameter<Path>{"path"},
           Parameter<std::vector<FieldSpec>>{"fields"}, Parameter<QueueClientOptions>{"options"}});
  clients
      .def(
          "push", &push_remotely, "record"_a, "timeout"_a.none() = nb::none(),
          nb::sig("def push(self, record: collections.abc.Mapping[str, typing.Any] | "
                  "collections.abc.Sequence[typing.Any], timeout: float | None = None) -> bool"),
          R"(Sends a record, as Queue.push takes it; waits while the queue is full, at most `timeout`
seconds. False, and nothing pushed, if there is no room. Nothing acknowledged is ever lost.

Errors  ValueError    a field has another type or shape than it should, or the record is larger than
                      the server takes; nothing was sent. A timeout where unacknowledged is 0
        RuntimeError  after close()
        QueueClosed   the queue takes no more; the message says why
        Error         the server is gone)")
      .def(
          "flush",
          [](const PyQueueClient& self) {
            const auto client = self.client.get();
            wait_in_slices([&](nanoseconds slice) { return client->try_flush_for(slice); });
          },
          R"(Returns when the queue has everything that was pushed.

Errors  as push)")
      .def(
          "close", &close, "cause"_a.none() = nb::none(),
          R"(flush(), and says that this client is done; with a `cause`, closes the queue: that is what its
consumer gets, with this client's name. Does nothing the second time.

Errors  as push)")
      .def_prop_ro("pushed", [](const PyQueueClient& self) { return self.client.get()->pushed(); })
      .def_prop_ro("acknowledged",
                   [](const PyQueueClient& self) { return self.client.get()->acknowledged(); })
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](PyQueueClient& self, nb::handle type, nb::handle, nb::handle) {
            if (!type.is_none()) return self.client.reset();
            try {
              close(self, std::nullopt);
            } catch (...) {
              self.client.reset();
              throw;
            }
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());
}

}  // namespace

void bind_remote_queues(nb::module_& module) {
  bind_server(module);
  bind_client(module);
}

}  // namespace penstock::python
