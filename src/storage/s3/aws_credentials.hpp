// storage/s3/aws_credentials: the credentials for S3 requests.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "src/storage/s3/aws_profile.hpp"
#include "src/storage/s3/aws_signature.hpp"

namespace penstock::storage {

/// Looks where the AWS tools look: the environment, the profile's keys, the container's endpoint,
/// the EC2 instance's. What is temporary is fetched again five minutes before it ends.
///
/// Threads  any number at once.
class AwsCredentialChain {
 public:
  AwsCredentialChain(const AwsProfile& profile, Environment environment);

  /// Nothing where there are none.
  ///
  /// Errors  Error  there should be some: half of a key, or an endpoint that does not answer
  [[nodiscard]] std::optional<AwsCredentials> get();
  /// Where the credentials come from, for messages.
  [[nodiscard]] std::string origin() const;

 private:
  using Time = std::chrono::system_clock::time_point;
  struct Temporary {
    AwsCredentials credentials;
    Time expires;
  };
  [[nodiscard]] std::optional<Temporary> from_container() const;
  [[nodiscard]] std::optional<Temporary> from_instance() const;
  [[nodiscard]] static Temporary parse(const std::string& json, const std::string& from);

  Environment environment_;
  mutable std::mutex mutex_;
  std::optional<AwsCredentials> credentials_;
  std::optional<Time> expires_;
  bool looked_ = false;
  std::string origin_;
};

}  // namespace penstock::storage
