#include "worker_pool.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nanobind/stl/vector.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "python_items.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

constexpr std::size_t kBlocks = 2;
constexpr std::size_t kAlignment = 64;

struct Request {
  std::uint64_t number;
  std::uint64_t seed;
  std::uint64_t block;
};

enum class Kind : std::uint32_t { fields, fault, exception, out_of_memory };

// Then follow `bytes`: of fields, a FieldHeader for each; of an exception, its pickle; else a text.
struct Answer {
  Kind kind;
  std::uint32_t bytes;
};

struct FieldHeader {
  std::uint64_t offset;
  std::uint64_t rank;
  std::array<std::int64_t, Shape::kMaxRank> extents;
};

bool send_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool receive_all(int fd, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <class T>
bool receive(int fd, T& value) {
  return receive_all(fd, std::as_writable_bytes(std::span(&value, 1)));
}

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) > 0;
}

// None where the process has ended.
std::optional<Kind> receive_answer(int fd, std::vector<std::byte>& body) {
  Answer answer{};
  if (!receive(fd, answer)) return std::nullopt;
  body.resize(answer.bytes);
  if (!receive_all(fd, body)) return std::nullopt;
  return answer.kind;
}

struct NoSharedMemory final : Error, OutOfMemory {
  using Error::Error;
};

// A file in memory, of which this process sees as much as it has asked for.
class SharedBlock {
 public:
  explicit SharedBlock(int fd) : fd_(fd) {}
  ~SharedBlock() {
    if (data_ != nullptr) ::munmap(data_, size_);
    ::close(fd_);
  }
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Its first `bytes`; the file grows to hold them.
  std::byte* at_least(std::size_t bytes) {
    if (bytes <= size_) return data_;
    struct stat status {};
    const std::size_t room = std::max(bytes + bytes / 2, std::size_t{1} << 16);
    if (::fstat(fd_, &status) != 0 ||
        (static_cast<std::size_t>(status.st_size) < bytes &&
         ::ftruncate(fd_, static_cast<off_t>(room)) != 0) ||
        ::fstat(fd_, &status) != 0)
      throw NoSharedMemory(fmt::format("{} bytes of shared memory for an item cannot be had: {}",
                                       room, std::strerror(errno)));
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = nullptr;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED)
      throw NoSharedMemory(fmt::format("{} bytes of shared memory cannot be mapped: {}", size,
                                       std::strerror(errno)));
    data_ = static_cast<std::byte*>(mapped);
    size_ = size;
    return data_;
  }

 private:
  int fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

struct WorkerPool::Block : SharedBlock {
  using SharedBlock::SharedBlock;
  bool taken = false;
};

struct WorkerPool::Worker {
  struct Pending {
    std::uint64_t ticket;
    std::size_t block;
    bool abandoned;
  };

  int socket = -1;
  std::string process;  // its number, for messages
  ObjectRef handle;     // multiprocessing's
  bool starting = false;
  bool alone = false;  // one request, and no other beside it
  bool dead = true;    // or not yet started
  std::uint64_t next_ticket = 0;
  std::deque<Pending> pending;  // in the order in which they were asked
  bool reading = false;         // a thread reads the first one's answer
  std::vector<std::unique_ptr<Block>> blocks;

  [[nodiscard]] std::size_t in_flight() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(blocks, [](const auto& block) { return block->taken; }));
  }
};

WorkerPool::WorkerPool(ObjectRef items, std::vector<FieldSpec> fields, int workers)
    : items_(std::move(items)), fields_(std::move(fields)) {
  for (int i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>());
}

WorkerPool::~WorkerPool() {
  for (const auto& worker : workers_) {
    if (worker->socket < 0) continue;
    // A process ends where its socket does, after the item that it reads; also where a fork has a copy of it.
    if (generation_ == fork_generation()) ::shutdown(worker->socket, SHUT_RDWR);
    ::close(worker->socket);
  }
}

// Of the workers with room the one with the least to do. One that has died is started again, by the first
// thread that comes once no thread waits for it.
WorkerPool::Place WorkerPool::take(const Record& record, bool alone) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (record.is_cancelled()) return {};
    Worker* best = nullptr;
    for (const auto& worker : workers_) {
      if (worker->starting) continue;  // and its blocks change
      drop_abandoned(*worker);
      const std::size_t busy = worker->in_flight();
      const bool has_room = !worker->alone && busy < kBlocks;
      if (!has_room || ((alone || worker->dead) && busy != 0)) continue;
      if (best == nullptr || busy < best->in_flight()) best = worker.get();
    }
    if (best == nullptr) {
      changed_.wait_for(lock, kSlice);
      continue;
    }
    if (best->dead) {
      best->starting = true;
      lock.unlock();
      try {
        start(*best);
      } catch (...) {
        lock.lock();
        best->starting = false;
        changed_.notify_all();
        throw;
      }
      lock.lock();
      best->starting = false;
      best->dead = false;
    }
    best->alone = alone;
    const auto block = static_cast<std::size_t>(
        std::ranges::find_if(best->blocks, [](const auto& one) { return !one->taken; }) -
        best->blocks.begin());
    best->blocks[block]->taken = true;
    return {best, block, best->next_ticket++};
  }
}

