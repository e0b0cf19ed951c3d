#include "src/sync/collectives/process_communicator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "src/core/exception_text.hpp"
#include "src/sync/collectives/reduction.hpp"

namespace penstock::sync {

namespace {

// Below this size all data go to every process at once: one step instead of two.
constexpr std::size_t kSmallBytes = 16U << 10;
// Shares of a piece come in slices: each costs messages to all, and memory for twice that of every process.
constexpr std::size_t kSliceBytes = 2U << 20;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kRootBytes = 1U << 20;
// In any order: larger ones go in slices, all at once, where halving and doubling waits for one step after another.
constexpr std::size_t kMostInAnyOrder = 1U << 20;
constexpr std::size_t kHalvedBytes = 4U << 10;
// A process says why it left before its goodbye comes.
constexpr double kFarewellTimeout = 5;
constexpr const char* kEnded = "it ended";
// After the steps of the heads: the data, and what the sums are handed out in.
constexpr std::uint32_t kDataPhase = 100;
constexpr std::uint32_t kHandOutPhase = 101;

std::string ordinal(std::uint64_t number) {
  const std::uint64_t tens = number % 100;
  const char* end = "th";
  if (tens < 11 || tens > 13) {
    if (number % 10 == 1) end = "st";
    if (number % 10 == 2) end = "nd";
    if (number % 10 == 3) end = "rd";
  }
  return fmt::format("{}{}", number, end);
}

}  // namespace

Deadline deadline_in(double seconds) {
  constexpr double kLongest = 1e9;  // which the clock can hold
  return SteadyClock::now() +
         std::chrono::duration_cast<SteadyClock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, kLongest)));
}

ProcessCommunicator::ProcessCommunicator(std::unique_ptr<Links> links, double timeout_s,
                                         bool any_order)
    : Communicator(links->rank(), links->size(), Device{}),
      links_(std::move(links)),
      timeout_s_(timeout_s),
      any_order_(any_order),
      heard_(size()),
      heads_(size()) {
  links_->on_inquiry([this] { return report(); });
}

ProcessCommunicator::~ProcessCommunicator() {
  links_->on_inquiry({});
  const std::unique_lock lock = stop(kEnded);
  say_goodbye(kEnded, Leaves::in_order, false);
}

std::unique_ptr<Communicator> ProcessCommunicator::duplicate() {
  const Collective call{.kind = Collective::Kind::duplicate};
  std::unique_ptr<Links> copy;
  guarded(call, [&] {
    agree(call);
    copy = links_->duplicate(heads_[0].channel);
  });
  return std::make_unique<ProcessCommunicator>(std::move(copy), timeout_s_, any_order_);
}

void ProcessCommunicator::leave(const std::string& why) noexcept {
  const std::unique_lock lock = stop(why);
  const bool broke_off = broken_ != nullptr;
  say_goodbye(why, Leaves::for_a_reason, broke_off);
  links_->leave_process(why, broke_off);
}

std::unique_lock<std::mutex> ProcessCommunicator::stop(const std::string& why) noexcept {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) return lock;
  // A collective is in progress on another thread, and may wait for long.
  try {
    const std::lock_guard pending(pending_mutex_);
    stopped_ = why;
  } catch (...) {  // memory is out: it will say less
  }
  links_->interrupt();
  lock.lock();
  return lock;
}

std::optional<std::string> ProcessCommunicator::why_stopped() {
  const std::lock_guard lock(pending_mutex_);
  return stopped_;
}

void ProcessCommunicator::say_goodbye(const std::string& why, Leaves how, bool broke_off) noexcept {
  if (left_ || size() == 1) return;
  left_ = true;
  try {
    if (how == Leaves::for_a_reason) links_->say_farewell(why, broke_off);
    // In the place of all heads that this process would hand on.
    std::ranges::fill(heads_, Head{.sequence = sequence_ + 1, .leaves = how, .leaver = rank()});
    const std::span<const Head> all = heads_;
    const auto part_from = [&](std::uint32_t peer, std::span<const Head> mine,
                               std::span<Head> theirs) {
      try {
        links_->post(peer, std::as_bytes(mine));
        // Theirs is not left in the transport's memory.
        if (!broke_off) (void)links_->receive(peer, Lane::head, std::as_writable_bytes(theirs));
      } catch (const Error&) {  // it has gone before
      }
    };
    if (rank() != 0) part_from(parent(), all.first(below(rank())), heads_);
    for_children([&](std::uint32_t child) {
      part_from(child, all, std::span(heard_).subspan(child, below(child)));
    });
  } catch (...) {
  }
  links_->clear();
}

