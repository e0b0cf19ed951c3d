// What an S3 server answers, and the AWS tools' files, from anywhere.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/storage/s3/aws_profile.hpp"
#include "src/storage/s3/aws_sts.hpp"
#include "src/storage/s3/s3_responses.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::storage;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = parse_s3_page(text)) {
    for (const ListedObject& entry : page->entries) {
      if (entry.key.size() > size) std::abort();
    }
  }
  (void)parse_s3_error(text);
  (void)parse_s3_upload_id(text);
  (void)is_s3_completion(text);
  if (const auto page = parse_s3_uploads(text)) {
    for (const OpenUpload& upload : page->uploads)
      if (upload.key.size() > size) std::abort();
  }
  if (const auto found = parse_sts_credentials(text))
    if (found->credentials.access_key.empty() || found->credentials.secret_key.empty())
      std::abort();
  (void)read_ini_section(text, "default");
  return 0;
}
