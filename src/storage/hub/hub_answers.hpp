// storage/hub/hub_answers: what the Hugging Face Hub answers, as pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/storage/http/client.hpp"
#include "src/storage/hub/hub_token.hpp"
#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// The files and folders of a list that the Hub gives of a tree or of some paths; a folder's key ends in a slash. A file's
/// version is the hash of its bytes. Nothing if the text is no such list.
[[nodiscard]] std::optional<std::vector<ListedObject>> parse_hub_entries(std::string_view json);

/// The hash of a revision's commit; nothing if the text does not say it.
[[nodiscard]] std::optional<std::string> parse_hub_commit(std::string_view json);

/// The query of the URL that a header Link names as the next page: "cursor=...". Empty if it names none, nothing if the URL
/// cannot be used.
[[nodiscard]] std::optional<std::string> next_page_query(std::string_view link);

/// Why a request was refused: "RevisionNotFound", "EntryNotFound", "RepoNotFound", "GatedRepo" or empty, and a sentence.
/// What is shown is short, printable, and without the token.
struct HubRefusal {
  std::string code;
  std::string message;
};
[[nodiscard]] HubRefusal hub_refusal_of(const HttpResponse& response, const HubToken& token);

}  // namespace penstock::storage
