// storage/s3/endpoint: where a service listens: "https://host:port".
#pragma once

#include <string>
#include <string_view>

namespace penstock::storage {

/// Without slashes at its end.
///
/// Errors  Error  no scheme and host, or more than these; names `settings`, which say it
[[nodiscard]] std::string require_endpoint(std::string endpoint, std::string_view settings);

/// The host as curl writes it into a request, and so as it is signed: without the port that is usual.
[[nodiscard]] std::string host_of(std::string_view endpoint);

}  // namespace penstock::storage