std::uint32_t ProcessCommunicator::below(std::uint32_t peer) const {
  const std::uint32_t span = peer == 0 ? size() : peer & (~peer + 1);
  return std::min(span, size() - peer);
}

template <class F>
void ProcessCommunicator::for_children(const F& body) const {
  for (std::uint32_t step = std::bit_floor(below(rank()) - 1); step > 0; step /= 2)
    body(rank() + step);
}

template <class F>
void ProcessCommunicator::for_peers(const F& body) const {
  // Each begins with another peer, so that no process gets messages from all at once.
  for (std::uint32_t step = 1; step < size(); ++step) body((rank() + step) % size());
}

void ProcessCommunicator::perform(const Collective& call, const std::byte* in, std::byte* out,
                                  StreamHandle) {
  if (size() == 1) {
    const std::size_t bytes = call.count * size_of(call.dtype);
    if (in != out && bytes > 0) std::memcpy(out, in, bytes);
    return;
  }
  const std::size_t bytes = call.count * size_of(call.dtype) *
                            (call.kind == Collective::Kind::reduce_scatter ? size() : 1);
  const bool is_small = bytes <= kCarriedBytes;
  guarded(call, [&] {
    agree(call, {in, is_small ? bytes : 0});
    if (is_small)
      take_small(call, out);
    else
      transfer(call, in, out);
  });
}

void ProcessCommunicator::perform_parts(const Collective& call, std::span<const TensorView> parts,
                                        StreamHandle) {
  std::vector<std::span<std::byte>> regions;
  for (const TensorView& part : parts) regions.emplace_back(part.raw(), part.byte_size());
  guarded(call, [&] {
    agree(call);
    all_reduce_parts(call, regions);
  });
}

// Runs `body` as the next collective; whatever is thrown breaks the communicator.
void ProcessCommunicator::guarded(const Collective& call, const std::function<void()>& body) {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  if (left_) fail(fmt::format("process {} has left: it makes no more collectives", rank()));
  ++sequence_;
  deadline_ = deadline_in(timeout_s_);
  note_pending([&](auto& pending) {
    pending = {.communicator = links_->channel(),
               .number = sequence_,
               .phase = 0,
               .peer = rank(),
               .call = call.to_string()};
  });
  const std::shared_ptr<void> over(
      nullptr, [this](void*) { note_pending([](auto& pending) { pending.reset(); }); });
  try {
    if (size() > 1)
      body();
    else if (call.kind == Collective::Kind::duplicate)
      body();
    links_->clear();
  } catch (const PeerError& error) {
    broken_ = std::make_exception_ptr(SyncError(explain(error, call.to_string())));
    break_off(true);
    std::rethrow_exception(broken_);
  } catch (const SyncError&) {  // which all come to
    broken_ = std::current_exception();
    break_off(false);
    throw;
  } catch (...) {
    broken_ = std::current_exception();
    break_off(true);
    throw;
  }
}

// At once: the caller that catches the error may keep this communicator for long.
void ProcessCommunicator::break_off(bool in_the_middle) noexcept {
  try {
    const std::string why = why_stopped().value_or(core::text_of(broken_));
    say_goodbye(why, Leaves::for_a_reason, in_the_middle);
  } catch (...) {  // memory is out
  }
  links_->clear();
}

void ProcessCommunicator::fail(const std::string& message) {
  broken_ = std::make_exception_ptr(SyncError(message));
  std::rethrow_exception(broken_);
}

std::string ProcessCommunicator::explain(const PeerError& error, const std::string& what) {
  const std::string where = fmt::format("process {} of {}, in its {} collective, {}", rank(),
                                        size(), ordinal(sequence_), what);
  if (why_stopped()) return fmt::format("{}: this process has left", where);
  if (!error.late())
    if (const auto known = links_->explanation()) return fmt::format("{}: {}", where, *known);
  note_pending([&](auto& pending) { pending->peer = error.peer(); });
  const std::string what_is_seen =
      error.late() ? fmt::format("process {} did not come within {} s", error.peer(), timeout_s_)
                   : fmt::format("process {} is gone ({})", error.peer(), error.what());
  // Also where a connection has ended: a process that has run out of time ends those to all others.
  std::optional<std::string> why;
  try {
    why = links_->inquire(report().at(0));
  } catch (const Error& lost) {
    why = lost.what();
  }
  if (!why && error.late())
    why =
        "it, or a process that it waits for, is stopped, hangs, or is busy with something else; "
        "raise the timeout if it may take that long";
  return fmt::format("{}: {}{}{}", where, what_is_seen, why ? ": " : "", why.value_or(""));
}

