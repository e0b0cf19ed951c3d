// Files of digests, which --record of penstock-throughput writes and --verify reads: a text is refused by an Error, or is the same text when it
// is written again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <penstock/core/error.hpp>

#include "pipelines/throughput_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (throughput::format_digests(throughput::parse_digests(text, "input")) != text) std::abort();
  } catch (const penstock::Error&) {
  }
  return 0;
}
