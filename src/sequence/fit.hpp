// sequence/fit: which row each of a few thousand lengths goes into.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::sequence {

inline constexpr std::uint32_t kTabledRoom = 1U << 20;

/// Rows of `capacity` for these lengths, each at most that; 0 stands for what goes into no row. Returns the number of
/// rows, which are numbered as they are opened, and writes the row of each length.
///
/// The longest first (equal ones in their order), each into the row with the least room that is enough, and of those the
/// one that was touched last. Linear in the number of lengths for rows of up to kTabledRoom, whose rooms are a table.
class BestFit {
 public:
  std::uint32_t operator()(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                           std::span<std::uint32_t> rows);

 private:
  void sort(std::span<const std::uint32_t> lengths, std::uint32_t capacity);
  template <class Rooms>
  std::uint32_t fit(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                    std::span<std::uint32_t> rows, Rooms&& rooms);

  std::vector<std::uint32_t> sorted_;  // indexes of the lengths, the longest first
  std::vector<std::uint32_t> counts_;  // by length
  std::vector<std::uint32_t>
      next_;  // by row: the one before it in the list of rows with the same room
  std::vector<std::uint32_t> heads_;  // by free room: the row that was touched last
  std::vector<std::vector<std::uint64_t>>
      bits_;  // which rooms there are; above the first level, in which words
};

/// In their order, each into the first row that has room for it.
class FirstFit {
 public:
  std::uint32_t operator()(std::span<const std::uint32_t> lengths, std::uint32_t capacity,
                           std::span<std::uint32_t> rows);

 private:
  std::vector<std::uint32_t> most_;  // a binary tree over the rows: the most room below each node
};

}  // namespace penstock::sequence
