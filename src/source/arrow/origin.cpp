#include "src/source/arrow/origin.hpp"

#include <fmt/format.h>

namespace penstock::source {

std::span<const std::byte> read_arrow_range(const ArrowRead& read, std::uint64_t offset,
                                            std::uint64_t bytes, const std::string& file) {
  if (bytes == 0) return {};
  const auto found = read(offset, bytes);
  if (!found) throw DataError(found.fault());
  if (found->size() != bytes)
    throw_arrow_damage({.file = file, .offset = offset}, 0,
                       fmt::format("expected {} bytes, and read {}", bytes, found->size()));
  return *found;
}

void throw_arrow_damage(const ArrowOrigin& origin, std::uint64_t at, std::string reason) {
  reason += ": the data is damaged, or was not written completely: write or download it again";
  throw DataError(
      Fault{.reason = std::move(reason), .file = origin.file, .offset = origin.offset + at});
}

void throw_arrow_limit(const ArrowOrigin& origin, const std::string& reason) {
  throw DataError(Fault{.reason = reason +
                                  ": write it again with fewer rows in a batch (in pyarrow: "
                                  "write_table(table, max_chunksize=...))",
                        .file = origin.file,
                        .offset = origin.offset});
}

void throw_arrow_unread(const ArrowOrigin& origin, const std::string& what) {
  throw DataError(Fault{.reason = fmt::format("{} is not read here; pyarrow reads it: write the "
                                              "data again with pyarrow, in a way that is read",
                                              what),
                        .file = origin.file,
                        .offset = origin.offset});
}

}  // namespace penstock::source
