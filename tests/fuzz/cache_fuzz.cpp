// An entry of the object cache from anywhere: it counts only if it is what would be stored.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "src/storage/cache_entry.hpp"
#include "tests/fuzz/cache_entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::storage;
  const std::string key = fuzz::kCacheKey;
  // The entry that a file of this size would be.
  std::uint64_t bytes = 0;
  while (bytes < size && cache_head_bytes(key.size(), bytes) + bytes < size) ++bytes;
  const std::uint64_t head_bytes = cache_head_bytes(key.size(), bytes);
  static const int kFile = ::memfd_create("entry", MFD_CLOEXEC);
  if (::ftruncate(kFile, 0) != 0 || ::pwrite(kFile, data, size, 0) != static_cast<ssize_t>(size)) {
    return 0;
  }
  std::string into(bytes, '?');
  const std::string file(reinterpret_cast<const char*>(data), size);
  const std::span<std::byte> all = std::as_writable_bytes(std::span(into));
  const bool counts = read_cache_entry(kFile, key, bytes, 0, all) == 0;
  const bool whole = size == head_bytes + bytes && file == cache_entry_head(key, all) + into;
  if (counts != whole) std::abort();
  // A part of it is what the whole has there, whatever is damaged elsewhere.
  std::string part(bytes / 3, '?');
  if (read_cache_entry(kFile, key, bytes, bytes / 2, std::as_writable_bytes(std::span(part))) ==
          0 &&
      part != file.substr(head_bytes + bytes / 2, part.size()))
    std::abort();
  return 0;
}
