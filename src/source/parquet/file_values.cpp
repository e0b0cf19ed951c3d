#include "src/source/parquet/file_values.hpp"

#include <fmt/format.h>

namespace penstock::source {

namespace {

ParquetFileValues find_values(const ParquetLeaf& leaf, ParquetCodec codec, const ParquetPage& page,
                              const ParquetRead& read, const std::string& file,
                              const ParquetLimits& limits) {
  constexpr std::uint64_t kLength = 4;
  const ParquetPageHeader& header = page.header;
  const ParquetOrigin origin{.file = file, .offset = page.begin()};
  const bool is_packed = codec != ParquetCodec::uncompressed &&
                         (header.kind != ParquetPageKind::data_v2 || header.is_compressed);
  const bool is_data =
      header.kind == ParquetPageKind::data || header.kind == ParquetPageKind::data_v2;
  if (!is_data || is_packed || leaf.type != ParquetType::byte_array ||
      header.encoding != ParquetEncoding::plain)
    throw DataError(
        Fault{.reason = fmt::format(
                  "expected a data page of uncompressed PLAIN BYTE_ARRAYs in column '{}', "
                  "and found a {} of {} {}: decode the page",
                  leaf.path, name_of(header.kind), name_of(header.encoding), name_of(leaf.type)),
              .file = file,
              .offset = page.offset});
  if (header.kind == ParquetPageKind::data && header.packed_bytes != header.unpacked_bytes)
    throw_parquet_damage(origin, 0,
                         fmt::format("expected an uncompressed page of {} bytes, and found {}",
                                     header.unpacked_bytes, header.packed_bytes));
  ParquetFileValues found{.levels = read_parquet_front_levels(leaf, page, read, file, limits),
                          .values = {}};
  std::uint64_t at = found.levels.bytes;
  const std::uint64_t size = header.packed_bytes;
  if (found.levels.present > (size - at) / kLength)
    throw_parquet_damage(
        origin, at,
        fmt::format("{} values do not fit in the {} bytes left", found.levels.present, size - at));
  found.values.reserve(static_cast<std::size_t>(found.levels.present));
  for (std::uint64_t i = 0; i < found.levels.present; ++i) {
    if (kLength > size - at)
      throw_parquet_damage(origin, at, fmt::format("value {} has no length", i));
    const auto length = load_little_endian<std::uint32_t>(
        read_parquet_range(read, page.begin() + at, kLength, file));
    at += kLength;
    if (length > size - at)
      throw_parquet_damage(
          origin, at, fmt::format("value {} has {} bytes, and {} are left", i, length, size - at));
    found.values.push_back({page.begin() + at, length});
    at += length;
  }
  return found;
}

}  // namespace

std::span<const std::byte> read_parquet_range(const ParquetRead& read, std::uint64_t offset,
                                              std::uint64_t bytes, const std::string& file) {
  if (bytes == 0) return {};
  const auto found = read(offset, bytes);
  if (!found) throw DataError(found.fault());
  if (found->size() != bytes)
    throw_parquet_damage({.file = file, .offset = offset}, 0,
                         fmt::format("expected {} bytes, and read {}", bytes, found->size()));
  return *found;
}

ParquetLevels read_parquet_front_levels(const ParquetLeaf& leaf, const ParquetPage& page,
                                        const ParquetRead& read, const std::string& file,
                                        const ParquetLimits& limits) {
  constexpr std::uint64_t kLength = 4;
  const std::uint64_t size = page.header.packed_bytes;
  const ParquetOrigin origin{.file = file, .offset = page.begin()};
  std::uint64_t needed = 0;
  if (page.header.kind == ParquetPageKind::data_v2) {
    needed = std::uint64_t{page.header.repetition_bytes} + page.header.definition_bytes;
  } else {
    for (const std::uint8_t most : {leaf.max_repetition, leaf.max_definition}) {
      if (most == 0) continue;
      if (kLength > size - needed)
        throw_parquet_damage(origin, needed, "a page ends before its levels");
      const auto length = load_little_endian<std::uint32_t>(
          read_parquet_range(read, page.begin() + needed, kLength, file));
      if (length > size - needed - kLength)
        throw_parquet_damage(
            origin, needed,
            fmt::format("levels take {} bytes, and {} are left", length, size - needed - kLength));
      needed += kLength + length;
    }
  }
  return read_parquet_levels(leaf, page.header,
                             read_parquet_range(read, page.begin(), needed, file), limits, origin);
}

Result<ParquetFileValues> find_parquet_values(const ParquetLeaf& leaf, ParquetCodec codec,
                                              const ParquetPage& page, const ParquetRead& read,
                                              const std::string& file,
                                              const ParquetLimits& limits) {
  return parquet_result([&] { return find_values(leaf, codec, page, read, file, limits); });
}

}  // namespace penstock::source
