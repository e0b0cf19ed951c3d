#include "testing/simulated_nccl/launch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "testing/simulated_cuda/lock.hpp"
#include "testing/simulated_cuda/sanitizers.hpp"
#include "testing/simulated_nccl/arithmetic.hpp"
#include "testing/simulated_nccl/library.hpp"

namespace penstock::simulated_nccl {

namespace {

using simulated_cuda::Polled;

constexpr std::uint64_t kLongestPart = 64 << 10;
// A short send may end before it is received, a long one has no room to.
constexpr std::uint64_t kFitsInBuffers = 256 << 10;

// The executor's.
alignas(64) std::byte result_buffer[kLongestPart];
alignas(64) std::byte next_buffer[kLongestPart];

// Between two parts other streams go on, so there are at least two.
std::uint64_t part_of(std::uint64_t bytes, std::uint64_t done) {
  const std::uint64_t part = (bytes / 2 + 15) / 16 * 16;
  return std::min(std::clamp<std::uint64_t>(part, 16, kLongestPart), bytes - done);
}

bool overlap(const Task& task) {
  return task.in < task.out + task.out_bytes && task.out < task.in + task.in_bytes;
}

// Whether the rank's result has data of `other` in it.
bool needs(const Task& task, int rank, int other) {
  switch (task.call.kind) {
    case Call::Kind::broadcast:
      return other == task.call.root;
    case Call::Kind::reduce:
      return rank == task.call.root;
    default:
      return true;
  }
}

}  // namespace

std::string Task::name() const {
  if (role == Role::collective) return call.to_string();
  return fmt::format("{}({}, {} {})", role == Role::send ? "send" : "receive", call.to_string(),
                     role == Role::send ? "to" : "from", peer);
}

void start(const std::shared_ptr<Launch>& launch) {
  Communicator& own = *launch->communicator;
  const CurrentDevice current(own.device);
  for (Task& task : launch->tasks) {
    const auto peer = static_cast<std::size_t>(task.peer);
    switch (task.role) {
      case Task::Role::collective:
        task.number = own.collectives++;
        break;
      case Task::Role::send:
        task.number = own.sends[peer]++;
        break;
      case Task::Role::receive:
        task.number = own.receives[peer]++;
        break;
    }
    task.alone =
        task.in_bytes <= kFitsInBuffers && own.draw(task.number * 131 + own.launches, 2) == 0;
  }
  launch->ticket = own.launches++;
  ++own.pending;
  const std::string name = fmt::format("{}{} of rank {}", launch->tasks[0].name(),
                                       launch->tasks.size() > 1 ? " and others" : "", own.rank);
  for (std::size_t k = 0; k < launch->streams.size(); ++k) {
    std::function<Polled()> step = [launch] { return launch->step(); };
    if (k > 0)
      step = [launch, came = false]() mutable { return launch->step_of_other_stream(came); };
    if (!simulated_cuda::enqueue_polled(launch->streams[k], name, std::move(step)))
      own.fail(ncclUnhandledCudaError);
  }
}

Polled Launch::step_of_other_stream(bool& came) {
  if (!came) {
    simulated_cuda::release(this);
    came = true;
    ++streams_there;
  }
  if (!over) return Polled::waits;
  simulated_cuda::acquire(this);
  return Polled::over;
}

Polled Launch::step() {
  Communicator& own = *communicator;
  if (own.aborted) {
    ask_for_garbage();
    end();
    return Polled::over;
  }
  if (own.turn != ticket || streams_there + 1 < streams.size()) return Polled::waits;
  if (streams.size() > 1) simulated_cuda::acquire(this);
  const std::int64_t now = simulated_cuda::now_ns();
  if (begins_ns == 0) begins_ns = now + delay_ns;
  if (now < begins_ns) return Polled::waits;
  if (fault.kind == Fault::Kind::absent) return Polled::waits;
  if (fault.kind == Fault::Kind::error) {
    own.fail(fault.error);
    return Polled::waits;
  }
  // Messages in any order, collectives one after another.
  bool moved = false;
  bool all_over = true;
  bool collects = false;
  ++rounds;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    const bool messages_only = tasks[0].role != Task::Role::collective;
    Task& task = tasks[messages_only ? (k + rounds) % tasks.size() : k];
    if (task.over) continue;
    const bool collective = task.role == Task::Role::collective;
    if (!(collective && collects)) moved |= go_on(task);
    collects |= collective && !task.over;
    all_over &= task.over;
  }
  if (!all_over) return moved ? Polled::moved : Polled::waits;
  end();
  return Polled::over;
}

