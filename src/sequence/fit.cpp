#include "src/sequence/fit.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
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

}  // namespace

// By counting: the longest first, equal ones in their order.
void BestFit::sort(std::span<const std::uint32_t> lengths, std::uint32_t capacity) {
  counts_.assign(std::size_t{capacity} + 2, 0);
  for (const std::uint32_t length : lengths) ++counts_[capacity - length];
  std::uint32_t before = 0;
  for (std::uint32_t& count : counts_) before += std::exchange(count, before);
  sorted_.resize(lengths.size());
  for (std::uint32_t i = 0; i < lengths.size(); ++i) sorted_[counts_[capacity - lengths[i]]++] = i;
}

std::uint32_t BestFit::operator()(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                                  std::span<std::uint32_t> rows) {
  sort(lengths, capacity);
  heads_.assign(std::size_t{capacity} + 1, kNone);
  next_.clear();
  BitSet open(bits_, std::size_t{capacity} + 1);
  for (const std::uint32_t i : sorted_) {
    const std::uint32_t length = lengths[i];
    if (length == 0) break;
    std::uint32_t room = open.find(length);
    std::uint32_t row = 0;
    if (room == kNone) {
      room = capacity;
      row = static_cast<std::uint32_t>(next_.size());
      next_.push_back(kNone);
    } else {
      row = heads_[room];
      heads_[room] = next_[row];
      if (heads_[room] == kNone) open.erase(room);
    }
    rows[i] = row;
    const std::uint32_t left = room - length;
    if (left == 0) continue;
    if (heads_[left] == kNone) open.insert(left);
    next_[row] = heads_[left];
    heads_[left] = row;
  }
  return static_cast<std::uint32_t>(next_.size());
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
