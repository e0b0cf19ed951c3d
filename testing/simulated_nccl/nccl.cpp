// The functions of NCCL.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <time.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/arithmetic.hpp"
#include "testing/simulated_nccl/launch.hpp"
#include "testing/simulated_nccl/library.hpp"
#include "testing/simulated_nccl/simulated_nccl.hpp"

using namespace penstock::simulated_nccl;
namespace simulated_cuda = penstock::simulated_cuda;

namespace {

constexpr std::uint64_t kMagic = 0x6e63636c2073696d;

struct Id {
  std::uint64_t magic;
  Address address;
};
static_assert(sizeof(Id) <= NCCL_UNIQUE_ID_BYTES);

/// What a thread has called since ncclGroupStart().
struct Group {
  struct Queued {
    Task task;
    std::shared_ptr<Communicator> communicator;
    cudaStream_t stream;
    Fault fault;
  };
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Queued> queued;
  std::vector<std::shared_ptr<Communicator>> begun;  // whose ranks have yet to come
  std::set<int> freed_on;                            // devices of communicators that were aborted
};
thread_local Group group;

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  Library::get().say(why);
  return result;
}

/// With the library's lock.
template <class Body>
ncclResult_t with_library(const Body& body) {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  const ncclResult_t result = body(library);
  if (group.depth > 0 && result != ncclSuccess && result != ncclInProgress) group.error = result;
  return result;
}

/// The same, with a communicator that has nothing in progress.
template <class Body>
ncclResult_t with_communicator(ncclComm_t handle, const char* function, const Body& body) {
  return with_library([&](Library& library) -> ncclResult_t {
    const auto communicator = library.find(handle, function);
    if (!communicator)
      return refuse(ncclInvalidArgument, fmt::format("{}: the communicator is null", function));
    const ncclResult_t state = communicator->ask(library.faults.tell_deaths);
    if (state == ncclInProgress)
      return refuse(
          ncclInvalidArgument,
          fmt::format("{}: the communicator is used before the call before it was over: ask "
                      "ncclCommGetAsyncError()",
                      function));
    if (state != ncclSuccess) return state;
    const ncclResult_t result = body(library, *communicator, communicator);
    // Which then has an error for good.
    if (!communicator->blocking && result != ncclSuccess && result != ncclInProgress)
      communicator->fail(result);
    return result;
  });
}

/// What calls return that go on in the background; without the lock. Those of communicators that block wait, and all of
/// them go on meanwhile, since one may need the other.
ncclResult_t in_background(const std::vector<std::shared_ptr<Communicator>>& communicators) {
  for (;;) {
    bool waits = false;
    ncclResult_t result = ncclSuccess;
    for (const auto& communicator : communicators) {
      ncclResult_t state = ncclInProgress;
      if (communicator->aborted)
        state = ncclInternalError;
      else if (communicator->blocking)
        state = with_library(
            [&](Library& library) { return communicator->ask(library.faults.tell_deaths); });
      if (state == ncclInProgress && communicator->blocking) waits = true;
      if (state != ncclSuccess) result = state;
    }
    if (!waits) return result;
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
    ::nanosleep(&pause, nullptr);
  }
}

/// The same for one; within a group ncclGroupEnd() does it.
ncclResult_t in_background(const std::shared_ptr<Communicator>& communicator) {
  if (group.depth == 0) return in_background(std::vector{communicator});
  group.begun.push_back(communicator);
  return ncclSuccess;
}

/// Of communicators that were aborted.
void free_memory() {
  for (const int device : std::exchange(group.freed_on, {}))
    simulated_cuda::wait_for_device(device);
}

bool blocks(const ncclConfig_t* config, bool otherwise) {
  return config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? otherwise
                                                                        : config->blocking != 0;
}

// Sends to oneself must be received in the same group.
ncclResult_t require_both(const Launch& launch) {
  int open = 0;
  for (const Task& task : launch.tasks)
    if (task.role != Task::Role::collective && task.peer == launch.communicator->rank)
      open += task.role == Task::Role::send ? 1 : -1;
  if (open == 0) return ncclSuccess;
  return refuse(ncclInvalidUsage,
                fmt::format("rank {} sends to itself without receiving it in the same group, "
                            "or the other way round",
                            launch.communicator->rank));
}

