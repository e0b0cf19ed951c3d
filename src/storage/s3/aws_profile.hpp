// storage/s3/aws_profile: ~/.aws/credentials and ~/.aws/config.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/storage/http/environment.hpp"

namespace penstock::storage {

/// What both files say of one profile; the credentials file is asked first.
class AwsProfile {
 public:
  /// Errors  Error  a profile was asked for, by `name` or $AWS_PROFILE, that neither file has; a file that has to be
  ///                there and cannot be read
  AwsProfile(const std::string& name, const Environment& environment);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Whether the program named it: it goes before what the environment has.
  [[nodiscard]] bool is_named() const noexcept { return is_named_; }
  /// For callers that need all that it says.
  ///
  /// Errors  Error  a file is there, or should be, and cannot be read
  void require_files() const;
  /// "the profile 'default'".
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;

 private:
  std::string name_;
  bool is_named_;
  std::string unread_;  // why a file could not be read
  std::map<std::string, std::string, std::less<>> values_;
};

/// The values of "[section]" in an ini file's text; nothing if there is no such section. Values
/// that are nested below a key are passed over.
[[nodiscard]] std::optional<std::map<std::string, std::string, std::less<>>> read_ini_section(
    std::string_view text, std::string_view section);

}  // namespace penstock::storage
