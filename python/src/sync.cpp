// Gradients that become one over all processes, and the groups of processes.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "caller_tensor.hpp"
#include "casters.hpp"
#include "communicators.hpp"
#include "python_exchange.hpp"
#include "python_object.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// ---- which threads and processes may use what ----

/// One call at a time; none in the child of a fork, which has not the threads and shares the
/// sockets.
template <class T>
class Exclusive {
 public:
  Exclusive(std::shared_ptr<T> value, const char* name) : name_(name), value_(std::move(value)) {}
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;
  // A group's end may wait for threads, and closes sockets.
  ~Exclusive() {
    if (value_.forked()) return;
    const ReleasedGil released;
    (*value_).reset();
  }

  class Use {
   public:
    explicit Use(Exclusive& of) : of_(of), value_(of.get()) {
      if (of.busy_.exchange(true))
        throw std::logic_error("another thread is in a call of this " + std::string(of.name_) +
                               ", which takes one at a time");
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { of_.busy_ = false; }
    T& operator*() const { return *value_; }
    T* operator->() const { return value_.get(); }

   private:
    Exclusive& of_;
    std::shared_ptr<T> value_;
  };
  [[nodiscard]] Use use() { return Use(*this); }
  /// For what does not change.
  [[nodiscard]] const std::shared_ptr<T>& get() const {
    if (value_.forked())
      throw Error("this " + std::string(name_) +
                  " belongs to the process that this one was forked from: start processes with "
                  "torchrun, mpirun or multiprocessing's 'spawn', and connect() in each");
    return *value_;
  }

 private:
  const char* name_;
  ForkSafe<std::shared_ptr<T>> value_;
  std::atomic<bool> busy_ = false;
};

struct PyCommunicator {
  PyCommunicator(std::unique_ptr<Communicator> carrier, std::string name)
      : held(std::make_shared<WatchedCommunicator>(std::move(carrier)), "Communicator"),
        transport(std::move(name)) {}
  Exclusive<WatchedCommunicator> held;
  std::string transport;
};

// ---- groups ----

std::vector<std::string> transports() {
  std::vector<std::string> built;
#ifdef PENSTOCK_HAVE_GLOO
  built.emplace_back("gloo");
#endif
#ifdef PENSTOCK_HAVE_MPI
  built.emplace_back("mpi");
#endif
#ifdef PENSTOCK_HAVE_NCCL
  built.emplace_back("nccl");
#endif
  return built;
}

void require_transport(const std::string& name) {
  const std::vector<std::string> built = transports();
  if (std::ranges::find(built, name) != built.end()) return;
  std::string all;
  for (const std::string& one : built) all += (all.empty() ? "" : ", ") + one;
  std::string advice;
  if (name == "gloo") {
    advice = "install Gloo (Debian: libgloo-dev) and build penstock from source, pip install .";
  } else if (name == "mpi") {
    advice =
        "install an MPI (Debian: libopenmpi-dev) and build penstock from source, pip install . -C "
        "cmake.define.PENSTOCK_PYTHON_MPI=ON";
  } else if (name == "nccl") {
    advice = "build penstock from source where nvcc and nccl.h are installed, pip install .";
  } else {
    throw std::invalid_argument("transport must be one of 'auto', 'gloo', 'mpi', 'nccl', found '" +
                                name + "'");
  }
  throw Error("this penstock was built without the transport '" + name +
              "' (it has: " + (all.empty() ? "none" : all) + "): " + advice);
}

struct Meeting {
  std::string transport;
  std::optional<Device> device;
  std::optional<std::filesystem::path> file;
  std::optional<std::string> address;
  Launch launch;
  double timeout_s = 0;
  bool any_order = false;
  RendezvousOptions options;
  std::string nccl_library;
};

std::pair<std::string, std::uint16_t> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::uint16_t port = 0;
  const char* const end = address.data() + address.size();
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end || port == 0)
    throw std::invalid_argument("expected an address such as 'node0:29500', found '" + address +
                                "'");
  return {address.substr(0, colon), port};
}