void WorkerPool::start(Worker& worker) {
  if (worker.socket >= 0) ::close(std::exchange(worker.socket, -1));
  worker.blocks.clear();
  worker.pending.clear();
  std::vector<int> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const int fd = ::memfd_create("penstock-item", MFD_CLOEXEC);
    if (fd < 0)
      throw Error(fmt::format("shared memory for a worker process cannot be made: {}",
                              std::strerror(errno)));
    worker.blocks.push_back(std::make_unique<Block>(fd));
    blocks.push_back(fd);
  }
  const nb::gil_scoped_acquire gil;
  try {
    const nb::object items = object_of(items_);
    if (!items.is_valid()) throw Error("no process can be started while the interpreter ends");
    const nb::object started =
        nb::module_::import_("penstock._workers").attr("start")(items, fields_, blocks);
    worker.socket = nb::cast<int>(started[0]);
    worker.handle = std::make_shared<Kept>(nb::object(started[1]));
    worker.process = nb::cast<std::string>(nb::str(nb::object(started[1].attr("pid"))));
  } catch (nb::python_error& error) {
    rethrow(error);
  }
}

void WorkerPool::give_back(const Place& place) {
  const std::lock_guard lock(mutex_);
  place.worker->blocks[place.block]->taken = false;
  place.worker->alone = false;
  changed_.notify_all();
}

// What the worker had in hand is lost.
void WorkerPool::bury(Worker& worker) {
  worker.dead = true;
  worker.alone = false;
  for (const Worker::Pending& pending : worker.pending)
    if (pending.abandoned) worker.blocks[pending.block]->taken = false;
  changed_.notify_all();
}

// Takes the answers that no thread waits for any more, as far as they have come.
void WorkerPool::drop_abandoned(Worker& worker) {
  while (!worker.dead && !worker.reading && !worker.pending.empty() &&
         worker.pending.front().abandoned && is_readable(worker.socket, 0)) {
    std::vector<std::byte> body;
    if (!receive_answer(worker.socket, body)) return bury(worker);
    worker.blocks[worker.pending.front().block]->taken = false;
    worker.alone = false;
    worker.pending.pop_front();
    changed_.notify_all();
  }
}

// Answers come in the order of the requests.
WorkerPool::End WorkerPool::wait_for_turn(const Place& place, const Record& record) {
  Worker& worker = *place.worker;
  std::unique_lock lock(mutex_);
  for (;;) {
    drop_abandoned(worker);
    if (worker.dead) return End::died;
    if (worker.pending.front().ticket == place.ticket) {
      worker.reading = true;
      return End::answered;
    }
    if (record.is_cancelled()) {
      abandon(place);
      return End::stopped;
    }
    changed_.wait_for(lock, kSlice);
  }
}

void WorkerPool::abandon(const Place& place) {
  std::ranges::find(place.worker->pending, place.ticket, &Worker::Pending::ticket)->abandoned =
      true;
}

WorkerPool::End WorkerPool::ask(const Place& place, std::uint64_t number, std::uint64_t seed,
                                Record& record, Result<void>& result) {
  Worker& worker = *place.worker;
  {
    const std::lock_guard lock(mutex_);
    if (worker.dead) return End::died;
    worker.pending.push_back({place.ticket, place.block, false});
    const Request request{.number = number, .seed = seed, .block = place.block};
    if (!send_all(worker.socket, bytes_of(request))) {
      bury(worker);
      return End::died;
    }
  }
  End end = wait_for_turn(place, record);
  if (end != End::answered) return end;

  while (end == End::answered && !is_readable(worker.socket, static_cast<int>(kSlice.count())))
    if (record.is_cancelled()) end = End::stopped;
  std::vector<std::byte> body;
  std::optional<Kind> kind;
  std::exception_ptr no_memory;  // and what was not read stands before the next answer
  try {
    if (end == End::answered) kind = receive_answer(worker.socket, body);
  } catch (const std::bad_alloc&) {
    no_memory = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    worker.reading = false;
    if (worker.dead) {  // buried by another, whose request could not be sent
      end = End::died;
    } else if (end == End::stopped) {
      abandon(place);
    } else if (kind) {
      worker.pending.pop_front();
    } else {
      end = End::died;
      bury(worker);
    }
    changed_.notify_all();
  }
  if (no_memory) std::rethrow_exception(no_memory);
  if (end != End::answered) return end;

  if (*kind == Kind::fields) {
    const auto* const headers = reinterpret_cast<const FieldHeader*>(body.data());
    Block& block = *worker.blocks[place.block];
    for (std::size_t field = 0; field < fields_.size() && result; ++field) {
      const FieldHeader& header = headers[field];
      const Shape shape(std::span(header.extents).first(header.rank));
      const std::size_t bytes = FieldSpec{"", fields_[field].dtype, shape}.bytes();
      auto room = record.allocate(bytes);
      if (!room) {
        result = std::move(room.fault());
        break;
      }
      if (bytes != 0)
        std::memcpy(room->data(), block.at_least(header.offset + bytes) + header.offset, bytes);
      record.set(field, room->data(), fields_[field].dtype, shape);
    }
  } else if (*kind == Kind::fault || *kind == Kind::out_of_memory) {
    result = Fault{.reason = {reinterpret_cast<const char*>(body.data()), body.size()},
                   .out_of_memory = *kind == Kind::out_of_memory};
  } else {
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object raised = nb::module_::import_("penstock._workers")
                                    .attr("exception_of")(nb::bytes(body.data(), body.size()));
      result = Fault::of(as_cpp(raised));
    } catch (nb::python_error& error) {
      result = Fault::of(as_cpp(nb::borrow(error.value())));
    }
  }
  return End::answered;
}

