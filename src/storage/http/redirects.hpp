// storage/http/redirects: requests that are sent on to other URLs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <penstock/core/error.hpp>

#include "src/storage/http/client.hpp"

namespace penstock::storage {

/// The answer at the end of all redirects.
struct HttpReply {
  HttpResponse response;
  std::string url;  ///< that gave it
};

/// Sends a request, whose answer is not followed. What a server may know alone, such as a token, is added here, by the URL.
/// A Fault says which server could not be reached.
using SendHop = std::function<Result<HttpResponse>(const HttpRequest& hop)>;

/// Sends a request, and follows up to five redirects, none of them from https to http. Any other status is a reply.
///
/// Errors  Fault  of `send`, and of redirects that lead nowhere; names `file`
[[nodiscard]] Result<HttpReply> follow_redirects(HttpRequest request, const std::string& file,
                                                 const SendHop& send);

/// The URL that an answer at `url` leads to by its header Location; empty where it is none.
[[nodiscard]] std::string redirected_url(std::string_view url, std::string_view location);

/// Whether a redirect from one URL to the other leads from https to http.
[[nodiscard]] bool is_weaker(std::string_view from, std::string_view to);

}  // namespace penstock::storage