std::vector<PendingCall> ProcessCommunicator::report() {
  const std::lock_guard lock(pending_mutex_);
  if (!pending_) return {};
  return {*pending_};
}

void ProcessCommunicator::wait(const Tickets& tickets) {
  for (const Links::Ticket ticket : tickets) {
    note_pending([&](auto& pending) { pending->peer = ticket->peer; });
    links_->wait(ticket, deadline_);
  }
}

void ProcessCommunicator::agree(const Collective& call, std::span<const std::byte> small) {
  Head& mine = heard_[rank()];
  mine = {.sequence = sequence_, .call = call, .any_order = any_order_};
  if (call.kind == Collective::Kind::duplicate) mine.channel = links_->next_channel();
  std::ranges::copy(small, mine.carried.begin());
  // All that will come is asked for at once: transports hold a message back until then.
  Tickets from_below;
  for_children([&](std::uint32_t child) {
    from_below.push_back(links_->receive(
        child, Lane::head, std::as_writable_bytes(std::span(heard_).subspan(child, below(child)))));
  });
  Tickets from_above;
  if (rank() != 0)
    from_above.push_back(
        links_->receive(parent(), Lane::head, std::as_writable_bytes(std::span(heads_))));
  wait(from_below);
  const std::span<const Head> heard = std::span(heard_).subspan(rank(), below(rank()));
  if (rank() != 0) links_->post(parent(), std::as_bytes(heard));
  note_pending([](auto& pending) { ++pending->phase; });
  wait(from_above);
  if (rank() == 0) heads_ = heard_;
  for_children([&](std::uint32_t child) { links_->post(child, std::as_bytes(std::span(heads_))); });
  note_pending([](auto& pending) { pending->phase = kDataPhase; });
  const Head& first = heads_[0];
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    const Head& head = heads_[peer];
    if (head.leaves != Leaves::no)
      fail(fmt::format(
          "process {} of {} waits in its {} collective, {}, and process {} makes no more: {}",
          rank(), size(), ordinal(sequence_), call.to_string(), head.leaver, why_left(head)));
    if (head.any_order != first.any_order)
      fail(
          fmt::format("processes 0 and {} have different any_order: every process must be "
                      "connected with the same",
                      peer));
    if (head.call != first.call)
      fail(
          fmt::format("the processes' {} collectives differ: process 0 calls {}, process {} calls "
                      "{}; every process must make the same calls in the same order",
                      ordinal(sequence_), first.call.to_string(), peer, head.call.to_string()));
  }
  links_->all_came();
}

// With what else is known by then: a part of a process may end a moment before the process says why.
std::string ProcessCommunicator::why_left(const Head& goodbye) {
  if (goodbye.leaves == Leaves::in_order) return kEnded;
  const std::optional<std::string> said =
      links_->farewell_of(goodbye.leaver, deadline_in(kFarewellTimeout));
  const std::optional<std::string> known = links_->explanation();
  if (!said) return known.value_or("it has ended");
  if (!known || known->ends_with(*said)) return *said;
  return fmt::format("{}; {}", *said, *known);
}

// All data of a call that came with the heads.
void ProcessCommunicator::take_small(const Collective& call, std::byte* out) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes == 0) return;
  const std::size_t offset =
      call.kind == Collective::Kind::reduce_scatter ? rank() * bytes : std::size_t{0};
  std::vector<const std::byte*> inputs;
  for (std::uint32_t peer = 0; peer < size(); ++peer)
    inputs.push_back(heads_[peer].carried.data() + offset);
  switch (call.kind) {
    case Collective::Kind::reduce:
      if (rank() != call.root) return;
      [[fallthrough]];
    case Collective::Kind::all_reduce:
    case Collective::Kind::reduce_scatter:
      return reduce_elements(inputs, std::array{out}, call.count, call.dtype, call.op, size());
    case Collective::Kind::broadcast:
      std::memcpy(out, inputs[call.root], bytes);
      return;
    case Collective::Kind::all_gather:
      for (std::uint32_t peer = 0; peer < size(); ++peer)
        std::memcpy(out + peer * bytes, inputs[peer], bytes);
      return;
    case Collective::Kind::barrier:
    case Collective::Kind::duplicate:
    case Collective::Kind::end_of_run:
      return;
  }
}

