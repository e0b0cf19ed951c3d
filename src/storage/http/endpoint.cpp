#include "src/storage/http/endpoint.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

namespace {

// What may be a password is shown in no message.
std::string without_user(std::string endpoint) {
  const std::size_t end = endpoint.rfind('@');
  if (end == endpoint.npos) return endpoint;
  const std::size_t mark = endpoint.find("://");
  const std::size_t first = mark < end ? mark + 3 : 0;
  return endpoint.replace(first, end - first, "***");
}

std::string require_without(std::string_view characters, std::string endpoint,
                            std::string_view settings, std::string_view example) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  const std::size_t host = endpoint.find("://") + 3;
  if (http && endpoint.size() > host && endpoint[host] != '/' &&
      endpoint.find_first_of(characters, host) == endpoint.npos)
    return endpoint;
  const bool has_user = endpoint.find('@') != endpoint.npos;
  throw Error(fmt::format("expected an endpoint such as {}{}, found '{}'; check {}", example,
                          has_user ? ", without a user name and a password" : "",
                          without_user(std::move(endpoint)), settings));
}

}  // namespace

std::string require_endpoint(std::string endpoint, std::string_view settings) {
  return require_without("/?#@", std::move(endpoint), settings, "https://s3.example.com:9000");
}

std::string require_endpoint_or_path(std::string endpoint, std::string_view settings,
                                     std::string_view example) {
  return require_without("?#@\\ \t\r\n", std::move(endpoint), settings, example);
}

std::string host_of(std::string_view endpoint) {
  const std::string_view usual = endpoint.starts_with("http://") ? ":80" : ":443";
  endpoint.remove_prefix(endpoint.find("://") + 3);
  if (endpoint.ends_with(usual)) endpoint.remove_suffix(usual.size());
  return std::string(endpoint);
}

std::string origin_of(std::string_view url) {
  const std::size_t mark = url.find("://");
  if (mark == url.npos) return {};
  std::string origin(url.substr(0, url.find_first_of("/?#", mark + 3)));
  for (char& c : origin) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view scheme = std::string_view(origin).substr(0, mark);
  if ((scheme != "http" && scheme != "https") || origin.size() == mark + 3) return {};
  const bool is_plain = std::ranges::all_of(std::string_view(origin).substr(mark + 3), [](char c) {
    return c > ' ' && c < 0x7f && c != '@' && c != '\\';
  });
  if (!is_plain) return {};
  const std::size_t behind_host = std::max(origin.find(']', mark) + 1, mark + 3);  // of IPv6
  if (origin.find(':', behind_host) == origin.npos) origin += scheme == "http" ? ":80" : ":443";
  return origin;
}

}  // namespace penstock::storage
