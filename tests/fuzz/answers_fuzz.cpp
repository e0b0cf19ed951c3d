// What an S3 server and the Hugging Face Hub answer, and the AWS tools' files, from anywhere.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "src/storage/http/endpoint.hpp"
#include "src/storage/http/rate_limit.hpp"
#include "src/storage/http/redirects.hpp"
#include "src/storage/hub/hub_answers.hpp"
#include "src/storage/hub_url.hpp"
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
  if (const auto entries = parse_hub_entries(text)) {
    for (const ListedObject& entry : *entries)
      if (entry.key.empty() || entry.key.size() > size + 1) std::abort();
  }
  if (const auto commit = parse_hub_commit(text))
    if (commit->size() != 40) std::abort();
  if (const auto next = next_page_query(text); next && next->size() > size) std::abort();
  if (const std::string url = redirected_url("https://host/a", text);
      !url.empty() && origin_of(url).empty())
    std::abort();
  (void)seconds_to_wait({.status = 429, .headers = {{"ratelimit", std::string(text)}}});
  try {
    const ObjectName name = parse_object_url("hf://" + std::string(text));
    if (name.url().size() > size + 6 ||
        hub_revision_of(name.bucket).id.find('/') == std::string::npos)
      std::abort();
  } catch (const std::invalid_argument&) {
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
