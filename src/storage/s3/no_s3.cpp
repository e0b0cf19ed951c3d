// In builds without libcurl, OpenSSL or pugixml.
#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/storage/object_store.hpp"

namespace penstock {

namespace storage {
namespace {
[[noreturn]] void refuse(const char* what) {
  throw Error(fmt::format(
      "this build of penstock {} paths: configure it with -DPENSTOCK_S3=ON, which needs libcurl, "
      "OpenSSL and pugixml (libcurl4-openssl-dev, libssl-dev, libpugixml-dev)",
      what));
}
}  // namespace

WritableObjectStorePtr open_object_store(const ObjectStorageOptions&) {
  refuse("neither reads nor writes s3://");
}
ObjectStorePtr open_hub_store(const ObjectStorageOptions&) { refuse("does not read hf://"); }
ObjectStorePtr open_web_store(const ObjectStorageOptions&, std::shared_ptr<const WebQueries>) {
  refuse("does not read https://");
}
}  // namespace storage

bool has_object_storage() noexcept { return false; }

}  // namespace penstock
