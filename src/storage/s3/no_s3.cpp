// In builds without libcurl, OpenSSL or pugixml.
#include <penstock/core/error.hpp>

#include "src/storage/object_store.hpp"

namespace penstock {

namespace storage {
WritableObjectStorePtr open_object_store(const ObjectStorageOptions&) {
  throw Error(
      "this build of penstock neither reads nor writes s3:// paths: configure it with "
      "-DPENSTOCK_S3=ON, which "
      "needs "
      "libcurl, OpenSSL and pugixml (libcurl4-openssl-dev, libssl-dev, libpugixml-dev)");
}
}  // namespace storage

bool has_object_storage() noexcept { return false; }

}  // namespace penstock
