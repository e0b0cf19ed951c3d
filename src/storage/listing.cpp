#include "src/storage/listing.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/core/progress.hpp"
#include "src/storage/range_listing.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

void list_pages(const ObjectName& prefix, const ListingServer& server, int attempts,
                const std::function<Result<ListingPage>(const ListingPlace& place)>& fetch,
                const std::function<bool(ListedObject&&)>& each, ListingOrder order) {
  constexpr int kMostEmptyPages = 100;
  core::ProgressCounter progress(fmt::format("listing {}", prefix.url()), "objects");
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("cannot list {}: {} gives {}: is it {}?", prefix.url(), server.endpoint,
                            what, server.kind));
  };
  const auto require_prefix = [&](const ListedObject& entry) {
    if (!entry.key.starts_with(prefix.key))
      refuse(fmt::format("'{}', which does not begin so", core::printable(entry.key, 200)));
  };
  RangeListing ranges(prefix.key, fetch, attempts, progress);
  ListingPlace place;
  std::unordered_set<std::string> seen;
  int empty_pages = 0;
  for (std::size_t pages = 0; pages == 0 || !place.token.empty(); ++pages) {
    if (order == ListingOrder::any && pages == RangeListing::kPagesBefore) {
      if (auto rest = ranges.rest(place.token)) {
        for (std::vector<ListedObject>& range : *rest) {
          for (ListedObject& entry : range)
            if (!each(std::move(entry))) return;
          range = {};
        }
        return;
      }
    }
    auto page = with_retries([&] { return fetch(place); }, attempts);
    if (!page) throw Error(fmt::format("cannot list {}: {}", prefix.url(), page.fault().reason));
    std::ranges::for_each(page->entries, require_prefix);
    if (order == ListingOrder::any && pages < RangeListing::kPagesBefore) ranges.see(*page);
    for (ListedObject& entry : page->entries)
      if (!each(std::move(entry))) return;
    progress.add(page->entries.size());
    place.token = std::move(page->next);
    if (!place.token.empty() && !seen.insert(place.token).second)
      refuse("the same page of its list again");
    empty_pages = page->entries.empty() ? empty_pages + 1 : 0;
    if (empty_pages == kMostEmptyPages) refuse(fmt::format("{} empty pages", empty_pages));
  }
}

}  // namespace penstock::storage
