#include "src/storage/hub/hub_answers.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/core/printable.hpp"
#include "src/storage/http/byte_range.hpp"

namespace penstock::storage {

namespace {

using HubJson = nlohmann::json;

// Discarded where the text is no JSON, or none that the Hub writes: larger than its pages, or deeper.
HubJson parse_hub_json(std::string_view text) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  constexpr int kMostDepth = 32;
  if (text.size() > kMostBytes) return HubJson(HubJson::value_t::discarded);
  bool is_too_deep = false;
  const auto check = [&](int depth, HubJson::parse_event_t, HubJson&) {
    is_too_deep = is_too_deep || depth > kMostDepth;
    return !is_too_deep;
  };
  try {
    HubJson json = HubJson::parse(text, check, false);
    return is_too_deep ? HubJson(HubJson::value_t::discarded) : json;
  } catch (const HubJson::exception&) {  // a number that is too large
    return HubJson(HubJson::value_t::discarded);
  }
}

// Empty where it is missing, or no text.
std::string hub_text(const HubJson& json, const char* key) {
  if (!json.is_object()) return {};
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

std::optional<std::uint64_t> hub_size(const HubJson& json) {
  if (!json.is_object()) return std::nullopt;
  const auto found = json.find("size");
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::optional<ListedObject> parse_hub_entry(const HubJson& json) {
  ListedObject entry{.key = hub_text(json, "path")};
  if (entry.key.empty() || entry.key.find('\0') != entry.key.npos || entry.key.ends_with('/'))
    return std::nullopt;
  const std::string type = hub_text(json, "type");
  if (type == "directory") {
    entry.key += '/';
    entry.is_folder = true;
    return entry;
  }
  if (type != "file") return std::nullopt;
  // Large files are kept aside: the file itself is then a pointer, which has a hash of its own.
  const auto large = json.find("lfs");
  const bool is_large = large != json.end() && large->is_object();
  std::string hash = is_large ? hub_text(*large, "oid") : "";
  if (hash.empty()) hash = hub_text(json, "oid");
  if (hash.empty()) hash = hub_text(json, "xetHash");
  auto size = is_large ? hub_size(*large) : std::nullopt;
  if (!size) size = hub_size(json);
  if (hash.empty() || !size) return std::nullopt;
  entry.stamp = {*size, version_of_etag(hash)};
  return entry;
}

}  // namespace

std::optional<std::vector<ListedObject>> parse_hub_entries(std::string_view text) {
  const HubJson json = parse_hub_json(text);
  if (!json.is_array()) return std::nullopt;
  std::vector<ListedObject> entries;
  entries.reserve(json.size());
  for (const HubJson& each : json) {
    auto entry = parse_hub_entry(each);
    if (!entry) return std::nullopt;
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::optional<std::string> parse_hub_commit(std::string_view text) {
  std::string hash = hub_text(parse_hub_json(text), "sha");
  constexpr std::size_t kDigits = 40;
  const bool is_hash = hash.size() == kDigits && std::ranges::all_of(hash, [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                       });
  if (!is_hash) return std::nullopt;
  return hash;
}

std::optional<std::string> next_page_query(std::string_view link) {
  // <URL>; rel="next", <URL>; rel="last"
  while (!link.empty()) {
    const std::size_t open = link.find('<');
    const std::size_t close = open == link.npos ? link.npos : link.find('>', open);
    if (close == link.npos) break;
    std::string_view url = link.substr(open + 1, close - open - 1);
    link.remove_prefix(close + 1);
    const std::string_view about = link.substr(0, link.find('<'));
    if (about.find("rel=\"next\"") == about.npos && about.find("rel=next") == about.npos) continue;
    const std::size_t mark = url.find('?');
    if (mark == url.npos) return std::nullopt;
    url = url.substr(mark + 1, url.find('#', mark) - mark - 1);
    const bool is_plain = std::ranges::all_of(url, [](char c) { return c > ' ' && c < 0x7f; });
    return is_plain ? std::optional(std::string(url)) : std::nullopt;
  }
  return link.find("next") == link.npos ? std::optional(std::string()) : std::nullopt;
}

HubRefusal hub_refusal_of(const HttpResponse& response, const HubToken& token) {
  constexpr std::size_t kMostShown = 300;
  HubRefusal refusal{.code = core::printable(response.header("x-error-code"), kMostShown),
                     .message = response.header("x-error-message")};
  if (refusal.message.empty()) refusal.message = hub_text(parse_hub_json(response.body), "error");
  // As a whole: of a token that is cut off, the rest would not be recognised.
  refusal.message = core::printable(token.removed_from(std::move(refusal.message)), kMostShown);
  return refusal;
}

}  // namespace penstock::storage
