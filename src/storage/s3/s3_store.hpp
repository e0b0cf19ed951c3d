// storage/s3/s3_store: objects of an S3-compatible server.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/storage/object_store.hpp"
#include "src/storage/s3/aws_credentials.hpp"
#include "src/storage/s3/http.hpp"
#include "src/storage/s3/s3_responses.hpp"

namespace penstock::storage {

/// ListObjectsV2, HeadObject and GetObject, signed.
class S3Store final : public ObjectStore {
 public:
  /// Errors  Error  invalid environment variables or an invalid profile
  explicit S3Store(const ObjectStorageOptions& options,
                   const Environment& environment = process_environment);

  void list(const ObjectName& prefix, bool recursive,
            const std::function<bool(ListedObject&&)>& each) const override;
  Result<FileStamp> stat(const ObjectName& name) const override;
  Result<void> read(const ObjectName& name, const FileStamp& stamp, std::uint64_t offset,
                    std::span<std::byte> into) const override;

 private:
  struct Address {
    std::string base;  // "https://host"
    std::string host;
    std::string path;  // encoded
  };
  [[nodiscard]] Address address_of(const ObjectName& name) const;
  // One attempt. Faults are those of the connection; any status is a response.
  [[nodiscard]] Result<HttpResponse> send(const std::string& method, const ObjectName& name,
                                          const std::string& query, const std::string& range,
                                          std::optional<std::span<std::byte>> into) const;
  // The Fault for an error status of a request for `name`.
  [[nodiscard]] Fault fault_of(const HttpResponse& response, const ObjectName& name) const;
  [[nodiscard]] std::string whose_request() const;

  std::string endpoint_;  // "https://host:port", without a slash at the end
  bool custom_endpoint_ = false;
  std::string region_;
  std::optional<bool> path_style_;
  bool anonymous_ = false;
  HttpClient client_;
  std::unique_ptr<AwsCredentialChain> credentials_;
};

}  // namespace penstock::storage
