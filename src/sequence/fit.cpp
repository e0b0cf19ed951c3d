#include "src/sequence/fit.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace penstock::sequence {

namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kWord = 64;

// A set of numbers that finds the least one from a number on.
class BitSet {
 public:
  BitSet(std::vector<std::vector<std::uint64_t>>& levels, std::size_t size) : levels_(levels) {
    levels_.clear();
    do {
      size = (size + kWord - 1) / kWord;
      levels_.emplace_back(size);
    } while (size > 1);
  }
  void insert(std::size_t at) noexcept {
    for (auto& level : levels_) {
      level[at / kWord] |= std::uint64_t{1} << at % kWord;
      at /= kWord;
    }
  }
  void erase(std::size_t at) noexcept {
    for (auto& level : levels_) {
      if ((level[at / kWord] &= ~(std::uint64_t{1} << at % kWord)) != 0) return;
      at /= kWord;
    }
  }
  // The least member that is `from` or more; kNone if there is none.
  [[nodiscard]] std::uint32_t find(std::size_t from) const noexcept {
    for (std::size_t height = 0; height < levels_.size(); ++height, from = from / kWord + 1) {
      if (from / kWord >= levels_[height].size()) return kNone;
      const std::uint64_t word = levels_[height][from / kWord] >> from % kWord;
      if (word == 0) continue;
      from += static_cast<std::size_t>(std::countr_zero(word));
      while (height-- > 0)
        from = from * kWord + static_cast<std::size_t>(std::countr_zero(levels_[height][from]));
      return static_cast<std::uint32_t>(from);
    }
    return kNone;
  }

 private:
  std::vector<std::vector<std::uint64_t>>& levels_;
};

// The lists of rows with the same free room, by a table of all rooms.
class TabledRooms {
 public:
  TabledRooms(std::vector<std::uint32_t>& heads, std::vector<std::vector<std::uint64_t>>& bits,
              std::size_t capacity)
      : heads_(heads), open_(bits, capacity + 1) {
    heads_.assign(capacity + 1, kNone);
  }
  // The least room that a row has and that is enough.
  [[nodiscard]] std::uint32_t find(std::uint32_t length) const noexcept {
    return open_.find(length);
  }
  [[nodiscard]] std::uint32_t head(std::uint32_t room) const noexcept { return heads_[room]; }
  void set_head(std::uint32_t room, std::uint32_t row) noexcept {
    if (row == kNone) {
      open_.erase(room);
    } else if (heads_[room] == kNone) {
      open_.insert(room);
    }
    heads_[room] = row;
  }

 private:
  std::vector<std::uint32_t>& heads_;
  BitSet open_;
};

// The same for rows so long that a table would be larger than all else.
class MappedRooms {
 public:
  [[nodiscard]] std::uint32_t find(std::uint32_t length) const {
    const auto found = heads_.lower_bound(length);
    return found == heads_.end() ? kNone : found->first;
  }
  [[nodiscard]] std::uint32_t head(std::uint32_t room) const {
    const auto found = heads_.find(room);
    return found == heads_.end() ? kNone : found->second;
  }
  void set_head(std::uint32_t room, std::uint32_t row) {
    if (row == kNone) {
      heads_.erase(room);
    } else {
      heads_[room] = row;
    }
  }

 private:
  std::map<std::uint32_t, std::uint32_t> heads_;
};

}  // namespace

// The longest first, equal ones in their order; by counting, where there are not far more lengths than documents.
void BestFit::sort(std::span<const std::uint32_t> lengths, std::uint32_t capacity) {
  sorted_.resize(lengths.size());
  if (capacity > kTabledRoom) {
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    std::ranges::stable_sort(sorted_, std::greater(), [&](std::uint32_t i) { return lengths[i]; });
    return;
  }
  counts_.assign(std::size_t{capacity} + 2, 0);
  for (const std::uint32_t length : lengths) ++counts_[capacity - length];
  std::uint32_t before = 0;
  for (std::uint32_t& count : counts_) before += std::exchange(count, before);
  for (std::uint32_t i = 0; i < lengths.size(); ++i) sorted_[counts_[capacity - lengths[i]]++] = i;
}

template <class Rooms>
std::uint32_t BestFit::fit(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                           std::span<std::uint32_t> rows, Rooms&& rooms) {
  next_.clear();
  for (const std::uint32_t i : sorted_) {
    const std::uint32_t length = lengths[i];
    if (length == 0) break;
    std::uint32_t room = rooms.find(length);
    std::uint32_t row = 0;
    if (room == kNone) {
      room = capacity;
      row = static_cast<std::uint32_t>(next_.size());
      next_.push_back(kNone);
    } else {
      row = rooms.head(room);
      rooms.set_head(room, next_[row]);
    }
    rows[i] = row;
    const std::uint32_t left = room - length;
    if (left == 0) continue;
    next_[row] = rooms.head(left);
    rooms.set_head(left, row);
  }
  return static_cast<std::uint32_t>(next_.size());
}

std::uint32_t BestFit::operator()(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                                  std::span<std::uint32_t> rows) {
  sort(lengths, capacity);
  if (capacity > kTabledRoom) return fit(lengths, capacity, rows, MappedRooms());
  return fit(lengths, capacity, rows, TabledRooms(heads_, bits_, capacity));
}

std::uint32_t FirstFit::operator()(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                                   std::span<std::uint32_t> rows) {
  const std::size_t leaves = std::bit_ceil(std::max<std::size_t>(lengths.size(), 1));
  most_.assign(2 * leaves, capacity);
  std::uint32_t opened = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) continue;
    std::size_t node = 1;
    while (node < leaves) node = 2 * node + (most_[2 * node] >= lengths[i] ? 0 : 1);
    rows[i] = static_cast<std::uint32_t>(node - leaves);
    opened = std::max(opened, rows[i] + 1);
    most_[node] -= lengths[i];
    while (node /= 2) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }
  return opened;
}

}  // namespace penstock::sequence