void Launch::end() {
  over = true;
  ++communicator->turn;
  --communicator->pending;
  if (streams.size() > 1) simulated_cuda::release(this);
}

void Launch::ask_for_garbage() {
  for (const Task& task : tasks) {
    if (task.over || task.out_bytes == 0) continue;
    poison(task.out, task.out_bytes);
    simulated_cuda::writes(task.out, task.out_bytes);
  }
}

bool Launch::stops(const Task& task) const {
  return fault.kind == Fault::Kind::stopped &&
         (task.out_bytes > 0 ? task.taken > 0 : task.given > 0);
}

bool Launch::go_on(Task& task) {
  switch (task.role) {
    case Task::Role::collective:
      return collect(task);
    case Task::Role::send:
      return send(task);
    case Task::Role::receive:
      return receive(task);
  }
  return false;
}

// One part of the rank's own data goes out; the others see all of it when it is posted.
bool Launch::give(Task& task, Queue& queue, unsigned queue_number, std::uint64_t passed_by_all,
                  std::uint64_t& forgotten) {
  if (task.number >= passed_by_all + kPosts) return false;
  const Segment& segment = *communicator->segment;
  for (; forgotten < std::min(passed_by_all, task.number); ++forgotten)
    segment.forget({queue_number, forgotten}, queue.posts[forgotten % kPosts].bytes);
  const Slot slot{queue_number, task.number};
  if (task.given < task.in_bytes) {
    const std::uint64_t part = part_of(task.in_bytes, task.given);
    require_there(segment.write(slot, task.given, task.in + task.given, part), task);
    simulated_cuda::reads(task.in + task.given, part);
    task.given += part;
    if (task.given < task.in_bytes) return true;
  }
  Queue::Post& post = queue.posts[task.number % kPosts];
  post = {task.call, task.in_bytes};
  simulated_cuda::release(&post);
  queue.posted = task.number + 1;
  task.posted = true;
  return true;
}

bool Launch::collect(Task& task) {
  Communicator& own = *communicator;
  const Segment& segment = *own.segment;
  if (stops(task)) return false;
  if (!task.posted) {
    std::uint64_t passed = task.number;
    for (int other = 0; other < own.size(); ++other)
      passed = std::min<std::uint64_t>(passed, segment.rank(other).passed);
    if (!give(task, own.own().collectives, segment.collectives_of(own.rank), passed,
              own.forgotten.back()))
      return false;
    // Of two ranks that post, the later sees the earlier.
    if (task.posted) compare(task);
    return true;
  }
  if (!task.met) {
    for (int other = 0; other < own.size(); ++other)
      if ((needs(task, own.rank, other) || !task.alone) &&
          segment.rank(other).collectives.posted <= task.number)
        return false;
    compare(task);
    for (int other = 0; other < own.size(); ++other)
      if (needs(task, own.rank, other))
        simulated_cuda::acquire(&segment.rank(other).collectives.posts[task.number % kPosts]);
    task.met = true;
  }
  if (task.taken < task.out_bytes) {
    const std::uint64_t part = part_of(task.out_bytes, task.taken);
    put_together(task, task.taken, part);
    simulated_cuda::writes(task.out + task.taken, part);
    task.taken += part;
    return true;
  }
  require_unchanged(task, {segment.collectives_of(own.rank), task.number});
  own.own().passed = task.number + 1;
  task.over = true;
  return true;
}

bool Launch::send(Task& task) {
  Communicator& own = *communicator;
  Pair& pair = own.segment->pair(own.rank, task.peer);
  if (stops(task)) return false;
  const unsigned queue = own.segment->messages(own.rank, task.peer);
  if (!task.posted) {
    if (pair.messages.posted != task.number) return false;  // one before it is not sent yet
    return give(task, pair.messages, queue, pair.taken,
                own.forgotten[static_cast<std::size_t>(task.peer)]);
  }
  if (!task.alone && pair.taken <= task.number) return false;
  if (pair.taken <= task.number) require_unchanged(task, {queue, task.number});
  task.over = true;
  return true;
}