// May wait for as long as it takes the others to come.
std::unique_ptr<Communicator> meet(const Meeting& where) {
#ifdef PENSTOCK_HAVE_MPI
  if (where.transport == "mpi")
    return mpi_communicator({.timeout = Seconds(where.timeout_s), .any_order = where.any_order});
#endif
  std::shared_ptr<Rendezvous> rendezvous;
  if (where.file) {
    rendezvous =
        Rendezvous::via_file(*where.file, where.launch.rank, where.launch.world, where.options);
  } else if (where.address) {
    const auto [host, port] = host_and_port(*where.address);
    rendezvous = Rendezvous::at(host, port, where.launch.rank, where.launch.world, where.options);
  } else {
    rendezvous = Rendezvous::from_environment(where.options);
  }
#ifdef PENSTOCK_HAVE_GLOO
  if (where.transport == "gloo")
    return gloo_communicator(std::move(rendezvous),
                             {.timeout = Seconds(where.timeout_s), .any_order = where.any_order});
#endif
  return nccl_communicator(std::move(rendezvous), *where.device,
                           {.timeout = Seconds(where.timeout_s), .library = where.nccl_library});
}

// The one of this interpreter's packages, which is PyTorch's: a later import of torch takes the one that is loaded. Empty
// where there is none.
std::string nccl_of_packages() {
  try {
    const nb::object found =
        nb::module_::import_("importlib.util").attr("find_spec")("nvidia.nccl");
    if (found.is_none()) return {};
    for (const nb::handle folder : found.attr("submodule_search_locations")) {
      const auto file =
          std::filesystem::path(nb::cast<std::string>(folder)) / "lib" / "libnccl.so.2";
      if (std::filesystem::exists(file)) return file.string();
    }
  } catch (const nb::python_error&) {  // no package of NVIDIA's
  }
  return {};
}

