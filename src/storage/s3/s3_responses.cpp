#include "src/storage/s3/s3_responses.hpp"

#include <utility>

#include <pugixml.hpp>

#include "src/core/printable.hpp"
#include "src/storage/http/percent.hpp"

namespace penstock::storage {

std::optional<ListingPage> parse_s3_page(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) return std::nullopt;
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return std::nullopt;
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  const auto key_of = [&](const char* text) {
    return encoded ? percent_decode(text, true) : std::string(text);
  };
  ListingPage page;
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
  const auto key_of = [&](const char* text) {
    return encoded ? percent_decode(text, true) : std::string(text);
  };
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

}  // namespace penstock::storage
