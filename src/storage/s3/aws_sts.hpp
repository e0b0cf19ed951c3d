// storage/s3/aws_sts: temporary credentials of a role, from AWS's Security Token Service.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "src/storage/s3/aws_profile.hpp"
#include "src/storage/s3/aws_signature.hpp"

namespace penstock::storage {

struct TemporaryCredentials {
  AwsCredentials credentials;
  std::chrono::system_clock::time_point expires = std::chrono::system_clock::time_point::max();
};

struct AwsRole {
  std::string arn;
  std::string session_name;  ///< empty: "penstock" and the process's number
  std::string external_id{};
  std::string duration_s{};  ///< empty: the role's own
};

/// Threads  any number at once.
/// Errors   Error  the service refuses, or does not answer; says what it says
class AwsSts {
 public:
  AwsSts(const AwsProfile& profile, const Environment& environment);

  [[nodiscard]] TemporaryCredentials assume_role(const AwsRole& role,
                                                 const AwsCredentials& own) const;
  /// `token_file` is read at each call: the program that wrote it renews it.
  [[nodiscard]] TemporaryCredentials assume_role_with_web_identity(
      const AwsRole& role, const std::string& token_file) const;

 private:
  std::string region_;
  std::string endpoint_;
};

/// Nothing where these are none.
[[nodiscard]] std::optional<TemporaryCredentials> parse_sts_credentials(std::string_view xml);
/// "2026-01-31T12:00:00Z"; far away where it is none.
[[nodiscard]] std::chrono::system_clock::time_point parse_aws_time(const std::string& text);

}  // namespace penstock::storage
