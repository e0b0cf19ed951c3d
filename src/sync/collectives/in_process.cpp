#include "src/sync/collectives/in_process.hpp"

#include <cstring>
#include <exception>
#include <utility>

#include "src/sync/collectives/reduction.hpp"

namespace penstock::sync {

namespace {

std::uint32_t all(const InProcessCommunicator::Shared& shared) {
  const auto local = static_cast<std::uint32_t>(shared.group->members());
  return shared.processes ? local * shared.processes->size() : local;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

// A mean over processes of sums over replicas would be divided twice.
ReduceOp inner(ReduceOp op) { return op == ReduceOp::mean ? ReduceOp::sum : op; }

}  // namespace

InProcessCommunicator::InProcessCommunicator(std::shared_ptr<Shared> shared, std::size_t member,
                                             Device device)
    : Communicator(shared->group->first_id() + static_cast<std::uint32_t>(member), all(*shared),
                   device),
      shared_(std::move(shared)),
      member_(member),
      exceptions_(std::uncaught_exceptions()) {}

InProcessCommunicator::~InProcessCommunicator() {
  // An exception that passes by is told by name when it reaches Replicas::run().
  if (std::uncaught_exceptions() == exceptions_) leave("ended");
}

void InProcessCommunicator::leave(const std::string& why) noexcept {
  shared_->group->leave(member_, why);
  // The first replica may be waiting for other processes on behalf of all.
  if (shared_->owns_processes) shared_->processes->leave(why);
}

std::unique_ptr<Communicator> InProcessCommunicator::duplicate() {
  Group& group = *shared_->group;
  group.meet(member_, {{.kind = Collective::Kind::duplicate}, nullptr, nullptr});
  const std::shared_ptr<Group> child = group.shared_child(member_);
  first_only([&] {
    shared_->duplicate = std::make_shared<Shared>();
    shared_->duplicate->group = child;
    if (!shared_->processes) return;
    shared_->duplicate->processes = shared_->processes->duplicate();
    shared_->duplicate->owns_processes = true;
    // A failing member ends the first replica's wait for other processes.
    child->on_failure([others = std::weak_ptr(shared_->duplicate->processes)](const auto&) {
      if (const auto communicator = others.lock()) communicator->leave("a replica of it failed");
    });
  });
  group.meet_again();
  auto mine = std::make_unique<InProcessCommunicator>(shared_->duplicate, member_, device());
  group.meet_again();
  first_only([&] { shared_->duplicate.reset(); });
  return mine;
}

template <class F>
void InProcessCommunicator::first_only(const F& body) {
  if (member_ != 0) return;
  try {
    body();
  } catch (...) {
    shared_->group->fail(std::current_exception());
    throw;
  }
}

void InProcessCommunicator::perform(const Collective& call, const std::byte* in, std::byte* out,
                                    StreamHandle) {
  Group& group = *shared_->group;
  if (group.members() == 1) return alone(call, in, out);
  const std::size_t bytes = call.count * size_of(call.dtype);
  group.meet(member_, {call, in, out}, [&] {
    // What passes between threads and processes, and what comes back.
    const bool needed = shared_->processes && (call.kind == Collective::Kind::reduce ||
                                               call.kind == Collective::Kind::reduce_scatter);
    const std::size_t places = call.kind == Collective::Kind::reduce ? 1 : size() + group.members();
    if (needed && shared_->scratch.size() < bytes * places) shared_->scratch.resize(bytes * places);
  });
  if (shared_->processes)
    among_processes(call, in, out);
  else
    among_threads(call, out);
}

void InProcessCommunicator::perform_parts(const Collective& call, std::span<const TensorView> parts,
                                          StreamHandle stream) {
  if (shared_->group->members() > 1 || !shared_->processes)
    return Communicator::perform_parts(call, parts, stream);
  shared_->group->meet(member_, {call, nullptr, nullptr});
  first_only([&] { perform_on(*shared_->processes, call, parts); });
}

void InProcessCommunicator::alone(const Collective& call, const std::byte* in, std::byte* out) {
  shared_->group->meet(member_, {call, in, out});
  if (shared_->processes)
    first_only([&] { perform_on(*shared_->processes, call, in, out); });
  else
    copy_bytes(out, in, call.count * size_of(call.dtype));
}

InProcessCommunicator::Part InProcessCommunicator::share(std::size_t count) const {
  const std::size_t members = shared_->group->members();
  const std::size_t begin = count * member_ / members;
  return {begin, count * (member_ + 1) / members - begin};
}

// Every member's elements from in_offset on, `part` of them, into the same part of `outs`.
void InProcessCommunicator::reduce_part(const Collective& call, ReduceOp op, Part part,
                                        std::size_t in_offset, std::vector<std::byte*> outs) const {
  const std::size_t unit = size_of(call.dtype);
  std::vector<const std::byte*> inputs;
  for (const Group::Arrival& arrival : shared_->group->arrivals())
    inputs.push_back(arrival.in + (in_offset + part.begin) * unit);
  for (std::byte*& out : outs) out += part.begin * unit;
  reduce_elements(inputs, outs, part.count, call.dtype, op, size());
}

void InProcessCommunicator::among_threads(const Collective& call, std::byte* out) {
  Group& group = *shared_->group;
  const std::vector<Group::Arrival>& all = group.arrivals();
  const std::size_t bytes = call.count * size_of(call.dtype);
  switch (call.kind) {
    case Collective::Kind::all_reduce: {
      std::vector<std::byte*> outs;
      for (const Group::Arrival& arrival : all) outs.push_back(arrival.out);
      reduce_part(call, call.op, share(call.count), 0, std::move(outs));
      break;
    }
    case Collective::Kind::reduce:
      reduce_part(call, call.op, share(call.count), 0, {all[call.root].out});
      break;
    case Collective::Kind::reduce_scatter:
      reduce_part(call, call.op, {0, call.count}, member_ * call.count, {out});
      break;
    case Collective::Kind::broadcast:
      copy_bytes(out, all[call.root].out, bytes);
      break;
    case Collective::Kind::all_gather:
      for (std::size_t member = 0; member < all.size(); ++member)
        copy_bytes(out + member * bytes, all[member].in, bytes);
      break;
    case Collective::Kind::barrier:
    case Collective::Kind::duplicate:
    case Collective::Kind::end_of_run:
      break;
  }
  group.meet_again();
}

void InProcessCommunicator::among_processes(const Collective& call, const std::byte* in,
                                            std::byte* out) {
  Group& group = *shared_->group;
  const std::vector<Group::Arrival>& all = group.arrivals();
  Communicator& processes = *shared_->processes;
  const std::size_t local = group.members();
  const std::size_t bytes = call.count * size_of(call.dtype);
  std::byte* const first = all[0].out;
  std::byte* const scratch = shared_->scratch.data();
  const Move divided{.divisor = call.op == ReduceOp::mean ? static_cast<double>(size()) : 1.0};
  Collective outer = call;
  outer.op = inner(call.op);

  switch (call.kind) {
    case Collective::Kind::all_reduce:
      reduce_part(call, outer.op, share(call.count), 0, {first});
      group.meet_again();
      first_only([&] {
        perform_on(processes, outer, first, first);
        move_elements(first, call.dtype, first, call.dtype, call.count, divided);
      });
      group.meet_again();
      copy_bytes(out, first, bytes);
      break;
    case Collective::Kind::reduce:
      outer.root = call.root / static_cast<std::uint32_t>(local);
      reduce_part(call, outer.op, share(call.count), 0, {scratch});
      group.meet_again();
      first_only([&] { perform_on(processes, outer, scratch, scratch); });
      group.meet_again();
      if (rank() == call.root)
        move_elements(scratch, call.dtype, out, call.dtype, call.count, divided);
      break;
    case Collective::Kind::reduce_scatter: {
      std::byte* const mine = scratch + size() * bytes;
      outer.count = call.count * local;
      reduce_part(call, outer.op, share(call.count * size()), 0, {scratch});
      group.meet_again();
      first_only([&] { perform_on(processes, outer, scratch, mine); });
      group.meet_again();
      move_elements(mine + member_ * bytes, call.dtype, out, call.dtype, call.count, divided);
      break;
    }
    case Collective::Kind::broadcast: {
      outer.root = call.root / static_cast<std::uint32_t>(local);
      const bool here = outer.root == processes.rank();
      std::byte* const source = here ? all[call.root % local].out : first;
      first_only([&] { perform_on(processes, outer, source, source); });
      group.meet_again();
      copy_bytes(out, source, bytes);
      break;
    }
    case Collective::Kind::all_gather:
      outer.count = call.count * local;
      copy_bytes(first + rank() * bytes, in, bytes);
      group.meet_again();
      first_only(
          [&] { perform_on(processes, outer, first + processes.rank() * local * bytes, first); });
      group.meet_again();
      copy_bytes(out, first, bytes * size());
      break;
    case Collective::Kind::barrier:
    case Collective::Kind::duplicate:
    case Collective::Kind::end_of_run:
      first_only([&] { perform_on(processes, outer, nullptr, nullptr); });
      break;
  }
  group.meet_again();  // before any member changes what others still read
}

}  // namespace penstock::sync
