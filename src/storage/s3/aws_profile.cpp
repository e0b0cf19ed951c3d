#include "src/storage/s3/aws_profile.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

namespace {

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string file_at(const Environment& environment, const char* variable, const char* usual) {
  if (const auto path = environment(variable)) return *path;
  const auto home = environment("HOME");
  return home ? *home + usual : std::string();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string first_of(std::initializer_list<std::optional<std::string>> choices) {
  for (const auto& choice : choices) {
    if (choice && !choice->empty()) return *choice;
  }
  return {};
}

std::string read_token(const std::string& path) {
  std::string token = text_of(path);
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  return token;
}

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
    : name_(!name.empty() ? name : environment("AWS_PROFILE").value_or("default")) {
  const bool asked_for = !name.empty() || environment("AWS_PROFILE");
  const std::string config = file_at(environment, "AWS_CONFIG_FILE", "/.aws/config");
  const std::string secrets =
      file_at(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
  const std::string section = name_ == "default" ? name_ : "profile " + name_;
  auto from_config = read_ini_section(text_of(config), section);
  auto from_secrets = read_ini_section(text_of(secrets), name_);
  if (asked_for && name_ != "default" && !from_config && !from_secrets) {
    throw Error(fmt::format(
        "there is no AWS profile '{}': expected [{}] in {} or [{}] in {}; check AWS_PROFILE", name_,
        section, config, name_, secrets));
  }
  if (from_secrets) values_ = std::move(*from_secrets);
  if (from_config) values_.merge(*from_config);
}

std::string AwsProfile::to_string() const { return fmt::format("the profile '{}'", name_); }

std::optional<std::string> AwsProfile::get(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

}  // namespace penstock::storage
