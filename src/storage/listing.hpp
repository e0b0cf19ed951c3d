// storage/listing: lists of objects that a server gives in pages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>

#include "src/storage/object_store.hpp"

namespace penstock::storage {

struct ListingPage {
  std::vector<ListedObject> entries;
  std::string next;  ///< what asks for the next page; empty on the last one
};

/// What asks for a page.
struct ListingPlace {
  std::string token{};  ///< the `next` of the page before; empty for the first page
  std::string after{};  ///< where not empty, the first page begins behind this key
};

/// The server that gives the list, for messages: "cannot list PREFIX: ENDPOINT gives ...: is it AN S3 SERVER?"
struct ListingServer {
  std::string_view endpoint;
  std::string_view kind;
};

/// How the pages of a list may be asked for.
enum class ListingOrder : std::uint8_t {
  one_by_one,  ///< each by the one before; ListingPlace::after is not used
  any,         ///< by keys, too: the entries are sorted, and the caller wants all of them
};

/// Gives `each` the entries of all pages in order, until it returns false. Where `fetch` fails and that may pass, it is called
/// up to `attempts` times; with ListingOrder::any by several threads at once. Tells with_progress() how far it is.
///
/// Errors  Error  a page cannot be had; an entry whose key does not begin with prefix.key; pages without an end
void list_pages(const ObjectName& prefix, const ListingServer& server, int attempts,
                const std::function<Result<ListingPage>(const ListingPlace& place)>& fetch,
                const std::function<bool(ListedObject&&)>& each,
                ListingOrder order = ListingOrder::one_by_one);

}  // namespace penstock::storage
