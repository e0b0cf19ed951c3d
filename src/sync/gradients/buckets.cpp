#include "src/sync/gradients/buckets.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace penstock::sync {

std::vector<GradientBucket> plan_buckets(std::span<const BucketItem> items,
                                         const BucketLimits& limits) {
  if (limits.bytes == 0 || limits.count == 0)
    throw std::invalid_argument(
        fmt::format("a bucket holds at least 1 byte and 1 gradient, found limits of {} and {}",
                    limits.bytes, limits.count));
  std::vector<GradientBucket> buckets;
  std::map<DType, GradientBucket> open;
  const auto close = [&](GradientBucket& bucket) {
    buckets.push_back(std::move(bucket));
    bucket = {};
  };
  for (std::size_t index = items.size(); index-- > 0;) {
    const BucketItem& item = items[index];
    GradientBucket& bucket = open[item.dtype];
    const std::size_t bytes = static_cast<std::size_t>(item.elements) * size_of(item.dtype);
    if (!bucket.gradients.empty() &&
        (bucket.gradients.size() == limits.count || bucket.bytes() + bytes > limits.bytes))
      close(bucket);
    bucket.dtype = item.dtype;
    bucket.gradients.push_back(index);
    bucket.elements += item.elements;
  }
  for (auto& [dtype, bucket] : open)
    if (!bucket.gradients.empty()) close(bucket);
  // A bucket can be reduced when its lowest gradient, the last of it, is there.
  std::ranges::stable_sort(buckets, std::greater{},
                           [](const GradientBucket& bucket) { return bucket.gradients.back(); });
  return buckets;
}

std::vector<std::uint32_t> owners_by_bytes(std::span<const std::size_t> bytes,
                                           std::uint32_t ranks) {
  if (ranks == 0) throw std::invalid_argument("expected at least 1 rank to own something, found 0");
  std::vector<std::size_t> load(ranks);
  std::vector<std::uint32_t> owners;
  for (const std::size_t size : bytes) {
    const auto least = std::ranges::min_element(load);
    *least += size;
    owners.push_back(static_cast<std::uint32_t>(least - load.begin()));
  }
  return owners;
}

}  // namespace penstock::sync
