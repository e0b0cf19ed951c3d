// The entry that cache_fuzz looks for.
#pragma once

namespace penstock::fuzz {
inline constexpr const char* kCacheKey = "s3://bucket/a.jpg\n300 0123456789abcdef 0 300";
}  // namespace penstock::fuzz
