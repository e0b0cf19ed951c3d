#include "testing/simulated_nccl/communicator.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "testing/simulated_cuda/lock.hpp"
#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/launch.hpp"
#include "testing/simulated_nccl/library.hpp"

namespace penstock::simulated_nccl {

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Segment> where, int own_rank, int on_device, bool blocks,
                           std::uint64_t random_seed)
    : segment(std::move(where)),
      rank(own_rank),
      device(on_device),
      blocking(blocks),
      seed(random_seed),
      sends(static_cast<std::size_t>(segment->ranks())),
      receives(sends.size()),
      forgotten(sends.size() + 1),
      dead_(sends.size()) {}

std::uint64_t Communicator::draw(std::uint64_t number, std::uint64_t below) const {
  return mixed(seed ^ mixed(static_cast<std::uint64_t>(rank) * 0x10001 + mixed(number))) % below;
}

bool Communicator::join() {
  Rank& place = own();
  if (place.claimed.exchange(1) != 0) return false;
  place.process = ::getpid();
  place.process_start = start_of(place.process);
  place.machine = this_machine();
  place.device = device;
  place.state = Rank::joined;
  return true;
}

void Communicator::fail(ncclResult_t why) {
  int none = ncclSuccess;
  error.compare_exchange_strong(none, why);
}

ncclResult_t Communicator::ask(bool tell_deaths) {
  const auto says = [&] { return static_cast<ncclResult_t>(error.load()); };
  if (says() == ncclSuccess && simulated_cuda::is_lost(device)) fail(ncclUnhandledCudaError);
  if (says() != ncclSuccess) return says();
  if (tell_deaths)
    for (int other = 0; other < size(); ++other)
      if (own().state == Rank::joined && segment->rank(other).state == Rank::joined &&
          is_dead(other)) {
        Library::get().say(fmt::format("the connection to rank {} was closed", other));
        fail(ncclRemoteError);
        return says();
      }
  bool done = true;
  switch (phase) {
    case Phase::ready:
    case Phase::finalized:
      return ncclSuccess;
    case Phase::joining:
      done = have_all_come();
      break;
    case Phase::splitting:
      done = is_split_over(tell_deaths);
      break;
    case Phase::finalizing:  // which waits for this rank's operations, not for the other ranks
      done = pending == 0;
      break;
    case Phase::launching:
      done = --polls_left_ <= 0;
      if (done) {
        phase = Phase::ready;
        start(std::exchange(later_, nullptr));
      }
      break;
  }
  if (says() != ncclSuccess) return says();
  if (!done) return ncclInProgress;
  phase = phase == Phase::finalizing ? Phase::finalized : Phase::ready;
  return ncclSuccess;
}

bool Communicator::have_all_come() {
  for (int other = 0; other < size(); ++other)
    if (segment->rank(other).state == Rank::absent) return false;
  for (int other = 0; other < size(); ++other) {
    const Rank& place = segment->rank(other);
    if (other == rank || place.machine != own().machine || place.device != device) continue;
    Library::get().say(
        fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}", rank,
                    other, device));
    fail(ncclInvalidUsage);
  }
  Library::get().forget_id(segment->address().nonce);
  return true;
}

void Communicator::begin_split(int color, int key, bool child_blocks, ncclComm_t* result) {
  split_ = {split_.number + 1, color, key, child_blocks, result, nullptr, nullptr};
  Rank::Split& said = own().splits[split_.number % 2];
  said.color = color;
  said.key = key;
  said.called = split_.number;
  *result = nullptr;
  phase = Phase::splitting;
}

// Two places are enough for what ranks say: who has finished one split knows that all have read the one before.
bool Communicator::is_split_over(bool tell_deaths) {
  if (!split_.child) {
    std::vector<std::pair<int, int>> members;  // key, rank
    const auto said_by = [&](int other) -> Rank::Split& {
      return segment->rank(other).splits[split_.number % 2];
    };
    for (int other = 0; other < size(); ++other) {
      if (said_by(other).called != split_.number) return false;
      if (said_by(other).color == split_.color) members.emplace_back(said_by(other).key, other);
    }
    if (split_.color == NCCL_SPLIT_NOCOLOR) return true;
    std::ranges::sort(members);
    Rank::Split& first = said_by(members[0].second);
    if (members[0].second == rank) {
      split_.segment = Library::get().make_segment();
      const Address& address = split_.segment->address();
      first.nonce = address.nonce;
      first.process = address.process;
      first.file = address.file;
      first.made = split_.number;
    } else {
      if (first.made != split_.number) return false;
      split_.segment = Library::get().open_segment({first.nonce, first.process, first.file});
      if (!split_.segment) return false;  // the process is gone
    }
    (void)split_.segment->take_ranks(static_cast<int>(members.size()));
    const auto own_place = std::ranges::find(members, std::pair{split_.key, rank});
    split_.child = std::make_shared<Communicator>(split_.segment,
                                                  static_cast<int>(own_place - members.begin()),
                                                  device, split_.blocking, seed);
    (void)split_.child->join();
  }
  const ncclResult_t state = split_.child->ask(tell_deaths);
  if (state == ncclInProgress) return false;
  if (state != ncclSuccess) {
    fail(state);
    return true;
  }
  *split_.result = Library::get().add(std::exchange(split_.child, nullptr));
  split_.segment.reset();
  return true;
}

void Communicator::launch_later(std::shared_ptr<Launch> launch, int polls) {
  later_ = std::move(launch);
  polls_left_ = polls;
  phase = Phase::launching;
}

bool Communicator::is_dead(int other) {
  constexpr std::int64_t kPauseNs = 20'000'000;
  if (const std::int64_t now = simulated_cuda::now_ns(); now > deaths_looked_for_ns_ + kPauseNs) {
    deaths_looked_for_ns_ = now;
    for (int one = 0; one < size(); ++one) {
      const Rank& place = segment->rank(one);
      dead_[static_cast<std::size_t>(one)] =
          place.state != Rank::absent && start_of(place.process) != place.process_start;
    }
  }
  return dead_[static_cast<std::size_t>(other)];
}

void Communicator::abort() {
  aborted = true;
  later_.reset();
  if (split_.child) split_.child->abort();
  destroy();
}

void Communicator::destroy() { own().state = Rank::left; }

}  // namespace penstock::simulated_nccl
