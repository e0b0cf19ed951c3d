// storage/s3/aws_signature: signatures of S3 requests.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/storage/http/percent.hpp"

namespace penstock::storage {

struct AwsCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token{};  ///< of temporary ones
};

/// A request, as it is signed. Name and value of a header, in lower case and sorted;
/// of a query parameter, encoded and sorted.
struct AwsRequest {
  std::string method;
  std::string host;   ///< with its port, where that is not the usual one
  std::string path;   ///< encoded
  std::string query;  ///< encoded, its parameters sorted
  /// Others to be signed, such as range.
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string service = "s3";
  std::string_view body{};
};

/// The headers to send with the request, "name: value", those of its own aside.
///
/// By hand, since libcurl's signatures of keys and queries with special characters were wrong in
/// many versions, each in its own way.
///
/// Source  AWS Signature Version 4, "Authenticating Requests: Using the Authorization Header".
[[nodiscard]] std::vector<std::string> sign_aws_request(const AwsRequest& request,
                                                        const AwsCredentials& credentials,
                                                        std::string_view region,
                                                        std::chrono::system_clock::time_point now);

}  // namespace penstock::storage