ncclResult_t launch_all(Library& library, std::vector<Group::Queued> queued) {
  std::vector<std::shared_ptr<Launch>> launches;
  for (Group::Queued& one : queued) {
    std::shared_ptr<Launch> launch;
    for (const auto& other : launches)
      if (other->communicator == one.communicator) launch = other;
    if (!launch) {
      launch = std::make_shared<Launch>();
      launch->communicator = one.communicator;
      launch->delay_ns = library.faults.delay_ns(one.communicator->rank);
      launches.push_back(launch);
    }
    if (one.fault.kind != Fault::Kind::none) launch->fault = one.fault;
    if (std::find(launch->streams.begin(), launch->streams.end(), one.stream) ==
        launch->streams.end())
      launch->streams.push_back(one.stream);
    launch->tasks.push_back(one.task);
  }
  for (const auto& launch : launches)
    if (const ncclResult_t status = require_both(*launch); status != ncclSuccess) return status;
  ncclResult_t result = ncclSuccess;
  for (const auto& launch : launches) {
    Communicator& own = *launch->communicator;
    if (!own.blocking && own.size() > 1 && own.draw(own.launches * 7, 2) == 0) {
      own.launch_later(launch, 1 + static_cast<int>(own.draw(own.launches * 7 + 1, 3)));
      result = ncclInProgress;
      continue;
    }
    start(launch);
    if (const int error = own.error; error != ncclSuccess) return static_cast<ncclResult_t>(error);
  }
  return result;
}

/// Where a stream can take no more, its caller waits, and meanwhile another thread may abort the communicator.
bool has_room(const Communicator& communicator, cudaStream_t stream) {
  const CurrentDevice current(communicator.device);
  simulated_cuda::wait_for_room(stream);
  return !communicator.aborted;
}

/// A collective, a send or a receive.
ncclResult_t call(const char* function, Task task, ncclComm_t handle, cudaStream_t stream) {
  std::shared_ptr<Communicator> communicator;
  (void)with_library([&](Library& library) {
    communicator = library.find(handle, function);
    return ncclSuccess;
  });
  if (group.depth == 0 && communicator && !has_room(*communicator, stream))
    return ncclInternalError;
  return with_communicator(
      handle, function, [&](Library& library, Communicator& own, const auto& shared) {
        const auto refuse_this = [&](ncclResult_t result, const std::string& why) {
          return refuse(result, fmt::format("{}: {}", function, why));
        };
        const std::size_t unit = size_of(task.call.type);
        const bool collective = task.role == Task::Role::collective;
        const bool is_root = own.rank == task.call.root;
        if (own.phase == Communicator::Phase::finalized)
          return refuse_this(ncclInvalidUsage, "the communicator is finalized");
        if (unit == 0) return refuse_this(ncclInvalidArgument, "unknown type");
        if (name_of(task.call.op) == nullptr)
          return refuse_this(ncclInvalidArgument, "unknown operation, or one of the caller's own");
        if (task.call.root < 0 || task.call.root >= own.size() || task.peer < 0 ||
            task.peer >= own.size())
          return refuse_this(ncclInvalidArgument, "no such rank");
        const std::uint64_t bytes = task.call.count * unit;
        const auto ranks = static_cast<std::uint64_t>(own.size());
        switch (task.call.kind) {
          case Call::Kind::all_reduce:
            task.in_bytes = task.out_bytes = bytes;
            break;
          case Call::Kind::reduce:
            task.in_bytes = bytes;
            task.out_bytes = is_root ? bytes : 0;
            break;
          case Call::Kind::broadcast:
            task.in_bytes = is_root ? bytes : 0;
            task.out_bytes = bytes;
            break;
          case Call::Kind::all_gather:
            task.in_bytes = bytes;
            task.out_bytes = bytes * ranks;
            break;
          case Call::Kind::reduce_scatter:
            task.in_bytes = bytes * ranks;
            task.out_bytes = bytes;
            break;
          case Call::Kind::message:
            (task.role == Task::Role::send ? task.in_bytes : task.out_bytes) = bytes;
            break;
        }
        if ((task.in_bytes > 0 && task.in == nullptr) ||
            (task.out_bytes > 0 && task.out == nullptr))
          return refuse_this(ncclInvalidArgument, "the memory is null");
        if (!own.blocking && stream == cudaStreamPerThread)
          simulated_cuda::violation(
              fmt::format("{} of a communicator that does not block was given cudaStreamPerThread, "
                          "which names another stream where NCCL launches it",
                          function));
        const CurrentDevice current(own.device);
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess)
          return refuse_this(ncclUnhandledCudaError, "the stream's state");
        if (capture != cudaStreamCaptureStatusNone)
          return refuse_this(ncclInvalidUsage, "the simulation cannot be captured");
        int device = own.device;
        if (cudaStreamGetDevice(stream, &device) == cudaSuccess && device != own.device)
          simulated_cuda::violation(
              fmt::format("{} of a communicator on cuda:{} was given a stream of cuda:{}", function,
                          own.device, device));
        if (task.call.count == 0 && collective) return ncclSuccess;
        const auto require_own = [&](const void* memory, std::uint64_t size) {
          if (size == 0) return;
          const int place = simulated_cuda::device_of(memory, size);
          if (place != own.device)
            simulated_cuda::violation(
                fmt::format("{} of a communicator on cuda:{} was given memory of {}", function,
                            own.device, place < 0 ? "the host" : fmt::format("cuda:{}", place)));
        };
        require_own(task.in, task.in_bytes);
        require_own(task.out, task.out_bytes);
        Group::Queued queued{task, shared, stream, library.faults.take(own.rank)};
        if (group.depth > 0) {
          group.queued.push_back(std::move(queued));
          const bool tells = !own.blocking && own.draw(group.queued.size() * 11, 2) == 0;
          return tells ? ncclInProgress : ncclSuccess;
        }
        std::vector<Group::Queued> one;
        one.push_back(std::move(queued));
        return launch_all(library, std::move(one));
      });
}

