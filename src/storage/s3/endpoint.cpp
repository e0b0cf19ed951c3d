#include "src/storage/s3/endpoint.hpp"

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

std::string require_endpoint(std::string endpoint, std::string_view settings) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  const std::size_t host = endpoint.find("://") + 3;
  if (http && endpoint.size() > host && endpoint.find_first_of("/?#@", host) == endpoint.npos)
    return endpoint;
  throw Error(
      fmt::format("expected an endpoint such as https://s3.example.com:9000, found '{}'; check {}",
                  endpoint, settings));
}

std::string host_of(std::string_view endpoint) {
  const std::string_view usual = endpoint.starts_with("http://") ? ":80" : ":443";
  endpoint.remove_prefix(endpoint.find("://") + 3);
  if (endpoint.ends_with(usual)) endpoint.remove_suffix(usual.size());
  return std::string(endpoint);
}

}  // namespace penstock::storage
