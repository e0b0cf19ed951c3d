#include "src/storage/s3/aws_profile.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include <penstock/core/error.hpp>

#include "src/storage/local/file.hpp"

namespace penstock::storage {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

constexpr std::uint64_t kMostBytes = 1 << 20;

// One of the two files, and what it holds.
struct ProfileFile {
  ProfileFile(const Environment& environment, const char* variable, const char* usual) {
    const auto given = environment(variable);
    path = given ? *given : environment("HOME").value_or("") + usual;
    struct stat info {};
    // The usual ones need not be there.
    if (!given && ::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) return;
    Result<std::string> found = read_text_file(path, kMostBytes);
    if (found) {
      text = std::move(*found);
    } else {
      unread = fmt::format(
          "cannot read the AWS file '{}': {}; make it readable, or set {} to another one, or to "
          "/dev/null to do without",
          path, found.fault().reason, variable);
    }
  }

  std::string path;
  std::string text;
  std::string unread;  // why not
};

}  // namespace

std::optional<std::map<std::string, std::string, std::less<>>> read_ini_section(
    std::string_view text, std::string_view section) {
  std::optional<std::map<std::string, std::string, std::less<>>> values;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
      if (inside && !values) values.emplace();
      continue;
    }
    const std::size_t equals = line.find('=');
    const bool nested = whole.front() == ' ' || whole.front() == '\t';
    if (!inside || nested || equals == line.npos) continue;
    (*values)[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 1));
  }
  return values;
}

AwsProfile::AwsProfile(const std::string& name, const Environment& environment)
    : name_(!name.empty() ? name : environment("AWS_PROFILE").value_or("default")),
      is_named_(!name.empty()) {
  const bool asked_for = is_named_ || environment("AWS_PROFILE");
  const ProfileFile config(environment, "AWS_CONFIG_FILE", "/.aws/config");
  const ProfileFile secrets(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  unread_ = first_of({config.unread, secrets.unread});
  if (asked_for) require_files();
  const std::string section = "profile " + name_;
  auto from_config = read_ini_section(config.text, section);
  if (!from_config && name_ == "default") from_config = read_ini_section(config.text, name_);
  auto from_secrets = read_ini_section(secrets.text, name_);
  if (asked_for && name_ != "default" && !from_config && !from_secrets) {
    throw Error(fmt::format(
        "there is no AWS profile '{}': expected [{}] in {} or [{}] in {}; check AWS_PROFILE", name_,
        section, config.path, name_, secrets.path));
  }
  if (from_secrets) values_ = std::move(*from_secrets);
  if (from_config) values_.merge(*from_config);
}

void AwsProfile::require_files() const {
  if (!unread_.empty()) throw Error(unread_);
}

std::string AwsProfile::to_string() const { return fmt::format("the profile '{}'", name_); }

std::optional<std::string> AwsProfile::get(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

}  // namespace penstock::storage
