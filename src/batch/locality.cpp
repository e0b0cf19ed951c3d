#include "src/batch/locality.hpp"

#include <algorithm>
#include <utility>

namespace penstock::batch {

namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA'14): a bijection in
// which each bit of the result depends on all bits of x.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The replicas of a machine, in turn.
class Turns {
 public:
  explicit Turns(std::vector<std::uint32_t> replicas) : replicas_(std::move(replicas)) {}

  // The next one that has room, which has less room then. There is one.
  std::uint32_t take(std::span<std::uint64_t> room) {
    while (true) {
      if (next_ == replicas_.size()) next_ = 0;
      const std::uint32_t replica = replicas_[next_];
      if (room[replica] > 0) {
        --room[replica];
        ++next_;
        return replica;
      }
      replicas_.erase(replicas_.begin() + static_cast<std::ptrdiff_t>(next_));
    }
  }

 private:
  std::vector<std::uint32_t> replicas_;
  std::size_t next_ = 0;
};

}  // namespace

Locality::Locality(std::span<const std::uint64_t> machines)
    : machines_(machines.begin(), machines.end()) {
  std::ranges::sort(machines_);
  const auto repeated = std::ranges::unique(machines_);
  machines_.erase(repeated.begin(), repeated.end());
  for (const std::uint64_t machine : machines_) keys_.push_back(mixed(machine));
  replicas_.resize(machines_.size());
  for (std::uint32_t replica = 0; replica < machines.size(); ++replica) {
    const auto place = std::ranges::lower_bound(machines_, machines[replica]) - machines_.begin();
    replicas_[static_cast<std::size_t>(place)].push_back(replica);
  }
}

Locality::Home Locality::best_of(const SampleId& sample,
                                 std::span<const std::uint64_t> room) const noexcept {
  // Not the epoch or the draw: what is read is the same record.
  const std::uint64_t key = mixed(mixed(sample.number) + sample.source);
  Home best;
  bool any = false;
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    const std::uint64_t hash = mixed(key ^ keys_[place]);
    if ((any && hash <= best.hash) || (!room.empty() && room[place] == 0)) continue;
    best = {.place = place, .hash = hash};
    any = true;
  }
  return best;
}

std::vector<std::uint64_t> Locality::rows(std::span<const SampleId> samples,
                                          std::span<const Slice> slices) const {
  std::vector<std::uint64_t> room;  // of each replica
  room.reserve(slices.size());
  for (const Slice& slice : slices) room.push_back(slice.samples);

  std::vector<Home> homes;  // of each row; in the end, where it goes
  homes.reserve(samples.size());
  std::vector<std::vector<std::uint64_t>> at_home(machines_.size());
  for (std::uint64_t row = 0; row < samples.size(); ++row) {
    homes.push_back(best_of(samples[row], {}));
    at_home[homes.back().place].push_back(row);
  }

  // The same samples stay in every batch, as far as possible, so that a cache finds them again.
  const auto comes_first = [&](std::uint64_t a, std::uint64_t b) {
    return homes[a].hash != homes[b].hash ? homes[a].hash > homes[b].hash : a < b;
  };
  std::vector<std::uint64_t> left(machines_.size(), 0);
  std::vector<std::uint64_t> others;
  for (std::size_t place = 0; place < machines_.size(); ++place) {
    for (const std::uint32_t replica : replicas_[place]) left[place] += room[replica];
    std::vector<std::uint64_t>& rows = at_home[place];
    const std::uint64_t stay = std::min<std::uint64_t>(left[place], rows.size());
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(stay);
    if (end != rows.end()) std::ranges::nth_element(rows, end, comes_first);
    others.insert(others.end(), end, rows.end());
    left[place] -= stay;
  }
  std::ranges::sort(others, comes_first);
  for (const std::uint64_t row : others) {
    homes[row] = best_of(samples[row], left);
    --left[homes[row].place];
  }

  std::vector<Turns> turns(replicas_.begin(), replicas_.end());
  std::vector<std::uint32_t> replica_of(samples.size());
  for (std::uint64_t row = 0; row < samples.size(); ++row)
    replica_of[row] = turns[homes[row].place].take(room);

  std::vector<std::uint64_t> next;  // of each replica, where its next row goes
  std::uint64_t first = 0;
  for (const Slice& slice : slices) {
    next.push_back(first);
    first += slice.samples;
  }
  std::vector<std::uint64_t> rows(samples.size());
  for (std::uint64_t row = 0; row < samples.size(); ++row) rows[next[replica_of[row]]++] = row;
  return rows;
}

}  // namespace penstock::batch
