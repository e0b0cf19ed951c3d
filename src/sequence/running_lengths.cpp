#include "src/sequence/running_lengths.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <penstock/core/error.hpp>

#include "src/core/start_thread.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

RunningLengths::RunningLengths(std::uint64_t documents, ReadLengths read)
    : documents_(documents), read_(std::move(read)), sums_((documents + kGroup - 1) / kGroup + 1) {
  std::atomic<std::uint64_t> hash = 0;
  const std::size_t groups = sums_.size() - 1;
  const auto read_range = [&](const auto& range) {
    std::array<std::uint64_t, kGroup> lengths{};
    std::uint64_t hash_of_range = 0;
    for (std::size_t group = range.begin(); group != range.end(); ++group) {
      const std::uint64_t first = group * kGroup;
      const auto count = static_cast<std::size_t>(std::min(kGroup, documents_ - first));
      read_(first, std::span(lengths).first(count));
      hash_of_range += hash_lengths(first, std::span(lengths).first(count));
      sums_[group + 1] = std::accumulate(
          lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(count), std::uint64_t{0});
    }
    hash += hash_of_range;
  };
  core::run_on_tbb_threads("reading lengths", [&] {
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, groups, 256), read_range);
  });
  hash_ = hash;
  for (std::size_t group = 0; group < groups; ++group)
    if ((sums_[group + 1] += sums_[group]) > INT64_MAX)  // none is above 2^50
      throw Error("the documents have more than 2^63 - 1 tokens in all: their lengths are wrong");
}

RunningLengths::Place RunningLengths::find(std::uint64_t position) const {
  const auto group =
      static_cast<std::uint64_t>(std::ranges::upper_bound(sums_, position) - sums_.begin()) - 1;
  std::uint64_t offset = position - sums_[group];
  const std::uint64_t first = group * kGroup;
  std::array<std::uint64_t, kGroup> lengths{};
  const auto count = static_cast<std::size_t>(std::min(kGroup, documents_ - first));
  read_(first, std::span(lengths).first(count));
  std::size_t k = 0;
  while (k + 1 < count && offset >= lengths[k]) offset -= lengths[k++];
  return {first + k, offset};
}

}  // namespace penstock::sequence