Result<void> WorkerPool::read(std::uint64_t number, std::uint64_t seed, Record& record) {
  if (generation_ != fork_generation())
    throw Error(
        "this process was forked from one whose worker processes read this data set: make the "
        "Dataset "
        "in the child, or start processes with spawn");
  record.reset(fields_.size());
  for (int attempt = 0; attempt < 2; ++attempt) {
    // The second time with nothing beside it that could end the process.
    const Place place = take(record, attempt == 1);
    if (place.worker == nullptr) return Fault{.reason = "the loader was stopped"};
    Result<void> result;
    End end = End::died;
    try {
      end = ask(place, number, seed, record, result);
    } catch (...) {
      give_back(place);
      throw;
    }
    if (end == End::stopped) return Fault{.reason = "the loader was stopped"};
    give_back(place);
    if (end == End::answered) return result;
  }
  return Fault{
      .reason =
          "reading it has ended the worker process twice; was it killed because the machine had "
          "too little memory, or does the main program lack its if __name__ == '__main__'?"};
}

void serve_items(nb::object items, const std::vector<FieldSpec>& fields, int socket,
                 const std::vector<int>& blocks, nb::object seed) {
  std::vector<std::unique_ptr<SharedBlock>> shared;
  for (const int fd : blocks) shared.push_back(std::make_unique<SharedBlock>(fd));
  Record record;
  const auto send = [&](Kind kind, std::span<const std::byte> body) {
    const Answer answer{.kind = kind, .bytes = static_cast<std::uint32_t>(body.size())};
    return send_all(socket, bytes_of(answer)) && send_all(socket, body);
  };
  for (;;) {
    Request request{};
    {
      const ReleasedGil released;
      if (!receive(socket, request)) break;
    }
    bool alive = true;
    try {
      seed(request.seed);
      const Result<void> result = store_item(item_of(items, request.number), fields, record);
      if (!result) {
        const std::string& reason = result.fault().reason;
        alive = send(Kind::fault, std::as_bytes(std::span(reason)));
      } else {
        std::vector<FieldHeader> headers;
        std::size_t end = 0;
        for (const ConstTensorView& view : record.views()) {
          FieldHeader header{.offset = end, .rank = view.shape().rank(), .extents = {}};
          std::ranges::copy(view.shape().extents(), header.extents.begin());
          headers.push_back(header);
          end += (view.byte_size() + kAlignment - 1) / kAlignment * kAlignment;
        }
        std::byte* const data = shared.at(request.block)->at_least(end);
        for (std::size_t field = 0; field < headers.size(); ++field) {
          const ConstTensorView& view = record.views()[field];
          if (view.byte_size() != 0)
            std::memcpy(data + headers[field].offset, view.raw(), view.byte_size());
        }
        alive = send(Kind::fields, std::as_bytes(std::span(headers)));
      }
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;  // SystemExit, KeyboardInterrupt
      const auto pickled = nb::cast<nb::bytes>(
          nb::module_::import_("penstock._workers").attr("pickle_exception")(error.value()));
      alive =
          send(Kind::exception, {static_cast<const std::byte*>(pickled.data()), pickled.size()});
    } catch (const std::exception&) {
      const Fault fault = Fault::of(std::current_exception());
      alive = send(fault.out_of_memory ? Kind::out_of_memory : Kind::fault,
                   std::as_bytes(std::span(fault.reason)));
    }
    if (!alive) break;
  }
  ::close(socket);
}

}  // namespace penstock::python
