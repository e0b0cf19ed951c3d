#include "src/storage/hub/hub_store.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/storage/http/byte_range.hpp"
#include "src/storage/http/endpoint.hpp"
#include "src/storage/http/percent.hpp"
#include "src/storage/hub/hub_answers.hpp"
#include "src/storage/hub_url.hpp"
#include "src/storage/listing.hpp"
#include "src/storage/retry.hpp"
#include "src/storage/s3_options.hpp"

namespace penstock::storage {

namespace {

constexpr const char* kUsualHub = "https://huggingface.co";
// Files of a folder, a few pages, behind which each of the others is asked for.
constexpr std::size_t kEnough = 4000;

HubClient client_of(const ObjectStorageOptions& options, const Environment& environment) {
  // The token must not go to a server that was named for a bucket.
  if (const char* const option = s3_option_in(options))
    throw std::invalid_argument(fmt::format(
        "the option {} is of s3:// paths, and says nothing of hf:// paths; leave it out{}", option,
        option == std::string_view("endpoint")
            ? ", and set HF_ENDPOINT where another server than the Hub is meant"
            : ""));
  if (is_switched_on(environment, "HF_HUB_OFFLINE"))
    throw Error(
        "hf:// paths are read over the network, and HF_HUB_OFFLINE forbids that; unset it, or "
        "download the data set and name its folder");
  std::string endpoint = first_of({environment("HF_ENDPOINT"), kUsualHub});
  return {require_endpoint_or_path(std::move(endpoint), "HF_ENDPOINT", kUsualHub),
          options.anonymous ? HubToken() : HubToken(environment),
          {.connect = options.connect_timeout, .idle = options.timeout},
          is_hedged(options)};
}

std::string without_slash(std::string key) {
  while (key.ends_with('/')) key.pop_back();
  return key;
}

}  // namespace

HubStore::HubStore(const ObjectStorageOptions& options, const Environment& environment)
    : client_(client_of(options, environment)),
      anonymous_(options.anonymous),
      attempts_(options.attempts) {}

std::string HubStore::api_url(const ObjectName& name, std::string_view what,
                              std::string_view commit) const {
  return fmt::format("{}/api/datasets/{}/{}/{}", client_.endpoint(),
                     hub_revision_of(name.bucket).id, what, percent_encode(commit));
}

Result<std::string> HubStore::commit_of(const ObjectName& name) const {
  // While one thread asks, the others wait for its answer.
  const std::lock_guard lock(commits_mutex_);
  const auto found = commits_.find(name.bucket);
  if (found != commits_.end()) return found->second;
  const HubRevision wanted = hub_revision_of(name.bucket);
  std::string commit = wanted.revision;
  if (!wanted.is_commit()) {
    const std::string url = api_url(name, "revision", wanted.revision) + "?expand=sha";
    Result<HubReply> reply = client_.send({.url = url}, name.url());
    if (!reply) return std::move(reply.fault());
    if (!reply->response.is_good()) return fault_of(*reply, name);
    auto parsed = parse_hub_commit(reply->response.body);
    if (!parsed)
      return Fault{.reason = fmt::format("{} does not say which commit the revision '{}' is: is it "
                                         "the Hugging Face Hub?",
                                         client_.endpoint(), core::printable(wanted.revision, 100)),
                   .file = name.url()};
    commit = *std::move(parsed);
  }
  commits_.emplace(name.bucket, commit);
  return commit;
}

bool HubStore::list_folder(const ObjectName& folder, bool recursive,
                           const std::function<bool(ListedObject&&)>& each, Fault& why) const {
  bool is_there = true;
  bool is_whole = true;
  std::vector<ListedObject> entries;
  const auto fetch = [&](const ListingPlace& place) -> Result<ListingPage> {
    const std::string& next = place.token;
    const auto failed = [&](Fault fault) {
      why = fault;
      return fault;
    };
    why = {};
    const Result<std::string> commit = commit_of(folder);
    if (!commit) return failed(commit.fault());
    std::string url = api_url(folder, "tree", *commit);
    if (!folder.key.empty()) url += "/" + percent_encode(folder.key);
    url += "?" + (next.empty() ? fmt::format("recursive={}&expand=false", recursive) : next);
    Result<HubReply> reply = client_.send({.url = url}, folder.url());
    if (!reply) return failed(std::move(reply.fault()));
    const HttpResponse& response = reply->response;
    if (response.status == 404 && next.empty() && !folder.key.empty()) {
      const std::string code = hub_refusal_of(response, client_.token()).code;
      is_there = code != "EntryNotFound" && !code.empty();
      if (!is_there) return ListingPage{};
    }
    if (!response.is_good()) return failed(fault_of(*reply, folder));
    auto parsed = parse_hub_entries(response.body);
    if (!parsed)
      return failed({.reason = fmt::format("{} gave no list of files that can be read: is it the "
                                           "Hugging Face Hub?",
                                           client_.endpoint()),
                     .file = folder.url()});
    auto next_page = next_page_query(response.header("link"));
    if (!next_page)
      return failed(
          {.reason = fmt::format("{} names a next page of its list that cannot be asked "
                                 "for: {}",
                                 client_.endpoint(), core::printable(response.header("link"), 300)),
           .file = folder.url()});
    return ListingPage{*std::move(parsed), *std::move(next_page)};
  };
  const ObjectName prefix = folder.with_key(folder.folder_prefix());
  list_pages(prefix, {client_.endpoint(), "the Hugging Face Hub"}, attempts_, fetch,
             [&](ListedObject&& entry) {
               folders_.add(folder.with_key(without_slash(entry.key)), entry);
               if (!recursive && entries.size() <= HubFolders::kMostEntries)
                 entries.push_back(entry);
               is_whole = each(std::move(entry));
               return is_whole;
             });
  const HubListed listed = !is_there  ? HubListed::is_missing
                           : is_whole ? HubListed::all
                                      : HubListed::a_part;
  if (!recursive && (is_whole || entries.size() >= kEnough))
    folders_.add_folder(folder, listed, std::move(entries));
  return is_there;
}

void HubStore::list(const ObjectName& prefix, bool recursive,
                    const std::function<bool(ListedObject&&)>& each) const {
  const ObjectName folder = prefix.with_key(std::string(hub_folder_of(prefix.key)));
  const auto give = [&](ListedObject&& entry) {
    const bool is_wanted = entry.key.starts_with(prefix.key) && !(recursive && entry.is_folder);
    return !is_wanted || each(std::move(entry));
  };
  if (auto known = recursive ? std::nullopt : folders_.entries_of(folder)) {
    for (ListedObject& entry : *known)
      if (!give(std::move(entry))) return;
    return;
  }
  Fault why;
  const bool is_there = list_folder(folder, recursive, give, why);
  // As in a bucket, nothing lies below a file.
  if (is_there || stat(folder)) return;
  throw Error(fmt::format("cannot list {}: {}", prefix.url(), missing(folder, "folder").reason));
}

Result<void> HubStore::look_into(const ObjectName& folder) const {
  const std::lock_guard lock(looking_);
  if (folders_.listed(folder) != HubListed::nothing) return {};
  std::size_t count = 0;
  Fault why;
  try {
    (void)list_folder(
        folder, false, [&](ListedObject&&) { return ++count < kEnough; }, why);
  } catch (const Error& error) {
    why.reason = why.reason.empty() ? error.what() : why.reason;
    return why;
  }
  return {};
}

Result<std::optional<ListedObject>> HubStore::ask_for(const ObjectName& name) const {
  return with_retries(
      [&]() -> Result<std::optional<ListedObject>> {
        const Result<std::string> commit = commit_of(name);
        if (!commit) return commit.fault();
        const std::string body = fmt::format("paths={}&expand=false", percent_encode(name.key));
        Result<HubReply> reply = client_.send(
            {.method = "POST", .url = api_url(name, "paths-info", *commit), .body = body},
            name.url());
        if (!reply) return std::move(reply.fault());
        if (!reply->response.is_good()) return fault_of(*reply, name);
        const auto entries = parse_hub_entries(reply->response.body);
        if (!entries)
          return Fault{.reason = client_.endpoint() + " does not say how large the file is",
                       .file = name.url()};
        for (const ListedObject& entry : *entries)
          if (without_slash(entry.key) == name.key) return std::optional(entry);
        return std::optional<ListedObject>();
      },
      attempts_);
}

Result<FileStamp> HubStore::stat(const ObjectName& name) const {
  std::optional<ListedObject> found = folders_.find(name);
  const bool is_name = !name.key.empty() && !name.key.ends_with('/');
  if (!found && is_name) {
    const ObjectName folder = name.with_key(std::string(hub_folder_of(name.key)));
    const Result<void> looked = look_into(folder);
    if (!looked) return looked.fault();
    found = folders_.find(name);
    if (!found && folders_.listed(folder) == HubListed::a_part) {
      auto asked = ask_for(name);
      if (!asked) return std::move(asked.fault());
      found = *std::move(asked);
      if (found) folders_.add(name, *found);
    }
    if (!found) return missing(name, "file");
  }
  if (found && !found->is_folder) return found->stamp;
  return Fault{.reason = "expected a file, found a folder", .file = name.url()};
}

Result<void> HubStore::read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                            std::span<std::byte> into) const {
  if (into.empty()) return {};
  Result<void> result = read_range(name, stamp, offset, into);
  if (!result) {
    result.fault().file = name.url();
    result.fault().offset = offset;
  }
  return result;
}

