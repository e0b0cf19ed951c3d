#include "src/storage/http/redirects.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "src/storage/http/endpoint.hpp"

namespace penstock::storage {

namespace {

bool is_redirect(long status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

Result<HttpReply> follow_redirects(HttpRequest request, const std::string& file,
                                   const SendHop& send) {
  constexpr int kMostRedirects = 5;
  for (int redirects = 0;; ++redirects) {
    Result<HttpResponse> response = send(request);
    if (!response) {
      response.fault().file = file;
      return std::move(response.fault());
    }
    if (!is_redirect(response->status))
      return HttpReply{.response = std::move(*response), .url = std::move(request.url)};
    std::string next = redirected_url(request.url, response->header("location"));
    const bool leaves_https = is_weaker(request.url, next);
    if (next.empty() || leaves_https || redirects == kMostRedirects)
      return Fault{.reason = fmt::format(
                       "{} answered with a redirect {}", origin_of(request.url),
                       next.empty()   ? "to no URL"
                       : leaves_https ? "from https to http, which is not followed"
                                      : fmt::format("again, after {} of them", kMostRedirects)),
                   .file = file};
    request.url = std::move(next);
  }
}

std::string redirected_url(std::string_view url, std::string_view location) {
  const bool is_plain = !location.empty() && std::ranges::all_of(location, [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '\\';
  });
  if (!is_plain) return {};
  location = location.substr(0, location.find('#'));
  if (location.empty()) return {};
  const std::string_view path = url.substr(0, url.find_first_of("?#"));
  const std::size_t behind_host = std::min(path.find('/', path.find("://") + 3), path.size());
  std::string next;
  if (location.starts_with("//")) {
    next = fmt::format("{}{}", url.substr(0, url.find("//")), location);
  } else if (location.starts_with('/')) {
    next = fmt::format("{}{}", path.substr(0, behind_host), location);
  } else if (location.starts_with('?')) {
    next = fmt::format("{}{}", path, location);
  } else if (location.substr(0, location.find_first_of("/?")).find(':') == location.npos) {
    // A name beside that of the URL.
    const std::size_t end = std::max(path.rfind('/'), behind_host);
    next = fmt::format("{}/{}", path.substr(0, end), location);
  } else {
    next = location;
  }
  return origin_of(next).empty() ? std::string() : next;
}

bool is_weaker(std::string_view from, std::string_view to) {
  return origin_of(from).starts_with("https:") && origin_of(to).starts_with("http:");
}

}  // namespace penstock::storage
