// storage/range_listing: a long list of objects, whose ranges of keys are listed side by side.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/core/progress.hpp"
#include "src/storage/listing.hpp"
#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// A key between two others, in the middle as far as the bytes of the keys tell.
struct KeyCut {
  std::string key;  ///< above `low` and below `high`
  std::vector<int>
      width;  ///< between `low` and `high`: a fraction, of which the first digit counts most
};

/// Takes keys for fractions whose digits are `symbols`, which are sorted. Without `high` there is no end. Nothing where no key
/// of these symbols lies between both.
[[nodiscard]] std::optional<KeyCut> cut_between(std::string_view low,
                                                const std::optional<std::string_view>& high,
                                                std::string_view symbols);

/// Lists in order what a server has behind the first pages of a list, with up to kAtOnce requests at once. It cuts the range of
/// keys that is left in two, and these again, by keys that it guesses from those that it has seen: each range is listed from
/// such a key on, until the end of its range. A range without keys costs a request.
///
/// Where a range ends, the key that the server lists next must be the first one of the ranges behind. So the list is that of
/// one request after another, or there is none: also where the server sorts otherwise, or objects were added or removed at
/// such a place meanwhile.
class RangeListing {
 public:
  static constexpr std::size_t kAtOnce = 32;
  /// Lists that are not longer are not worth a guess.
  static constexpr std::size_t kPagesBefore = 4;
  using Fetch = std::function<Result<ListingPage>(const ListingPlace&)>;

  /// `prefix` is what all keys begin with.
  RangeListing(std::string_view prefix, const Fetch& fetch, int attempts,
               core::ProgressCounter& progress)
      : prefix_(prefix), fetch_(fetch), attempts_(attempts), progress_(progress) {}

  /// Tells of the next of the first pages.
  void see(const ListingPage& page);
  /// What lies behind the pages that were seen, range by range. Nothing where that cannot be had so: the pages must be asked for in order.
  ///
  /// Errors  what the callback of with_progress() throws
  [[nodiscard]] std::optional<std::vector<std::vector<ListedObject>>> rest(
      const std::string& token) const;

 private:
  class Ranges;
  std::string_view prefix_;
  const Fetch& fetch_;
  int attempts_;
  core::ProgressCounter& progress_;
  std::size_t pages_ = 0;
  std::string last_;
  bool is_sorted_ = true;
  std::string symbols_;
};

}  // namespace penstock::storage
