#include "src/plan/chunks.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/plan/branches.hpp"
#include "src/plan/describe.hpp"
#include "src/plan/operations.hpp"
#include "src/plan/split.hpp"

namespace penstock::plan {

namespace {

// The chunk of one source that records were found in last.
class ChunkFinder {
 public:
  explicit ChunkFinder(std::vector<std::uint64_t> begins) : begins_(std::move(begins)) {}

  /// Which chunk a record is in.
  [[nodiscard]] std::size_t find(std::uint64_t number) {
    const bool is_same = behind_ != 0 && number >= begins_[behind_ - 1] &&
                         (behind_ == begins_.size() || number < begins_[behind_]);
    if (!is_same)
      behind_ =
          static_cast<std::size_t>(std::ranges::upper_bound(begins_, number) - begins_.begin());
    return behind_;
  }

 private:
  std::vector<std::uint64_t> begins_;
  std::size_t behind_ = 0;  // one behind that chunk; 0: none yet, or the source has no chunks
};

void check_chunks(const Source& source, const std::vector<std::uint64_t>& begins) {
  if (begins.empty()) return;
  const bool ascends = std::ranges::adjacent_find(begins, std::greater_equal<>()) == begins.end();
  if (begins.front() != 0 || !ascends || begins.back() >= source.size())
    throw std::logic_error(fmt::format(
        "{}: its chunks() must begin at ascending records, the first of them at 0, below {}",
        describe(source), source.size()));
}

}  // namespace

std::vector<std::uint64_t> find_chunks(const Plan& plan) {
  const std::uint64_t count = count_fixed_samples(plan, ShuffleChunks::kName);
  std::map<const Source*, ChunkFinder> finders;
  bool any = false;
  for (const Branch& branch : branches_of(plan)) {
    std::vector<std::uint64_t> begins = branch.source->chunks();
    check_chunks(*branch.source, begins);
    any = any || !begins.empty();
    finders.try_emplace(branch.source.get(), std::move(begins));
  }
  if (!any && count != 0)
    throw std::invalid_argument(fmt::format(
        "{}: the records of {} are in no chunks, and cost the same in any order: leave it out, and "
        "shuffle",
        ShuffleChunks::kName, describe(*branches_of(plan).front().source)));
  std::vector<std::uint64_t> begins;
  const Source* last = nullptr;
  ChunkFinder* finder = nullptr;
  std::size_t chunk = 0;
  std::uint64_t position = 0;
  see_fixed_samples(plan, ShuffleChunks::kName, [&](const Source& source, std::uint64_t number) {
    const bool is_other = &source != last;
    if (is_other) finder = &finders.at(&source);
    last = &source;
    const std::size_t found = finder->find(number);
    if (is_other || found != chunk) begins.push_back(position);
    chunk = found;
    ++position;
  });
  return begins;
}

}  // namespace penstock::plan
