#include "src/storage/listing.hpp"

#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/storage/retry.hpp"

namespace penstock::storage {

void list_pages(const ObjectName& prefix, const ListingServer& server, int attempts,
                const std::function<Result<ListingPage>(const std::string& token)>& fetch,
                const std::function<bool(ListedObject&&)>& each) {
  constexpr int kMostEmptyPages = 100;
  std::string token;
  std::unordered_set<std::string> seen;
  int empty_pages = 0;
  do {
    auto page = with_retries([&] { return fetch(token); }, attempts);
    if (!page) throw Error(fmt::format("cannot list {}: {}", prefix.url(), page.fault().reason));
    const auto refuse = [&](const std::string& what) {
      throw Error(fmt::format("cannot list {}: {} gives {}: is it {}?", prefix.url(),
                              server.endpoint, what, server.kind));
    };
    for (ListedObject& entry : page->entries) {
      if (!entry.key.starts_with(prefix.key))
        refuse(fmt::format("'{}', which does not begin so", core::printable(entry.key, 200)));
      if (!each(std::move(entry))) return;
    }
    token = std::move(page->next);
    if (!token.empty() && !seen.insert(token).second) refuse("the same page of its list again");
    empty_pages = page->entries.empty() ? empty_pages + 1 : 0;
    if (empty_pages == kMostEmptyPages) refuse(fmt::format("{} empty pages", empty_pages));
  } while (!token.empty());
}

}  // namespace penstock::storage
