// What HubStore says of requests that were refused, and what to do.
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/storage/http/rate_limit.hpp"
#include "src/storage/hub/hub_answers.hpp"
#include "src/storage/hub/hub_store.hpp"
#include "src/storage/hub_url.hpp"

namespace penstock::storage {

std::string HubStore::whose_token() const {
  if (anonymous_) return "the request had no token, as the option anonymous asks";
  if (client_.token().is_given())
    return fmt::format("the token is that of {}", client_.token().origin());
  return "no token was found: set HF_TOKEN, or log in with `hf auth login`";
}

std::string HubStore::place_of(const ObjectName& name) const {
  const HubRevision at = hub_revision_of(name.bucket);
  return fmt::format("the data set {} at the revision '{}'", at.id,
                     core::printable(at.revision, 100));
}

Fault HubStore::missing(const ObjectName& name, std::string_view kind) const {
  std::string reason = fmt::format("there is no {} '{}' in {}", kind,
                                   core::printable(name.key, 300), place_of(name));
  // The nearest folder that is there.
  ObjectName folder = name;
  do {
    folder.key = hub_folder_of(folder.key);
    const Result<void> looked = look_into(folder);
    if (!looked) return {.reason = std::move(reason), .file = name.url()};
  } while (folders_.listed(folder) == HubListed::is_missing && !folder.key.empty());
  reason += fmt::format(
      ", where {} {}; check the path",
      folder.key.empty() ? "the root" : fmt::format("'{}'", core::printable(folder.key, 300)),
      folders_.contents(folder));
  return {.reason = std::move(reason), .file = name.url()};
}

std::string HubStore::reason_of_refusal(const HubReply& reply, const ObjectName& name) const {
  const auto [code, message] = hub_refusal_of(reply.response, client_.token());
  const long status = reply.response.status;
  const HubRevision at = hub_revision_of(name.bucket);
  const std::string page = fmt::format("{}/datasets/{}", client_.endpoint(), at.id);
  const std::string said = message.empty() ? "" : fmt::format(" ({})", message);
  if (code == "GatedRepo")
    return fmt::format(
        "the data set {} is gated: log in at {} with the account of the token, accept the "
        "conditions there, and try again; {}",
        at.id, page, whose_token());
  if (code == "RevisionNotFound")
    return fmt::format(
        "the data set {} has no revision '{}': check it; {}/tree/main shows its branches and tags",
        at.id, core::printable(at.revision, 100), page);
  if (code == "EntryNotFound")
    return fmt::format("there is no '{}' in {}; check the path", core::printable(name.key, 300),
                       place_of(name));
  if (status == 401 && client_.token().is_given() &&
      message.find("Invalid credentials") != message.npos)
    return fmt::format(
        "{} does not know the token of {}: make another one at {}/settings/tokens, or unset it for "
        "public data sets",
        client_.endpoint(), client_.token().origin(), client_.endpoint());
  if (status == 401 || status == 404)
    return fmt::format(
        "{} shows no data set {}: the name is misspelt, or the data set is private or gated, and "
        "the token may not read it (status {} for all of these){}; {}",
        client_.endpoint(), at.id, status, said, whose_token());
  if (status == 403)
    return fmt::format("{} denied access to the data set {}{}; its page {} says what is needed; {}",
                       client_.endpoint(), at.id, said, page, whose_token());
  if (status == 429) {
    const auto seconds = seconds_to_wait(reply.response);
    return fmt::format(
        "{} answers no more requests of this machine for {}{}; {}; read shards or Parquet files "
        "rather than single images, which take a request each",
        client_.endpoint(), seconds ? fmt::format("{} s", *seconds) : "a while", said,
        client_.token().is_given() ? whose_token() : "requests with a token may be more");
  }
  return fmt::format("{} answered with status {}{}", client_.endpoint(), status, said);
}

Fault HubStore::fault_of(const HubReply& reply, const ObjectName& name) const {
  const long status = reply.response.status;
  Fault fault{.file = name.url(), .transient = status == 408 || status == 429 || status >= 500};
  if (reply.is_own) {
    fault.reason = client_.token().removed_from(reason_of_refusal(reply, name));
    return fault;
  }
  // Of another server only the host is named: the rest of the URL is signed, and its text may repeat it.
  const bool is_denied = status == 401 || status == 403;
  fault.transient = fault.transient || is_denied;  // a URL that expired just now
  fault.reason = fmt::format(
      "{}, where {} keeps the file, answered with status {}{}", reply.server(), client_.endpoint(),
      status, is_denied ? ": the signed URL was refused; check this machine's clock" : "");
  return fault;
}

}  // namespace penstock::storage