void ProcessCommunicator::transfer(const Collective& call, const std::byte* in, std::byte* out) {
  const std::size_t unit = size_of(call.dtype);
  const std::size_t bytes = call.count * unit;
  if (bytes == 0) return;
  switch (call.kind) {
    case Collective::Kind::all_reduce:
      return all_reduce(call, out);
    case Collective::Kind::reduce:
      return reduce_to_root(call, out);
    case Collective::Kind::broadcast:
      return broadcast(out, bytes, call.root);
    case Collective::Kind::all_gather:
      if (in != out + rank() * bytes) std::memmove(out + rank() * bytes, in, bytes);
      return exchange_pieces(std::array{std::span(out, bytes * size())}, bytes);
    case Collective::Kind::reduce_scatter:
      return reduce_pieces(call, std::array{Share{in, out, bytes * size()}});
    case Collective::Kind::barrier:
    case Collective::Kind::duplicate:
    case Collective::Kind::end_of_run:
      return;
  }
}

std::pair<std::size_t, std::size_t> ProcessCommunicator::piece(std::size_t bytes, std::size_t unit,
                                                               std::uint32_t piece) const {
  const std::size_t units = bytes / unit;
  const std::size_t begin = units * piece / size() * unit;
  return {begin, units * (piece + 1) / size() * unit - begin};
}

bool ProcessCommunicator::in_any_order(const Collective& call) const {
  const bool adds =
      call.op == ReduceOp::sum || call.op == ReduceOp::product || call.op == ReduceOp::mean;
  return any_order_ && adds && sum_dtype(call.dtype) == call.dtype &&
         call.count * size_of(call.dtype) <= kMostInAnyOrder;
}

// Recursive halving and doubling (Thakur, Rabenseifner and Gropp, 2005): each process adds up with log2 n others, in place
// of n - 1. Those beyond the last power of two have another one add up for them.
void ProcessCommunicator::all_reduce_in_any_order(const Collective& call, std::byte* data) {
  const std::size_t unit = size_of(call.dtype);
  const std::span<std::byte> whole(data, call.count * unit);
  const std::uint32_t half = std::bit_floor(size()) / 2;
  const ReduceOp op = call.op == ReduceOp::product ? ReduceOp::product : ReduceOp::sum;
  scratch_.resize(std::max(scratch_.size(), whole.size()));
  // Steps are numbered alike in all processes: a process at a later one has done its part of the earlier ones.
  const auto levels = static_cast<std::uint32_t>(std::bit_width(half));
  const auto level_of = [](std::uint32_t step) {
    return static_cast<std::uint32_t>(std::countr_zero(step));
  };
  const std::uint32_t first = kDataPhase;
  const std::uint32_t last = first + 2 * levels + 1;
  const auto exchange = [&](std::uint32_t phase, std::uint32_t peer,
                            std::span<const std::byte> mine, std::span<std::byte> theirs) {
    note_pending([&](auto& pending) { pending->phase = phase; });
    Tickets tickets;
    if (!theirs.empty()) tickets.push_back(links_->receive(peer, Lane::data, theirs));
    if (!mine.empty()) tickets.push_back(links_->send(peer, mine));
    wait(tickets);
  };
  // In the order of the two ranks, so that both come to the same.
  const auto add = [&](std::uint32_t peer, std::span<std::byte> sum) {
    std::array<const std::byte*, 2> inputs{sum.data(), scratch_.data()};
    if (peer < rank()) std::swap(inputs[0], inputs[1]);
    reduce_elements(inputs, std::array{sum.data()}, sum.size() / unit, call.dtype, op, size());
  };
  const std::span<std::byte> place(scratch_);
  struct Step {
    std::uint32_t peer;
    std::span<std::byte> kept;
    std::span<std::byte> given;
  };
  std::vector<Step> halvings;
  const std::uint32_t partner = rank() < 2 * half ? rank() + 2 * half : rank() - 2 * half;
  if (rank() >= 2 * half) {
    exchange(first, partner, whole, {});
    exchange(last, partner, {}, whole);
  } else {
    if (partner < size()) {
      exchange(first, partner, {}, place.first(whole.size()));
      add(partner, whole);
    }
    std::span<std::byte> mine = whole;
    for (std::uint32_t step = half; step > 0; step /= 2) {
      const std::uint32_t peer = rank() ^ step;
      const std::uint32_t phase = first + levels - level_of(step);
      if (mine.size() > kHalvedBytes) {
        const std::size_t middle = mine.size() / unit / 2 * unit;
        Step halving{peer, mine.first(middle), mine.subspan(middle)};
        if (peer < rank()) std::swap(halving.kept, halving.given);
        exchange(phase, peer, halving.given, place.first(halving.kept.size()));
        mine = halving.kept;
        halvings.push_back(halving);
      } else {
        exchange(phase, peer, mine, place.first(mine.size()));
      }
      add(peer, mine);
    }
    for (auto step = halvings.rbegin(); step != halvings.rend(); ++step)
      exchange(first + levels + 1 + level_of(step->peer ^ rank()), step->peer, step->kept,
               step->given);
    if (partner < size()) exchange(last, partner, whole, {});
  }
  if (call.op == ReduceOp::mean)
    reduce_elements(std::array<const std::byte*, 1>{data}, std::array{data}, call.count, call.dtype,
                    call.op, size());
}

