// storage/object_storage: options for reading objects, at paths of the form s3://bucket/key, files of the Hugging Face Hub,
// hf://datasets/owner/name@revision/path, and files of web servers, https://host/path?query.
//
// If the AWS tools or huggingface_hub are configured, none of this is needed: defaults come from the same variables and files.
// Options that are of S3 alone are refused for hf:// and https:// paths: endpoint, region, profile, requester_pays and
// path_style. Where PrepareOptions has them for its output, s3://bucket/prefix, such an input is read without them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What a cache does when it is full.
enum class CachePolicy : std::uint8_t {
  keep,  ///< what is there stays, and nothing is added: for data that are read epoch after epoch, in any order
  lru,  ///< what was read longest ago is removed for what is read now: for one pass, or data that change
};
template <>
struct EnumNames<CachePolicy> {
  static constexpr std::pair<CachePolicy, const char*> kNames[] = {{CachePolicy::keep, "keep"},
                                                                   {CachePolicy::lru, "lru"}};
};

/// Objects, or the parts of them that were read, kept on a local disk. Speed only: an entry counts for one object with one
/// ETag, holds checksums, and is read again from the storage when it is damaged. Any number of loaders and processes may
/// share a folder. A disk that is full or fails ends the adding of entries, with a notice, and never the run.
struct ObjectCacheOptions {
  /// Empty: $PENSTOCK_OBJECT_CACHE; without that too, nothing is kept.
  std::filesystem::path folder{};
  /// What the folder's entries may take together, whichever loaders read them. The folder has one such number: the one that
  /// was set last. 0: $PENSTOCK_OBJECT_CACHE_MB (in MiB), else the number that the folder has, else 64 GiB.
  std::uint64_t max_bytes = 0;
  /// None: $PENSTOCK_OBJECT_CACHE_POLICY, else keep. With keep, entries of folders that no open loader reads, and that were
  /// not read for an hour, are removed for new ones.
  std::optional<CachePolicy> policy{};
};

/// For all sources that take paths. Local paths need none of it.
struct ObjectStorageOptions {
  /// "http://127.0.0.1:9000" or another S3-compatible server. Empty: $AWS_ENDPOINT_URL_S3,
  /// $AWS_ENDPOINT_URL, the profile's endpoint_url, else Amazon's in the region. hf:// paths are read from
  /// $HF_ENDPOINT, else https://huggingface.co; this is refused there.
  std::string endpoint{};
  /// Empty: $AWS_REGION, $AWS_DEFAULT_REGION, the profile's, else us-east-1.
  std::string region{};
  /// Which part of ~/.aws/credentials and ~/.aws/config counts; it then goes before the environment's
  /// credentials. Empty: $AWS_PROFILE, else default.
  std::string profile{};
  /// True: requests are not signed, for public buckets. False: credentials are looked for as docs/storage.md
  /// says; where there are none, requests are not signed either. For hf:// paths: whether requests go without a token; for https:// paths without a login of ~/.netrc.
  bool anonymous = false;
  /// Whether the requests of these credentials are billed to their account, which buckets that are "requester pays"
  /// ask for. False: as $AWS_REQUEST_PAYER says, which is "requester" or empty.
  bool requester_pays = false;
  /// Whether the bucket stands in the URL's path rather than in the host's name. None: with a
  /// custom endpoint, and for names with a dot.
  std::optional<bool> path_style{};
  std::chrono::milliseconds connect_timeout{5000};
  /// A request that receives less than 1 KiB a second for this long has failed, and may be retried
  /// (LoaderOptions::retry).
  std::chrono::milliseconds timeout{30000};
  /// Attempts, the first included, of a listing and of a question about an object, when the network fails. For reads see
  /// LoaderOptions::retry, for what penstock-prepare writes PrepareOptions::attempts.
  int attempts = 5;
  /// Whether a read that takes longer than 99% of those of its size is sent again over another connection, where the first
  /// answer counts: for at most 2% of the reads. None: unless $PENSTOCK_HEDGING is 0.
  std::optional<bool> hedging{};
  ObjectCacheOptions cache{};
};

template <class Visitor>
void visit_fields(Visitor& visit, ObjectStorageOptions& options) {
  // What may differ between machines is no part of a plan.
  visit("endpoint", options.endpoint);
  visit("region", options.region);
  visit("profile", options.profile);
  visit("anonymous", options.anonymous);
  visit("path_style", options.path_style);
  visit.later("requester_pays", options.requester_pays);
}

/// Whether this build of the library reads and writes s3:// paths, and reads hf:// and https:// paths; false without libcurl.
[[nodiscard]] bool has_object_storage() noexcept;

}  // namespace penstock
