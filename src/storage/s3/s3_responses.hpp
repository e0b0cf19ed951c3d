// storage/s3/s3_responses: parses an S3 server's XML.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/storage/http/byte_range.hpp"
#include "src/storage/listing.hpp"
#include "src/storage/object_store.hpp"

namespace penstock::storage {

/// One page of ListObjectsV2 with encoding-type=url; nothing if the text is no such page.
[[nodiscard]] std::optional<ListingPage> parse_s3_page(std::string_view xml);

/// What CreateMultipartUpload answers; empty if the text is no such answer.
[[nodiscard]] std::string parse_s3_upload_id(std::string_view xml);
/// Whether the text says that an upload was completed: the status alone does not.
[[nodiscard]] bool is_s3_completion(std::string_view xml);

/// One page of ListMultipartUploads with encoding-type=url.
struct S3UploadsPage {
  std::vector<OpenUpload> uploads;
  OpenUpload next{};  ///< after which the next page begins; empty on the last page
};
/// Nothing if the text is no such page.
[[nodiscard]] std::optional<S3UploadsPage> parse_s3_uploads(std::string_view xml);

/// An error's code and message; empty where the text is no such answer.
struct S3Error {
  std::string code;
  std::string message;
  std::string region;  ///< the right one, where another was used
};
[[nodiscard]] S3Error parse_s3_error(std::string_view xml);

}  // namespace penstock::storage