// As one, in a row.
void ProcessCommunicator::all_reduce_in_any_order(const Collective& call,
                                                  std::span<const std::span<std::byte>> parts) {
  row_.resize(std::max(row_.size(), call.count * size_of(call.dtype)));
  std::byte* end = row_.data();
  for (const std::span<std::byte> part : parts) end = std::ranges::copy(part, end).out;
  all_reduce_in_any_order(call, row_.data());
  const std::byte* begin = row_.data();
  for (const std::span<std::byte> part : parts) {
    std::copy_n(begin, part.size(), part.data());
    begin += part.size();
  }
}

void ProcessCommunicator::all_reduce(const Collective& call, std::byte* data) {
  if (in_any_order(call)) return all_reduce_in_any_order(call, data);
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (bytes <= kSmallBytes) {
    Tickets sent;
    for_peers([&](std::uint32_t peer) { sent.push_back(links_->send(peer, {data, bytes})); });
    scratch_.resize(std::max(scratch_.size(), bytes * (size() + 1)));
    reduce_wholes(call, data, scratch_.data() + bytes * size());
    wait(sent);
    std::memcpy(data, scratch_.data() + bytes * size(), bytes);
    return;
  }
  all_reduce_parts(call, std::array{std::span(data, bytes)});
}

void ProcessCommunicator::all_reduce_parts(const Collective& call,
                                           std::span<const std::span<std::byte>> parts) {
  if (in_any_order(call)) return all_reduce_in_any_order(call, parts);
  const std::size_t unit = size_of(call.dtype);
  std::vector<Share> shares;
  for (const std::span<std::byte> part : parts)
    shares.push_back(
        {part.data(), part.data() + piece(part.size(), unit, rank()).first, part.size()});
  reduce_pieces(call, shares);
  note_pending([](auto& pending) { pending->phase = kHandOutPhase; });
  exchange_pieces(parts, unit);
}

// The wholes of all processes, added up into `out`.
void ProcessCommunicator::reduce_wholes(const Collective& call, const std::byte* mine,
                                        std::byte* out) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  scratch_.resize(std::max(scratch_.size(), bytes * size()));
  std::vector<const std::byte*> inputs(size(), mine);
  Tickets received;
  for_peers([&](std::uint32_t peer) {
    std::byte* const place = scratch_.data() + peer * bytes;
    inputs[peer] = place;
    received.push_back(links_->receive(peer, Lane::data, {place, bytes}));
  });
  wait(received);
  reduce_elements(inputs, std::array{out}, call.count, call.dtype, call.op, size());
}

// Part by part, so that the root needs little memory.
void ProcessCommunicator::reduce_to_root(const Collective& call, std::byte* data) {
  const std::uint64_t most = kRootBytes / size_of(call.dtype);
  for (std::uint64_t at = 0; at < call.count; at += most) {
    Collective part = call;
    part.count = std::min(most, call.count - at);
    std::byte* const begin = data + at * size_of(call.dtype);
    if (rank() == call.root)
      reduce_wholes(part, begin, begin);
    else
      wait({links_->send(call.root, {begin, part.count * size_of(call.dtype)})});
  }
}

