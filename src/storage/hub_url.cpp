#include "src/storage/hub_url.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/storage/http/percent.hpp"

namespace penstock::storage {

namespace {

constexpr std::string_view kHubScheme = "hf://";
constexpr std::string_view kHubForm = "hf://datasets/owner/name@revision/path";

[[noreturn]] void refuse_hub_url(std::string_view url, const std::string& why) {
  throw std::invalid_argument(
      fmt::format("expected {}, where @revision may be left out, found '{}': {}", kHubForm,
                  core::printable(url, 300), why));
}

bool is_hub_name(std::string_view name) noexcept {
  constexpr std::size_t kMostCharacters = 96;
  return !name.empty() && name.size() <= kMostCharacters && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

// How many characters at the start of "revision/path" are the revision.
std::size_t revision_size(std::string_view text) noexcept {
  for (const std::string_view ref : {"refs/convert/", "refs/pr/"})
    if (text.starts_with(ref) && text.size() > ref.size() && text[ref.size()] != '/')
      return std::min(text.find('/', ref.size()), text.size());
  return std::min(text.find('/'), text.size());
}

}  // namespace

bool HubRevision::is_commit() const noexcept {
  constexpr std::size_t kSha1Digits = 40;
  return revision.size() == kSha1Digits && std::ranges::all_of(revision, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

ObjectName parse_hub_url(std::string_view url) {
  if (!is_hub_url(url)) refuse_hub_url(url, "it does not begin with hf://");
  const std::string_view rest = url.substr(kHubScheme.size());
  const std::string_view kind = rest.substr(0, rest.find('/'));
  for (const std::string_view other : {"models", "spaces", "kernels", "buckets"})
    if (kind == other)
      refuse_hub_url(url, fmt::format("of the Hub, data sets are read, and {} are not", other));
  if (kind != "datasets")
    refuse_hub_url(url, fmt::format("that is a model's path; for a data set write hf://datasets/{}",
                                    core::printable(rest, 300)));

  std::string_view text = rest.substr(std::min(kind.size() + 1, rest.size()));
  const std::size_t slash = text.find('/');
  const std::string_view owner = text.substr(0, slash);
  if (slash == text.npos || owner.find('@') != owner.npos)
    refuse_hub_url(url,
                   "it names no owner and data set; also one such as 'squad' has an owner, "
                   "which its page at huggingface.co shows");
  text.remove_prefix(slash + 1);
  const std::string_view name = text.substr(0, text.find_first_of("/@"));
  if (!is_hub_name(owner) || !is_hub_name(name))
    refuse_hub_url(url, "owners and names are of letters, digits, and - _ . within them");
  text.remove_prefix(name.size());
  if (text.starts_with('@')) {
    const std::size_t size = revision_size(text.substr(1));
    if (size == 0) refuse_hub_url(url, "there is no revision behind the @");
    text.remove_prefix(size + 1);
  }
  if (text.find('\0') != text.npos) refuse_hub_url(url, "there is a zero byte in it");
  const std::size_t bucket_size = rest.size() - text.size();
  return {std::string(rest.substr(0, bucket_size)), std::string(text.substr(text.empty() ? 0 : 1)),
          ObjectService::hub};
}

HubRevision hub_revision_of(std::string_view bucket) {
  bucket.remove_prefix(std::min(bucket.find('/') + 1, bucket.size()));
  const std::size_t at = bucket.find('@');
  HubRevision found{.id = std::string(bucket.substr(0, at))};
  if (at != bucket.npos) found.revision = percent_decode(bucket.substr(at + 1));
  return found;
}

std::string cannot_write_to_hub(std::string_view path) {
  return fmt::format(
      "'{}': nothing is written to the Hugging Face Hub; name a folder of a disk or "
      "s3://bucket/prefix, and upload it with `hf upload-large-folder`",
      path);
}

}  // namespace penstock::storage
