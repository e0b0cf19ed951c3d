// storage/listing: lists of objects that a server gives in pages.
#pragma once

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

/// The server that gives the list, for messages: "cannot list PREFIX: ENDPOINT gives ...: is it AN S3 SERVER?"
struct ListingServer {
  std::string_view endpoint;
  std::string_view kind;
};

/// Gives `each` the entries of all pages, until it returns false. `fetch` takes what asks for a page, first an empty text;
/// where it fails and may pass, it is called up to `attempts` times.
///
/// Errors  Error  a page cannot be had; an entry whose key does not begin with prefix.key; pages without an end
void list_pages(const ObjectName& prefix, const ListingServer& server, int attempts,
                const std::function<Result<ListingPage>(const std::string& token)>& fetch,
                const std::function<bool(ListedObject&&)>& each);

}  // namespace penstock::storage
