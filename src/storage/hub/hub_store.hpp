// storage/hub/hub_store: files of data sets on the Hugging Face Hub.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "src/storage/http/environment.hpp"
#include "src/storage/http/redirect_links.hpp"
#include "src/storage/hub/hub_client.hpp"
#include "src/storage/hub/hub_folders.hpp"
#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// A revision is resolved to its commit once, and all that follows is of this commit: a push in between changes nothing.
/// Files are read by ranges from where the Hub's redirects lead.
///
/// Threads  const, any number at once.
class HubStore final : public ObjectStore {
 public:
  /// Errors  Error                  $HF_ENDPOINT is no endpoint; $HF_HUB_OFFLINE; a token that cannot be read
  ///         std::invalid_argument  an option that is of S3 alone
  explicit HubStore(const ObjectStorageOptions& options,
                    const Environment& environment = process_environment);

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override;
  Result<FileStamp> stat(const ObjectName& name) const override;
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override;
  RequestCounts counts() const override { return client_.counts(); }

 private:
  /// The hash of the commit that names of this bucket stand for.
  [[nodiscard]] Result<std::string> commit_of(const ObjectName& name) const;
  /// "https://huggingface.co/api/datasets/owner/name/WHAT/COMMIT".
  [[nodiscard]] std::string api_url(const ObjectName& name, std::string_view what,
                                    std::string_view commit) const;
  /// Lists a folder, with all below it where `recursive`; false if there is none. Stops where `each` returns false.
  ///
  /// Errors  Error  it cannot be listed; `why` is then the last Fault, if a request failed
  [[nodiscard]] bool list_folder(const ObjectName& folder, bool recursive,
                                 const std::function<bool(ListedObject&&)>& each, Fault& why) const;
  /// Lists a folder whose files are not known yet, or its beginning where there are many.
  [[nodiscard]] Result<void> look_into(const ObjectName& folder) const;
  /// A file in a folder of very many.
  [[nodiscard]] Result<std::optional<ListedObject>> ask_for(const ObjectName& name) const;
  [[nodiscard]] Result<void> read_range(const ObjectName& name, const FileStamp& stamp,
                                        std::uint64_t offset, std::span<std::byte> into) const;

  /// The Fault of an answer that is none of success, to a request about `name`.
  [[nodiscard]] Fault fault_of(const HubReply& reply, const ObjectName& name) const;
  [[nodiscard]] std::string reason_of_refusal(const HubReply& reply, const ObjectName& name) const;
  /// The Fault of what is not there: says what is.
  [[nodiscard]] Fault missing(const ObjectName& name, std::string_view kind) const;
  [[nodiscard]] std::string whose_token() const;
  /// "the data set owner/name at the revision 'main' (commit 1234567)".
  [[nodiscard]] std::string place_of(const ObjectName& name) const;

  HubClient client_;
  bool anonymous_;
  int attempts_;  // of lists and questions
  mutable std::mutex commits_mutex_;
  mutable std::map<std::string, std::string, std::less<>> commits_;  // by bucket
  mutable std::mutex looking_;  // one thread lists a folder, and the others find what it found
  mutable HubFolders folders_;
  mutable RedirectLinks links_;
};

}  // namespace penstock::storage
