// storage/http/endpoint: where a service listens: "https://host:port".
#pragma once

#include <string>
#include <string_view>

namespace penstock::storage {

/// Without slashes at its end.
///
/// Errors  Error  no scheme and host, or more than these; names `settings`, which say it, and shows no user
///                name and password
[[nodiscard]] std::string require_endpoint(std::string endpoint, std::string_view settings);
/// The same for services that may stand below a path of their host. The error gives `example`.
[[nodiscard]] std::string require_endpoint_or_path(std::string endpoint, std::string_view settings,
                                                   std::string_view example);

/// The host as curl writes it into a request, and so as it is signed: without the port that is usual.
[[nodiscard]] std::string host_of(std::string_view endpoint);

/// Scheme, host and port of a URL, in lower case and each of them there: "https://huggingface.co:443". Empty for what is
/// no plain http or https URL, or has a user's name in it. Two URLs of one origin are answered by one server.
[[nodiscard]] std::string origin_of(std::string_view url);

}  // namespace penstock::storage