// What the thread that meets the others has to say.
class Warnings {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(what);
  }
  [[nodiscard]] std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(texts_, {});
  }
  [[nodiscard]] bool any() const {
    const std::lock_guard lock(mutex_);
    return !texts_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

// A meeting cannot be cancelled. When Ctrl-C ends the wait for it, its thread continues until the
// others have joined or the timeout has passed, uses only what it owns, and drops the result.
std::unique_ptr<Communicator> meet_interruptibly(Meeting where) {
  const auto warnings = std::make_shared<Warnings>();
  where.options.on_warning = [warnings](const std::string& what) { warnings->add(what); };
  std::packaged_task<std::unique_ptr<Communicator>()> task(
      [where = std::move(where)] { return meet(where); });
  auto met = task.get_future();
  std::thread thread(std::move(task));
  try {
    for (bool is_over = false; !is_over;) {
      wait_in_slices([&](std::chrono::nanoseconds slice) {
        is_over = met.wait_for(slice) == std::future_status::ready;
        return is_over || warnings->any();
      });
      for (const std::string& what : warnings->take())
        if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%U", text_of(what).ptr()) != 0)
          throw nb::python_error();
    }
  } catch (...) {
    thread.detach();
    throw;
  }
  thread.join();
  return met.get();
}

PyCommunicator* connect(std::string transport, nb::handle device,
                        std::optional<std::filesystem::path> file,
                        std::optional<std::string> address, std::optional<std::uint32_t> rank,
                        std::optional<std::uint32_t> world, double timeout_s, double join_timeout_s,
                        std::string run_id, std::string secret, bool any_order) {
  if (file && address)
    throw std::invalid_argument("file and address exclude each other: give one of them");
  if (rank.has_value() != world.has_value())
    throw std::invalid_argument("expected rank and world together: give both, or neither");
  for (const double seconds : {timeout_s, join_timeout_s})
    if (!(seconds >= 0))
      throw std::invalid_argument(
          fmt::format("connect: expected a timeout of 0 s or more, found {}", seconds));
  if (rank && !file && !address)
    throw std::invalid_argument(
        "rank and world need an address: give file= or address= as well, or set "
        "torchrun's variables instead");
  std::optional<Device> on;
  if (!device.is_none())
    on = nb::isinstance<nb::str>(device) ? Device::parse(nb::cast<std::string>(device))
                                         : nb::cast<Device>(device);
  Launch launch = Launch::from_environment();
  if (rank) {
    if (*rank >= *world)
      throw std::invalid_argument("expected a rank below the world size, found " +
                                  std::to_string(*rank) + " of " + std::to_string(*world));
    launch.rank = *rank;
    launch.world = *world;
  }
  const bool on_cuda = transport == "nccl" || (on && on->kind == Device::Kind::cuda);
  if (transport == "auto" && launch.world == 1)
    return new PyCommunicator(lone_communicator(on.value_or(Device{Device::Kind::host, 0})),
                              "none");
  if (transport == "auto") transport = on_cuda ? "nccl" : "gloo";
  require_transport(transport);
  if (!on)
    on = Device{on_cuda ? Device::Kind::cuda : Device::Kind::host,
                on_cuda ? static_cast<int>(launch.local_rank) : 0};
  if ((on->kind == Device::Kind::cuda) != (transport == "nccl"))
    throw std::invalid_argument("'" + transport + "' does not carry memory of " + on->to_string() +
                                ": " + (on_cuda ? "'nccl' does" : "'gloo' does"));
  if (any_order && transport == "nccl")
    throw std::invalid_argument("any_order is for 'gloo' and 'mpi': NCCL always chooses its order");
  auto met = meet_interruptibly({transport,
                                 on,
                                 std::move(file),
                                 std::move(address),
                                 launch,
                                 timeout_s,
                                 any_order,
                                 {.timeout = Seconds(join_timeout_s),
                                  .run_id = std::move(run_id),
                                  .secret = std::move(secret),
                                  .unreachable_after = Seconds(timeout_s)},
                                 transport == "nccl" ? nccl_of_packages() : std::string()});
  return new PyCommunicator(std::move(met), transport);
}

void require_same_device(const CallerTensor& tensor, const std::string& what,
                         const Device& device) {
  if (tensor.device() == device) return;
  if (tensor.device().kind == Device::Kind::host && device.kind == Device::Kind::host) return;
  throw std::invalid_argument(what + " lies on " + tensor.device().to_string() +
                              ", and the communicator is for " + device.to_string() +
                              ": connect(device='" + tensor.device().to_string() + "')");
}

std::string text_of(const PyCommunicator& self) {
  const WatchedCommunicator& held = *self.held.get();
  return "<penstock.sync.Communicator " + std::to_string(held.rank()) + " of " +
         std::to_string(held.size()) + ", " + self.transport + " on " + held.device().to_string() +
         ">";
}

void bind_communicators(nb::module_& module) {
  nb::class_<PyCommunicator>(module, "Communicator",
                             R"(One process's end of a group of processes, made by connect().

Every process makes the same calls in the same order; one that does not is an error that names
it, as is one that is dead or late. After an error or Ctrl-C a communicator cannot be used again:
later calls raise the same error. f16 and bf16 are summed in f32; on the host values are added in
the order of the ranks, so that results are the same in every run.

Threads  one at a time. Waiting releases the GIL, and Ctrl-C ends it, on GPUs when the timeout does. Not after a fork.
Errors   SyncError   a peer died, timed out, ended, or made another call; names it
         ValueError  not memory that can be written to, or on another device; nothing was sent)")
      .def_prop_ro("rank", [](const PyCommunicator& self) { return self.held.get()->rank(); })
      .def_prop_ro(
          "size", [](const PyCommunicator& self) { return self.held.get()->size(); },
          "How many processes there are.")
      .def_prop_ro(
          "device", [](const PyCommunicator& self) { return self.held.get()->device(); },
          "Where the memory of its calls lies.")
      .def_prop_ro(
          "transport", [](const PyCommunicator& self) { return self.transport; },
          R"("gloo", "mpi", "nccl"; "none" in a world of one.)")
      .def(
          "all_reduce",
          [](PyCommunicator& self, nb::handle data, const Choice<ReduceOp>& op,
             std::optional<std::uintptr_t> stream) {
            const CallerTensor tensor(data, "all_reduce");
            const auto held = self.held.use();
            require_same_device(tensor, "all_reduce: the tensor", held->device());
            const ReduceOp chosen = op.value("op");
            interruptibly(*held, [&, to = tensor.stream(stream)] {
              held->all_reduce(tensor.view(), chosen, to);
              return 0;
            });
          },
          "data"_a, "op"_a = Choice<ReduceOp>{"sum"}, "stream"_a.none() = nb::none(),
          nb::sig(fmt::format("def all_reduce(self, data: typing.Any, op: {} = 'sum', "
                              "stream: int | None = None) -> None",
                              literal_of<ReduceOp>().text)
                      .c_str()),
          R"(`data` becomes the reduction of all processes' data, in place, in every process.

Shapes  any, with as many elements in every process: a dense array or tensor.
Stream  on a CUDA device queued on `stream`, by default torch's current one.)")
      .def(
          "broadcast",
          [](PyCommunicator& self, nb::handle data, std::uint32_t root,
             std::optional<std::uintptr_t> stream) {
            const CallerTensor tensor(data, "broadcast");
            const auto held = self.held.use();
            require_same_device(tensor, "broadcast: the tensor", held->device());
            interruptibly(*held, [&, to = tensor.stream(stream)] {
              held->broadcast(tensor.view(), root, to);
              return 0;
            });
          },
          "data"_a, "root"_a = 0, "stream"_a.none() = nb::none(),
          nb::sig("def broadcast(self, data: typing.Any, root: int = 0, stream: int | None = None) "
                  "-> None"),
          "`data` becomes that of the process `root`, in place, in every process.")
      .def(
          "exchange",
          [](PyCommunicator& self, const std::string& text) {
            const auto held = self.held.use();
            if (held->size() == 1) return std::vector{text};
            return interruptibly(*held, [&] { return exchange_over(*held)(text); });
          },
          "text"_a,
          R"(The texts of all processes, in the order of their ranks. Over "gloo" and "mpi".)")
      .def(
          "check",
          [](PyCommunicator& self) {
            const auto held = self.held.use();
            without_gil([&] {
              held->check();
              return 0;
            });
          },
          R"(Raises what has broken the communicator, if anything has.

On GPUs calls return before they are done, and what a dead process leaves behind is garbage: call this when the stream is done,
before results are kept (a checkpoint, a score).

Errors  SyncError, NcclError, CudaError)")
      .def(
          "barrier",
          [](PyCommunicator& self) {
            const auto held = self.held.use();
            interruptibly(*held, [&] {
              held->barrier();
              return 0;
            });
          },
          "Returns when every process has called it.")
      .def("__repr__", &text_of);

  module.def(
      "require_agreement",
      [](nb::handle exchange, const std::map<std::string, std::string>& given) {
        std::vector<Fact> facts;
        for (const auto& [name, value] : given) facts.push_back({name, value});
        without_gil([&, exchange = exchange_of(exchange)] {
          require_agreement(exchange, facts);
          return 0;
        });
      },
      "exchange"_a, "facts"_a,
      nb::sig("def require_agreement(exchange: collections.abc.Callable[[str], list[str]], facts: "
              "collections.abc.Mapping[str, str]) -> None"),
      R"(Compares facts of all processes, which would otherwise train on other data, or wait for each
other. `exchange` gives every process the texts of all, in the order of their ranks:

    group = connect()
    require_agreement(group.exchange, loader.facts() | {"learning rate": str(rate)})

Errors  Error  in every process: each fact that differs, with its values and the processes that have them)");
  module.def("transports", &transports,
             R"(The transports in this build: of "gloo", "mpi" and "nccl".)");
  module.def(
      "connect", &connect, "transport"_a = "auto", nb::kw_only(), "device"_a.none() = nb::none(),
      "file"_a.none() = nb::none(), "address"_a.none() = nb::none(), "rank"_a.none() = nb::none(),
      "world"_a.none() = nb::none(), "timeout"_a = 300.0, "join_timeout"_a = 60.0, "run_id"_a = "",
      "secret"_a = "", "any_order"_a = false,
      nb::sig("def connect(transport: typing.Literal['auto', 'gloo', 'mpi', 'nccl'] = 'auto', *, "
              "device: str | Device | None = None, file: str | os.PathLike[str] | None = None, "
              "address: str | None = None, rank: int | None = None, world: int | None = None, "
              "timeout: float = 300.0, join_timeout: float = 60.0, run_id: str = '', "
              "secret: str = '', any_order: bool = False) -> "
              "Communicator"),
      R"(Finds the other processes of this run, and returns when all have joined.

By default they are the launcher's (torchrun, mpirun or srun), and meet at MASTER_ADDR and
MASTER_PORT; or through a shared file, or at "host:port" of the process of rank 0. A process
that no launcher started is a world of one: it connects to no other process and copies nothing.

`transport`   "auto": "nccl" for a CUDA device, else "gloo". Over "mpi" its launcher says which
              processes take part.
`device`      where the gradients lie; by default the host, for "nccl" the GPU of the local rank.
`rank, world` of this process; by default the launcher's.
`timeout`     how many seconds a call waits for the others before an error names those that are late;
              `join_timeout` how many to wait for them to join. A machine that answers nothing for
              `timeout` is taken for dead.
`run_id`      processes of another run are rejected; by default the launcher's, and PENSTOCK_RUN_ID.
`secret`      what only this run's processes know, 16 characters at least: keeps strangers out of the
              meeting at an address, not out of the connections of Gloo, MPI or NCCL. By default
              PENSTOCK_SECRET, or what the file PENSTOCK_SECRET_FILE holds. It is not sent; what is sent
              is not encrypted. Without one, process 0 may give a RuntimeWarning. With `file`, neither
              this nor `run_id` is used.
`any_order`   fewer messages for sums, means and products of up to 1 MiB, in another order of addition: the
              last bits of floats then depend on the number of processes; they are the same in all
              processes and in every run. Not for 16-bit floats. Set the same value in every process.

Errors  Error       processes did not join (names them); another run at that address; a transport
                    that this build lacks; says what to do
        NcclError   NCCL cannot be found
        ValueError  arguments that contradict each other)");
}

// ---- gradients ----

struct Named {
  std::vector<std::string> names;
  std::vector<CallerTensor> tensors;

  [[nodiscard]] std::vector<Gradient> gradients() const {
    std::vector<Gradient> all;
    for (std::size_t i = 0; i < tensors.size(); ++i) all.push_back({names[i], tensors[i].view()});
    return all;
  }
};

// Of a mapping of names to tensors, or of a sequence of tensors, which are named by their numbers.
Named named(nb::handle given, const char* what) {
  Named all;
  const auto add = [&](const std::string& name, nb::handle value) {
    all.tensors.emplace_back(value, std::string(what) + " '" + name + "'");
    all.names.push_back(name);
  };
  if (nb::hasattr(given, "items")) {
    for (const nb::handle item : given.attr("items")())
      add(nb::cast<std::string>(nb::str(nb::object(item[0]))), nb::object(item[1]));
  } else if (nb::hasattr(given, "dtype")) {
    throw std::invalid_argument(
        std::string("expected a list of ") + what +
        "s or a mapping of names to them, found one alone: put it in a list");
  } else {
    for (const nb::handle value : given) add(std::to_string(all.names.size()), value);
  }
  return all;
}

struct PyGradientSync {
  PyGradientSync(std::shared_ptr<WatchedCommunicator> group, Named list,
                 const std::shared_ptr<GradientSync>& sync)
      : communicator(std::move(group)), named(std::move(list)), held(sync, "GradientSync") {}
  std::shared_ptr<WatchedCommunicator> communicator;
  Named named;
  Exclusive<GradientSync> held;  // goes before the memory that it works on
};

std::shared_ptr<WatchedCommunicator> alone_on(const Device& device) {
  if (const Launch launch = Launch::from_environment(); launch.world > 1)
    throw std::invalid_argument(launch.launcher + " started " + std::to_string(launch.world) +
                                " processes: pass communicator=penstock.sync.connect()");
  return std::make_shared<WatchedCommunicator>(lone_communicator(device));
}

void make_gradient_sync(PyGradientSync* self, nb::handle gradients, PyCommunicator* communicator,
                        const Choice<Combine>& combine, std::uint32_t micro_steps,
                        const std::optional<std::string>& wire, std::size_t bucket_bytes,
                        std::optional<std::size_t> bucket_count) {
  Named list = named(gradients, "gradient");
  if (list.tensors.empty())
    throw std::invalid_argument("at least 1 gradient to exchange, found none");
  const GradientSyncOptions options{
      .combine = combine.value("combine"),
      .micro_steps = micro_steps,
      .wire = wire ? std::optional(parse_dtype(*wire)) : std::nullopt,
      .buckets = {.bytes = bucket_bytes,
                  .count = bucket_count.value_or(std::numeric_limits<std::size_t>::max())}};
  std::optional<Exclusive<WatchedCommunicator>::Use> use;
  if (communicator != nullptr) use.emplace(communicator->held);
  const auto group =
      communicator != nullptr ? communicator->held.get() : alone_on(list.tensors.front().device());
  for (std::size_t i = 0; i < list.tensors.size(); ++i)
    require_same_device(list.tensors[i], "gradient '" + list.names[i] + "'", group->device());
  auto sync = interruptibly(
      *group, [&] { return std::make_shared<GradientSync>(*group, list.gradients(), options); });
  new (self) PyGradientSync(group, std::move(list), sync);
}

bool wait(PyGradientSync& self, std::optional<std::uintptr_t> stream) {
  const auto sync = self.held.use();
  const StreamHandle to = self.named.tensors.front().stream(stream);
  return interruptibly(*self.communicator, [&] { return sync->wait(to); });
}

void bind_gradient_sync(nb::module_& module) {
  nb::class_<PyGradientSync>(
      module, "GradientSync",
      R"(Takes gradients in as the backward pass produces them, packs them into buckets, reduces bucket after
bucket in the reverse order of the list, and puts the results back in place.

    sync = GradientSync([weight_grad, bias_grad], connect())
    for batch in loader:
        ...                       # writes both gradients
        sync.ready(1)             # the last layer's is there first
        sync.ready(0)
        sync.wait()               # now both hold the mean over all processes

Every process makes one with the same list; a difference is an error that names both processes and
the gradient. A process without rows still takes part: where `combine` counts rows its
gradients may hold anything, elsewhere it must write zeros.

Gradients that are contiguous in memory, as in one flat buffer, are reduced in place, without
packing. A single process copies nothing.

Threads  one at a time, and one of its own which packs and reduces (on the host). Waiting releases
         the GIL; Ctrl-C ends it, and with it the group.
Owns     keeps the gradients' memory. It must stay where it is: with torch, zero gradients by
         zero_grad(set_to_none=False).
Errors   SyncError  a peer died, timed out, ended, or has other gradients; names it; so do later calls)")
      .def(
          "__init__", &make_gradient_sync, "gradients"_a, "communicator"_a.none() = nb::none(),
          nb::kw_only(), "combine"_a = Choice<Combine>{"mean"}, "micro_steps"_a = 1,
          "wire"_a.none() = nb::none(), "bucket_bytes"_a = std::size_t{25} << 20,
          "bucket_count"_a.none() = nb::none(),
          nb::sig(
              fmt::format(
                  "def __init__(self, gradients: collections.abc.Sequence[typing.Any] | "
                  "collections.abc.Mapping[str, typing.Any], communicator: Communicator | None = "
                  "None, *, combine: {} = 'mean', micro_steps: int = 1, "
                  "wire: typing.Literal['f16', 'bf16'] | None = None, "
                  "bucket_bytes: int = 26214400, bucket_count: int | None = None) -> None",
                  literal_of<Combine>().text)
                  .c_str()),
          R"(A collective call. `gradients` are dense arrays or tensors (numpy, torch, or any with __dlpack__),
on the communicator's device; a mapping gives them names for messages.

`communicator`  by default none is needed: a world of one.
`combine`       over R processes and K micro-steps. "sum"; "mean" divides it by R · K; "row_sums":
                each gradient is a sum over rows, and the sum is divided by the rows of all;
                "row_means": each is a mean over rows, and weighs as many as it has.
`micro_steps`   whose gradients are added up before they are exchanged.
`wire`          f16 or bf16: wider floating gradients are sent as this type.
`bucket_bytes`, `bucket_count`  limits of a bucket, which affect speed alone.

Errors  ValueError  no gradients, a limit of 0, memory that cannot be written to or lies elsewhere;
                    no communicator in a launcher's process
        SyncError   another process has another list or other options)")
      .def(ExplainedConstructor())
      .def(
          "begin", [](PyGradientSync& self, std::uint64_t rows) { self.held.use()->begin(rows); },
          "rows"_a,
          R"(The number of rows of this micro-step, before its first ready(); required where `combine`
counts rows.

Errors  RuntimeError  `combine` counts none, or a gradient is ready already)")
      .def(
          "ready",
          [](PyGradientSync& self, std::size_t index, std::optional<std::uintptr_t> stream) {
            const auto sync = self.held.use();
            const StreamHandle after = self.named.tensors.front().stream(stream);
            without_gil([&] {
              sync->ready(index, after);
              return 0;
            });
          },
          "index"_a, "stream"_a.none() = nb::none(),
          R"(Gradient `index` of the list is complete, and may not be touched until wait() has returned.

Stream  on a CUDA device: complete after the work queued on `stream` so far, by default torch's.
Errors  IndexError    no such gradient
        RuntimeError  it was ready before in this micro-step, or begin() is missing)")
      .def(
          "wait", &wait, "stream"_a.none() = nb::none(),
          R"(Ends the micro-step. True: it was the last of its round, and the gradients hold the result.

Stream  on a CUDA device for what is queued on `stream` from now on; the host does not wait.
Errors  RuntimeError  gradients were not ready; names them)")
      .def(
          "check",
          [](PyGradientSync& self) {
            const auto sync = self.held.use();
            without_gil([&] {
              sync->check();
              return 0;
            });
          },
          R"(Raises what has broken the exchange, if anything has: call it when the stream is done, before gradients are kept.

Errors  SyncError, NcclError, CudaError)")
      .def(
          "__len__", [](const PyGradientSync& self) { return self.named.names.size(); },
          "Of the list.")
      .def_prop_ro("names", [](const PyGradientSync& self) { return self.named.names; })
      .def_prop_ro(
          "buckets",
          [](const PyGradientSync& self) {
            std::vector<std::vector<std::size_t>> all;
            for (const GradientBucket& bucket : self.held.get()->buckets())
              all.push_back(bucket.gradients);
            return all;
          },
          "The indices of the gradients in each bucket, in the order in which they are reduced.")
      .def_prop_ro(
          "packed_bytes",
          [](const PyGradientSync& self) { return self.held.get()->packed_bytes(); },
          "Copied into and out of buckets in each round, so 0 where all lie in place.");

  module.def(
      "broadcast_state",
      [](nb::handle state, PyCommunicator* communicator, std::optional<std::uintptr_t> stream) {
        const Named list = named(state, "tensor");
        if (communicator == nullptr) {
          if (!list.tensors.empty()) (void)alone_on(list.tensors.front().device());
          return;
        }
        const auto group = communicator->held.use();
        for (std::size_t i = 0; i < list.tensors.size(); ++i)
          require_same_device(list.tensors[i], "tensor '" + list.names[i] + "'", group->device());
        const StreamHandle on =
            list.tensors.empty() ? nullptr : list.tensors.front().stream(stream);
        interruptibly(*group, [&] {
          broadcast_state(*group, list.gradients(), on);
          return 0;
        });
      },
      "state"_a, "communicator"_a.none() = nb::none(), nb::kw_only(),
      "stream"_a.none() = nb::none(),
      nb::sig("def broadcast_state(state: collections.abc.Sequence[typing.Any] | "
              "collections.abc.Mapping[str, typing.Any], communicator: Communicator | None = None, "
              "*, stream: int | None = None) -> None"),
      R"(`state` becomes that of process 0 everywhere, in place: weights before the first step, and what is
not trained, such as a batch normalisation's averages. For torch: broadcast_state(model.state_dict(), ...).

Errors  SyncError   another process has another list; names both
        ValueError  as GradientSync)");
}

}  // namespace

void bind_sync(nb::module_& module) {
  bind_communicators(module);
  bind_gradient_sync(module);
}

}  // namespace penstock::python
