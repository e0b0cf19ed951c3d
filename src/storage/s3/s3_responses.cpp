#include "src/storage/s3/s3_responses.hpp"

#include <utility>

#include <pugixml.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/printable.hpp"

namespace penstock::storage {

namespace {

int digit_of(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Keys may hold characters that XML cannot, and so are encoded as in a URL's query.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
                        digit_of(text[i + 2]) >= 0;
    if (escape) {
      plain += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

}  // namespace

std::optional<S3Page> parse_s3_page(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return std::nullopt;
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return std::nullopt;
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  const auto key_of = [&](const char* text) { return encoded ? decoded(text) : std::string(text); };
  S3Page page;
  for (const pugi::xml_node object : root.children("Contents")) {
    page.entries.push_back({.key = key_of(object.child_value("Key")),
                            .stamp = {object.child("Size").text().as_ullong(),
                                      version_of_etag(object.child_value("ETag"))}});
  }
  for (const pugi::xml_node folder : root.children("CommonPrefixes")) {
    page.entries.push_back({.key = key_of(folder.child_value("Prefix")), .is_folder = true});
  }
  if (root.child("IsTruncated").text().as_bool()) {
    page.next = root.child_value("NextContinuationToken");
    if (page.next.empty()) return std::nullopt;  // would be the first page again
  }
  return page;
}

std::string parse_s3_upload_id(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  return document.child("InitiateMultipartUploadResult").child_value("UploadId");
}

bool is_s3_completion(std::string_view xml) {
  pugi::xml_document document;
  return document.load_buffer(xml.data(), xml.size()) &&
         document.child("CompleteMultipartUploadResult");
}

std::optional<S3UploadsPage> parse_s3_uploads(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return std::nullopt;
  const pugi::xml_node root = document.child("ListMultipartUploadsResult");
  if (!root) return std::nullopt;
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  const auto key_of = [&](const char* text) { return encoded ? decoded(text) : std::string(text); };
  S3UploadsPage page;
  for (const pugi::xml_node upload : root.children("Upload"))
    page.uploads.push_back({key_of(upload.child_value("Key")), upload.child_value("UploadId")});
  if (root.child("IsTruncated").text().as_bool()) {
    page.next = {key_of(root.child_value("NextKeyMarker")), root.child_value("NextUploadIdMarker")};
    if (page.next.key.empty()) return std::nullopt;  // would be the first page again
  }
  return page;
}

S3Error parse_s3_error(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node root = document.child("Error");
  constexpr std::size_t kMost = 300;  // more than S3 says
  const auto text = [&](const char* name) {
    return core::printable(root.child_value(name), kMost);
  };
  return {text("Code"), text("Message"), text("Region")};
}

std::int64_t version_of_etag(std::string_view etag) noexcept {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  while (etag.starts_with('"')) etag.remove_prefix(1);
  while (etag.ends_with('"')) etag.remove_suffix(1);
  return static_cast<std::int64_t>(XXH3_64bits(etag.data(), etag.size()));
}

}  // namespace penstock::storage