Result<void> HubStore::read_range(const ObjectName& name, const FileStamp& stamp,
                                  std::uint64_t offset, std::span<std::byte> into) const {
  const Result<std::string> commit = commit_of(name);
  if (!commit) return commit.fault();
  const std::string file = name.url();
  const std::string usual =
      fmt::format("{}/datasets/{}/resolve/{}/{}", client_.endpoint(),
                  hub_revision_of(name.bucket).id, *commit, percent_encode(name.key, true));
  if (offset > stamp.bytes || into.size() > stamp.bytes - offset)
    return Fault{.reason = fmt::format("expected {} bytes at this offset, the file has {} in all; "
                                       "open it again",
                                       into.size(), stamp.bytes)};
  const ByteRange range{offset, into.size(), stamp.bytes};
  // What is known to be where, unless that URL has expired.
  std::optional<HubReply> reply;
  if (std::string known = links_.find(file); !known.empty()) {
    Result<HubReply> answer = client_.read(known, file, range, into);
    if (!answer) {
      links_.forget(file, known);
      return std::move(answer.fault());
    }
    const long status = answer->response.status;
    const bool is_refused = status >= 400 && status != 408 && status != 416 && status != 429 &&
                            status != RangeReader::kChanged;
    if (is_refused)
      links_.forget(file, known);
    else
      reply = *std::move(answer);
  }
  if (!reply) {
    Result<HubReply> answer = client_.read(usual, file, range, into);
    if (!answer) return std::move(answer.fault());
    if (answer->response.is_good() && answer->url != usual) links_.keep(file, answer->url);
    reply = *std::move(answer);
  }
  const HttpResponse& response = reply->response;
  if (response.status == RangeReader::kChanged)
    return Fault{.reason = "the file was changed while it was read; open it again"};
  if (!reply->commit.empty() && reply->commit != *commit)
    return Fault{.reason =
                     fmt::format("expected the file at commit {}, {} gave it at commit {}; "
                                 "open it again",
                                 *commit, client_.endpoint(), core::printable(reply->commit, 40))};
  const std::string total = response.header("content-range");
  const std::size_t slash = total.find('/');
  std::string size = reply->size ? std::to_string(*reply->size) : "*";
  if ((response.status == 206 || response.status == 416) && slash != total.npos)
    size = core::printable(total.substr(slash + 1), 20);
  if (size != "*" && size != std::to_string(stamp.bytes))
    return Fault{.reason = fmt::format("{} says that the file has {} bytes, and its list says {}; "
                                       "open it again",
                                       reply->server(), size, stamp.bytes)};
  if (!response.is_good()) return fault_of(*reply, name);
  // Small files are kept in git, which the Hub may give as a whole only.
  constexpr std::uint64_t kMostInGit = std::uint64_t{16} << 20;
  if (response.status == 200 && !range.is_whole() && stamp.bytes <= kMostInGit) {
    std::vector<std::byte> whole(stamp.bytes);
    const Result<void> all = read_range(name, stamp, 0, whole);
    if (!all) return all.fault();
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return {};
  }
  if (auto fault = range.fault_of(response, reply->server(), file)) return *std::move(fault);
  return {};
}

ObjectStorePtr open_hub_store(const ObjectStorageOptions& options) {
  return std::make_shared<HubStore>(options);
}

}  // namespace penstock::storage
