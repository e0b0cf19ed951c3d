// storage/s3/s3_store: objects of an S3-compatible server.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/storage/http/client.hpp"
#include "src/storage/http/range_reader.hpp"
#include "src/storage/object_store.hpp"
#include "src/storage/s3/aws_credentials.hpp"
#include "src/storage/s3/s3_responses.hpp"

namespace penstock::storage {

/// ListObjectsV2, HeadObject and GetObject, and for writing (s3_uploads.cpp) PutObject and the multipart uploads, signed.
class S3Store final : public WritableObjectStore {
 public:
  /// Errors  Error  invalid environment variables or an invalid profile
  explicit S3Store(const ObjectStorageOptions& options,
                   const Environment& environment = process_environment);

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override;
  Result<FileStamp> stat(const ObjectName& name) const override;
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override;
  RequestCounts counts() const override { return reader_.counts(); }

  Result<void> put(const ObjectName& name, std::span<const std::byte> bytes) const override;
  Result<std::string> begin_upload(const ObjectName& name, const std::string& mark) const override;
  Result<std::string> put_part(const ObjectName& name, const std::string& upload, int number,
                               std::span<const std::byte> bytes) const override;
  Result<void> complete_upload(const ObjectName& name, const std::string& upload,
                               const std::string& mark,
                               std::span<const std::string> etags) const override;
  Result<void> abort_upload(const ObjectName& name, const std::string& upload) const override;
  std::vector<OpenUpload> list_uploads(const ObjectName& prefix) const override;

 private:
  struct Address {
    std::string base;  // "https://host"
    std::string host;
    std::string path;  // encoded
  };
  [[nodiscard]] Address address_of(const ObjectName& name) const;
  struct Request {
    std::string method = "GET";
    std::string query{};                                         // encoded and sorted
    std::vector<std::pair<std::string, std::string>> headers{};  // signed; names in lower case
    std::string_view body{};
    std::optional<std::chrono::milliseconds> idle{};  // as HttpRequest's
  };
  // The same with its URL and signed.
  [[nodiscard]] Result<HttpRequest> signed_request(const ObjectName& name,
                                                   const Request& request) const;
  // One attempt. Faults are those of the connection; any status is a response.
  [[nodiscard]] Result<HttpResponse> send(const ObjectName& name, const Request& request) const;
  // The Fault of a connection, with the names of the server and the object.
  [[nodiscard]] Fault unreached(Fault fault, const ObjectName& name) const;
  // One that writes, with what all of these have. An error status is a Fault.
  [[nodiscard]] Result<HttpResponse> send_write(const ObjectName& name, Request request) const;
  // What a request needs to be allowed, for messages.
  static constexpr std::string_view kToRead =
      "they need s3:GetObject, and s3:ListBucket for folders";
  static constexpr std::string_view kToWrite =
      "they need s3:PutObject, s3:AbortMultipartUpload and s3:ListBucketMultipartUploads";
  // The Fault for an error status of a request for `name`.
  [[nodiscard]] Fault fault_of(const HttpResponse& response, const ObjectName& name,
                               std::string_view rights = kToRead) const;
  [[nodiscard]] std::string whose_request() const;
  // What helps where a request was denied, by the server's word for it.
  [[nodiscard]] std::string remedy_of_denial(std::string_view code, std::string_view rights) const;

  std::string endpoint_;  // "https://host:port", without a slash at the end
  bool custom_endpoint_ = false;
  std::string region_;
  std::optional<bool> path_style_;
  bool anonymous_ = false;
  bool requester_pays_ = false;
  HttpClient client_;
  RangeReader reader_;
  std::chrono::milliseconds timeout_;
  int attempts_;  // of listings and of stat()
  std::unique_ptr<AwsCredentialChain> credentials_;
};

}  // namespace penstock::storage
