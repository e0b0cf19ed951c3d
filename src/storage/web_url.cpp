#include "src/storage/web_url.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <fmt/format.h>

#include "src/core/printable.hpp"

namespace penstock::storage {

namespace {

constexpr std::size_t kMostShown = 300;

[[noreturn]] void refuse_web_url(std::string_view plain, const std::string& why) {
  throw std::invalid_argument(fmt::format("expected https://host/path, found '{}': {}",
                                          core::printable(plain, kMostShown), why));
}

}  // namespace

ObjectName parse_web_url(std::string_view url) {
  const std::string_view plain = split_web_url(url).plain;
  if (!is_web_url(plain)) refuse_web_url(plain, "it does not begin with https://");
  const std::size_t host_at = plain.find("://") + 3;
  const std::size_t slash = std::min(plain.find('/', host_at), plain.size());
  const std::string_view host = plain.substr(host_at, slash - host_at);
  // Also of "https://user:pass/word@host": what may be a password is shown in no message.
  if (const std::size_t at = host.rfind('@'); at != host.npos)
    refuse_web_url(fmt::format("{}***{}", plain.substr(0, host_at), plain.substr(host_at + at)),
                   "a user's name and password stand in no URL here: write them to ~/.netrc, as "
                   "'machine HOST login NAME password PASSWORD'");
  constexpr std::string_view kOfHosts =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
  if (host.empty() || host.find_first_not_of(kOfHosts) != host.npos)
    refuse_web_url(plain.substr(0, slash), "it names no host");
  // As of "https://user:pass/word@host".
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  if (colon != host.npos &&
      (colon + 1 == host.size() || host.find_first_not_of("0123456789", colon + 1) != host.npos))
    refuse_web_url(fmt::format("{}***", plain.substr(0, host_at)),
                   "what is behind the ':' of its host is no port");
  // A fragment is for browsers, and sent to no server.
  if (url.find('#') != url.npos) refuse_web_url(plain, "write a # of a file's name as %23");
  if (std::ranges::any_of(url, [](char c) {
        return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7f;
      }))
    refuse_web_url(plain, "there is a control character in it");
  return {std::string(plain.substr(0, slash)),
          std::string(plain.substr(std::min(slash + 1, plain.size()))), ObjectService::web};
}

void WebQueries::add(std::string_view plain, std::string_view query) {
  if (query.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto [place, is_new] = queries_.try_emplace(std::string(plain), query);
  if (!is_new && place->second != query)
    throw std::invalid_argument(fmt::format(
        "{} was given with two different texts behind its '?', which is no part of a file's name: "
        "files of one data set differ in what is before it",
        core::printable(plain, kMostShown)));
}

std::string WebQueries::find(const std::string& plain) const {
  const std::lock_guard lock(mutex_);
  const auto found = queries_.find(plain);
  return found == queries_.end() ? std::string() : found->second;
}

std::string cannot_write_to_web(std::string_view path) {
  return fmt::format(
      "'{}': nothing is written to web servers; name a folder of a disk or s3://bucket/prefix",
      core::printable(split_web_url(path).plain, kMostShown));
}

}  // namespace penstock::storage
