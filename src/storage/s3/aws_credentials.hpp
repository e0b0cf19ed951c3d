// storage/s3/aws_credentials: the credentials for S3 requests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "src/storage/s3/aws_profile.hpp"
#include "src/storage/s3/aws_signature.hpp"
#include "src/storage/s3/aws_sts.hpp"

namespace penstock::storage {

/// Looks where the AWS tools look, in their order: the environment, the profile's role, a web identity, the profile's keys
/// and its credential_process, the container's endpoint, the EC2 instance's role. What is configured is used, or
/// refused by name; nothing else takes its place. A profile that the program names is asked before the environment. What is
/// temporary is fetched again five minutes before it ends.
///
/// Threads  any number at once.
class AwsCredentialChain {
 public:
  /// Errors  Error  half of a key; a profile that asks for what is not supported
  AwsCredentialChain(const AwsProfile& profile, Environment environment);

  /// Nothing where there are none.
  ///
  /// Errors  Error  what should give some does not
  [[nodiscard]] std::optional<AwsCredentials> get();
  /// Where the credentials come from, for messages.
  [[nodiscard]] std::string origin() const;

 private:
  struct Found {
    TemporaryCredentials credentials;
    std::string origin;
  };
  using Fetch = std::function<std::optional<Found>()>;
  [[nodiscard]] Fetch choose(const AwsProfile& profile) const;
  [[nodiscard]] Fetch role_of(const AwsProfile& profile) const;

  Environment environment_;
  Fetch fetch_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable fetched_;
  bool is_fetching_ = false;
  std::optional<Found> found_;
  bool looked_ = false;
};

}  // namespace penstock::storage