bool Launch::receive(Task& task) {
  Communicator& own = *communicator;
  Pair& pair = own.segment->pair(task.peer, own.rank);
  if (stops(task) || pair.taken != task.number || pair.messages.posted <= task.number) return false;
  Queue::Post& post = pair.messages.posts[task.number % kPosts];
  if (!task.met) {
    if (post.call != task.call)
      simulated_cuda::violation(fmt::format(
          "NCCL: rank {} sends {} to rank {}, which receives {} (message {} between the two)",
          task.peer, post.call.to_string(), own.rank, task.call.to_string(), task.number + 1));
    simulated_cuda::acquire(&post);
    task.met = true;
  }
  if (task.taken < task.out_bytes) {
    const std::uint64_t part = part_of(task.out_bytes, task.taken);
    const Slot slot{own.segment->messages(task.peer, own.rank), task.number};
    require_there(own.segment->read_into_device(slot, task.taken, task.out + task.taken, part),
                  task);
    simulated_cuda::writes(task.out + task.taken, part);
    task.taken += part;
    if (task.taken < task.out_bytes) return true;
  }
  pair.taken = task.number + 1;
  task.over = true;
  return true;
}

// A part of the result.
void Launch::put_together(const Task& task, std::uint64_t at, std::size_t bytes) const {
  const simulated_cuda::Unseen unseen;
  const Communicator& own = *communicator;
  const Segment& segment = *own.segment;
  const auto slot_of = [&](int other) { return Slot{segment.collectives_of(other), task.number}; };
  std::byte* const out = task.out + at;
  switch (task.call.kind) {
    case Call::Kind::broadcast:
      return require_there(segment.read_into_device(slot_of(task.call.root), at, out, bytes), task);
    case Call::Kind::all_gather: {
      const std::uint64_t piece = task.in_bytes;
      for (std::uint64_t done = 0; done < bytes;) {
        const std::uint64_t place = at + done;
        const std::uint64_t part = std::min(bytes - done, piece - place % piece);
        require_there(segment.read_into_device(slot_of(static_cast<int>(place / piece)),
                                               place % piece, out + done, part),
                      task);
        done += part;
      }
      return;
    }
    default:
      break;
  }
  const std::uint64_t first = task.call.kind == Call::Kind::reduce_scatter
                                  ? static_cast<std::uint64_t>(own.rank) * task.out_bytes
                                  : 0;
  const Reduction reduction{task.call.type, task.call.op, own.size()};
  const std::size_t count = bytes / size_of(task.call.type);
  segment.read(slot_of(0), first + at, result_buffer, bytes);
  reduction.begin(result_buffer, count);
  for (int other = 1; other < own.size(); ++other) {
    segment.read(slot_of(other), first + at, next_buffer, bytes);
    reduction.add(result_buffer, next_buffer, count);
  }
  reduction.end(result_buffer, count);
  if (!simulated_cuda::open_memory(out)) return require_there(false, task);
  std::memcpy(out, result_buffer, bytes);
}

void Launch::compare(const Task& task) const {
  const Communicator& own = *communicator;
  for (int other = 0; other < own.size(); ++other) {
    const Queue& queue = own.segment->rank(other).collectives;
    if (queue.posted <= task.number) continue;
    const Call& post = queue.posts[task.number % kPosts].call;
    if (post != task.call)
      simulated_cuda::violation(fmt::format(
          "NCCL: collective {} of a communicator differs: rank {} calls {}, rank {} calls {}",
          task.number + 1, own.rank, task.call.to_string(), other, post.to_string()));
  }
}

// NCCL reads it until the end.
void Launch::require_unchanged(const Task& task, Slot slot) const {
  const simulated_cuda::Unseen unseen;
  if (overlap(task)) return;
  for (std::uint64_t done = 0; done < task.in_bytes;) {
    const std::uint64_t part = std::min(task.in_bytes - done, kLongestPart);
    communicator->segment->read(slot, done, next_buffer, part);
    if (std::memcmp(task.in + done, next_buffer, part) != 0)
      simulated_cuda::violation(
          fmt::format("NCCL: what rank {} gives to {} was changed before it was over",
                      communicator->rank, task.name()));
    done += part;
  }
}

void Launch::require_there(bool there, const Task& task) const {
  if (!there && !communicator->aborted)
    simulated_cuda::violation(
        fmt::format("NCCL: the memory of rank {} in {} was freed before it was over",
                    communicator->rank, task.name()));
}

}  // namespace penstock::simulated_nccl
