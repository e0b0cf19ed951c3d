// storage/web/web_store: files of web servers, by their URLs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "src/storage/http/client.hpp"
#include "src/storage/http/environment.hpp"
#include "src/storage/http/range_reader.hpp"
#include "src/storage/http/redirect_links.hpp"
#include "src/storage/http/redirects.hpp"
#include "src/storage/object_store.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::storage {

/// Files are read by ranges from where the server's redirects lead, and there is no list of them. A file's version is its
/// ETag, else when it was changed last, else none. Users' names and passwords are those that ~/.netrc has for the server that is
/// asked, also behind a redirect.
///
/// Threads  const, any number at once.
class WebStore final : public ObjectStore {
 public:
  /// Errors  Error                  $NETRC names no file that can be read
  ///         std::invalid_argument  an option that is of S3 alone
  WebStore(const ObjectStorageOptions& options, std::shared_ptr<const WebQueries> queries,
           const Environment& environment = process_environment);

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override;
  Result<FileStamp> stat(const ObjectName& name) const override;
  Result<void> check_ranges(const ObjectName& name) const override;
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override;
  RequestCounts counts() const override { return reader_.counts(); }

 private:
  /// The URL that is asked for, with its query.
  [[nodiscard]] std::string url_of(const ObjectName& name) const;
  [[nodiscard]] HttpRequest request_of(std::string url) const;
  /// Sends by `send` to where the file is known to be, and to its own URL where that is not known or refuses it.
  [[nodiscard]] Result<HttpReply> ask(const ObjectName& name, const SendHop& send) const;
  [[nodiscard]] Result<FileStamp> stat_once(const ObjectName& name) const;
  [[nodiscard]] Result<void> read_range(const ObjectName& name, const FileStamp& stamp,
                                        std::uint64_t offset, std::span<std::byte> into) const;
  /// The Fault of an answer that is none of success.
  [[nodiscard]] Fault fault_of(const HttpReply& reply, const ObjectName& name) const;

  std::shared_ptr<const WebQueries> queries_;
  bool anonymous_;
  HttpClient client_;
  RangeReader reader_;
  int attempts_;  // of stat()
  mutable RedirectLinks links_;
  mutable std::mutex mutex_;
  mutable std::unordered_set<std::string> without_ranges_;  // files
};

}  // namespace penstock::storage