// My piece of all processes' wholes, added up. Slices of all of them follow one another without a
// stop, so that many small ones take no longer than a large one.
void ProcessCommunicator::reduce_pieces(const Collective& call, std::span<const Share> shares) {
  const std::size_t unit = size_of(call.dtype);
  struct Slice {
    const std::byte* mine;
    std::byte* sum;
    std::size_t bytes;
  };
  std::vector<Slice> slices;
  for (const Share& share : shares) {
    const auto [begin, length] = piece(share.bytes, unit, rank());
    for (std::size_t at = 0; at < length; at += kSliceBytes)
      slices.push_back(
          {share.whole + begin + at, share.sum + at, std::min(kSliceBytes, length - at)});
  }
  // Two slices of every peer: one is on its way while the other is added up.
  std::size_t longest_slice = 0;
  for (const Slice& slice : slices) longest_slice = std::max(longest_slice, slice.bytes);
  longest_slice = (longest_slice + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t in_flight = std::min<std::size_t>(slices.size(), 2);
  scratch_.resize(std::max(scratch_.size(), in_flight * size() * longest_slice));
  const auto place = [&](std::size_t index, std::uint32_t peer) {
    return scratch_.data() + ((index % 2) * size() + peer) * longest_slice;
  };
  std::array<Tickets, 2> received;
  const auto ask = [&](std::size_t index) {
    if (index >= slices.size()) return;
    received[index % 2].clear();
    for_peers([&](std::uint32_t peer) {
      received[index % 2].push_back(
          links_->receive(peer, Lane::data, {place(index, peer), slices[index].bytes}));
    });
  };
  ask(0);
  ask(1);
  Tickets sent;
  for (const Share& share : shares) {
    std::size_t longest = 0;
    for (std::uint32_t peer = 0; peer < size(); ++peer)
      longest = std::max(longest, piece(share.bytes, unit, peer).second);
    for (std::size_t at = 0; at < longest; at += kSliceBytes)
      for_peers([&](std::uint32_t peer) {
        const auto [begin, length] = piece(share.bytes, unit, peer);
        if (at < length)
          sent.push_back(
              links_->send(peer, {share.whole + begin + at, std::min(kSliceBytes, length - at)}));
      });
  }
  std::vector<const std::byte*> inputs(size());
  for (std::size_t index = 0; index < slices.size(); ++index) {
    wait(received[index % 2]);
    const Slice& slice = slices[index];
    for_peers([&](std::uint32_t peer) { inputs[peer] = place(index, peer); });
    inputs[rank()] = slice.mine;
    reduce_elements(inputs, std::array{slice.sum}, slice.bytes / unit, call.dtype, call.op, size());
    ask(index + 2);
  }
  wait(sent);
}

// Every process has its own piece of each whole, and gets the others'.
void ProcessCommunicator::exchange_pieces(std::span<const std::span<std::byte>> wholes,
                                          std::size_t unit) {
  Tickets tickets;
  for (const std::span<std::byte> whole : wholes)
    for_peers([&](std::uint32_t peer) {
      if (const auto [begin, length] = piece(whole.size(), unit, peer); length > 0)
        tickets.push_back(links_->receive(peer, Lane::data, whole.subspan(begin, length)));
    });
  for (const std::span<std::byte> whole : wholes) {
    const auto [begin, length] = piece(whole.size(), unit, rank());
    if (length > 0)
      for_peers([&, begin = begin, length = length](std::uint32_t peer) {
        tickets.push_back(links_->send(peer, whole.subspan(begin, length)));
      });
  }
  wait(tickets);
}

// Large data are dealt out in pieces that the others then exchange, so that the root sends them
// once.
void ProcessCommunicator::broadcast(std::byte* data, std::size_t bytes, std::uint32_t root) {
  const bool small = bytes <= kSmallBytes;
  Tickets tickets;
  if (rank() == root) {
    for_peers([&](std::uint32_t peer) {
      const auto [begin, length] = small ? std::pair{std::size_t{0}, bytes} : piece(bytes, 1, peer);
      tickets.push_back(links_->send(peer, {data + begin, length}));
    });
  } else {
    const auto [begin, length] = small ? std::pair{std::size_t{0}, bytes} : piece(bytes, 1, rank());
    tickets.push_back(links_->receive(root, Lane::data, {data + begin, length}));
  }
  wait(tickets);
  if (!small) exchange_pieces(std::array{std::span(data, bytes)}, 1);
}

}  // namespace penstock::sync
