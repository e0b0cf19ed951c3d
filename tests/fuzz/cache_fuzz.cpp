// An entry of the object cache from anywhere: it counts only if it is what would be stored.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "src/storage/object_cache.hpp"
#include "tests/fuzz/cache_entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::storage;
  const std::string key = fuzz::kCacheKey;
  const std::size_t head_bytes = cache_entry_head(key, {}).size();
  static const int kFile = ::memfd_create("entry", MFD_CLOEXEC);
  if (::ftruncate(kFile, 0) != 0 || ::pwrite(kFile, data, size, 0) != static_cast<ssize_t>(size)) {
    return 0;
  }
  std::string into(size > head_bytes ? size - head_bytes : 0, '?');
  const std::string file(reinterpret_cast<const char*>(data), size);
  const bool counts = read_cache_entry(kFile, key, std::as_writable_bytes(std::span(into)));
  const bool whole = file == cache_entry_head(key, std::as_bytes(std::span(into))) + into;
  if (counts != (whole && size >= head_bytes)) std::abort();
  return 0;
}