Task collective(Call::Kind kind, const void* in, void* out, std::size_t count, ncclDataType_t type,
                ncclRedOp_t op, int root) {
  Task task;
  task.call = {.kind = kind, .type = type, .op = op, .root = root, .count = count};
  task.in = static_cast<const std::byte*>(in);
  task.out = static_cast<std::byte*>(out);
  return task;
}

Task message(Task::Role role, const void* in, void* out, std::size_t count, ncclDataType_t type,
             int peer) {
  Task task = collective(Call::Kind::message, in, out, count, type, ncclSum, 0);
  task.role = role;
  task.peer = peer;
  return task;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return with_library([&](Library& library) {
    const auto segment = library.make_segment();
    library.keep_id(segment);
    const Id own{kMagic, segment->address()};
    std::memset(id, 0, sizeof *id);
    std::memcpy(id, &own, sizeof own);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  std::shared_ptr<Communicator> communicator;
  const ncclResult_t status = with_library([&](Library& library) {
    *result = nullptr;
    if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
      return refuse(ncclInvalidArgument, fmt::format("rank {} of {}; the simulation has at most {}",
                                                     rank, ranks, kMostRanks));
    Id own{};
    std::memcpy(static_cast<void*>(&own), &id, sizeof own);
    if (own.magic != kMagic) return refuse(ncclInvalidArgument, "this is no unique id");
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || cudaSetDevice(device) != cudaSuccess)
      return refuse(ncclUnhandledCudaError, "no device");
    const auto segment = library.open_segment(own.address);
    if (!segment) return refuse(ncclSystemError, "the process that made the unique id is gone");
    if (!segment->take_ranks(ranks))
      return refuse(ncclInvalidArgument,
                    fmt::format("{} ranks here, and {} elsewhere", ranks, segment->ranks()));
    communicator = std::make_shared<Communicator>(segment, rank, device, blocks(config, true),
                                                  simulated_cuda::seed());
    if (!communicator->join())
      return refuse(
          ncclInvalidUsage,
          fmt::format("rank {} is there already, or the unique id was used before", rank));
    *result = library.add(communicator);
    return ncclSuccess;
  });
  return status == ncclSuccess ? in_background(communicator) : status;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* result,
                           ncclConfig_t* config) {
  std::shared_ptr<Communicator> communicator;
  const ncclResult_t status = with_communicator(
      handle, "ncclCommSplit", [&](Library&, Communicator& own, const auto& shared) {
        if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
          return refuse(ncclInvalidArgument, "a colour below 0");
        own.begin_split(color, key, blocks(config, own.blocking), result);
        communicator = shared;
        return ncclSuccess;
      });
  if (status != ncclSuccess) return status;
  // NCCL 2.28 returns success at once: the state is the parent's, and the child's handle is null until it is over.
  const ncclResult_t state = in_background(communicator);
  return state == ncclInProgress ? ncclSuccess : state;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  return with_library([&](Library& library) {
    const auto communicator = library.find(handle, "ncclCommGetAsyncError");
    if (!communicator)
      return refuse(ncclInvalidArgument, "ncclCommGetAsyncError: the communicator is null");
    *error = communicator->ask(library.faults.tell_deaths);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  std::shared_ptr<Communicator> communicator;
  const ncclResult_t status = with_communicator(
      handle, "ncclCommFinalize", [&](Library&, Communicator& own, const auto& shared) {
        if (own.phase == Communicator::Phase::finalized)
          return refuse(ncclInvalidArgument, "ncclCommFinalize: it is finalized already");
        own.begin_finalize();
        communicator = shared;
        return ncclSuccess;
      });
  return status == ncclSuccess ? in_background(communicator) : status;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return with_library([&](Library& library) {
    const auto communicator = library.find(handle, "ncclCommDestroy");
    if (!communicator) return ncclSuccess;
    if (communicator->ask(library.faults.tell_deaths) == ncclInProgress)
      return refuse(ncclInvalidArgument, "ncclCommDestroy: the call before it is not over");
    if (communicator->pending > 0)
      simulated_cuda::violation(
          "ncclCommDestroy while operations are in streams: ncclCommFinalize() waits for them, "
          "ncclCommAbort() ends them");
    communicator->destroy();
    library.remove(handle);
    return ncclSuccess;
  });
}

// It frees device memory, which may wait for what else the device does; for a group (from 2.22) when all have ended.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const ncclResult_t result = with_library([&](Library& library) {
    const auto communicator = library.find(handle, "ncclCommAbort");
    if (!communicator) return ncclSuccess;
    communicator->abort();
    library.remove(handle);
    group.freed_on.insert(communicator->device);
    return ncclSuccess;
  });
  if (group.depth == 0) free_memory();
  return result;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclAllReduce", collective(Call::Kind::all_reduce, in, out, count, type, op, 0),
              comm, stream);
}

ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclReduce", collective(Call::Kind::reduce, in, out, count, type, op, root), comm,
              stream);
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclBroadcast",
              collective(Call::Kind::broadcast, in, out, count, type, ncclSum, root), comm, stream);
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return call("ncclAllGather", collective(Call::Kind::all_gather, in, out, count, type, ncclSum, 0),
              comm, stream);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclReduceScatter",
              collective(Call::Kind::reduce_scatter, in, out, count, type, op, 0), comm, stream);
}

ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call("ncclSend", message(Task::Role::send, in, nullptr, count, type, peer), comm, stream);
}

ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclRecv", message(Task::Role::receive, nullptr, out, count, type, peer), comm,
              stream);
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0)
    return with_library(
        [](Library&) { return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart"); });
  if (--group.depth > 0) return ncclSuccess;
  auto queued = std::exchange(group.queued, {});
  const auto begun = std::exchange(group.begun, {});
  ncclResult_t result = std::exchange(group.error, ncclSuccess);
  free_memory();
  if (result != ncclSuccess) return result;
  for (const Group::Queued& one : queued)
    if (!has_room(*one.communicator, one.stream)) return ncclInternalError;
  result = with_library([&](Library& library) { return launch_all(library, std::move(queued)); });
  const ncclResult_t in_progress = in_background(begun);
  return in_progress != ncclSuccess ? in_progress : result;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) {
  thread_local std::string text;
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  text = library.last_error();
  return text.c_str();
}

}  // extern "C"

namespace penstock::simulated_nccl {

namespace {

void plan(int rank, std::uint64_t n, Fault fault) {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  library.faults.add(rank, n, fault);
}

}  // namespace

void be_absent(int rank, std::uint64_t n) { plan(rank, n, {Fault::Kind::absent}); }
void stop_in_the_middle(int rank, std::uint64_t n) { plan(rank, n, {Fault::Kind::stopped}); }
void fail(int rank, std::uint64_t n, ncclResult_t error) {
  plan(rank, n, {Fault::Kind::error, error});
}

void slow_down(int rank, std::int64_t us) {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  library.faults.slow_down(rank, us * 1000);
}

void tell_deaths(bool tell) {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  library.faults.tell_deaths = tell;
}

void repair() {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  library.faults = Faults();
}

std::size_t communicators() {
  Library& library = Library::get();
  const simulated_cuda::Guard guard(library.lock);
  return library.communicators();
}

}  // namespace penstock::simulated_nccl
