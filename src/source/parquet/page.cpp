#include "src/source/parquet/page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/source/parquet/codec.hpp"

namespace penstock::source {

namespace {

// A page's bytes when decompressed, or those of the file.
struct UnpackedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::byte[]> owner;
  ParquetOrigin origin;
};

void check_page(const ParquetPageInput& page) {
  if (page.bytes.size() != page.header.packed_bytes)
    throw_parquet_damage(page.origin, 0,
                         fmt::format("expected a page of {} bytes, and found {}",
                                     page.header.packed_bytes, page.bytes.size()));
  if (!page.header.crc) return;
  const std::uint32_t found = parquet_crc(page.bytes);
  if (found != *page.header.crc)
    throw_parquet_damage(page.origin, 0,
                         fmt::format("expected a page with the checksum {:08x}, and found {:08x}",
                                     *page.header.crc, found));
}

UnpackedBytes unpack(const ParquetPageInput& page, std::span<const std::byte> packed,
                     std::uint64_t size, const ParquetLimits& limits) {
  if (page.codec == ParquetCodec::uncompressed) {
    if (packed.size() != size)
      throw_parquet_damage(page.origin, 0,
                           fmt::format("expected an uncompressed page of {} bytes, and found {}",
                                       size, packed.size()));
    return {packed, nullptr, page.origin};
  }
  require_parquet_codec(page.codec, page.origin);
  if (size == 0 && packed.empty()) return {{}, nullptr, page.origin};
  if (size > limits.page_bytes)
    throw_parquet_limit(
        page.origin, fmt::format("a page has {} bytes when decompressed; at most {} are read", size,
                                 limits.page_bytes));
  const std::uint64_t most = most_unpacked(page.codec, packed.size());
  if (size > most)
    throw_parquet_damage(
        page.origin, 0,
        fmt::format("a page of {} bytes of {} has {} when decompressed, by its header; "
                    "it cannot have more than {}",
                    packed.size(), name_of(page.codec), size, most));
  auto memory = std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
  const std::span<std::byte> out(memory.get(), static_cast<std::size_t>(size));
  decompress_parquet(page.codec, packed, out, page.origin);
  ParquetOrigin origin = page.origin;
  origin.unpacked = true;
  return {out, std::move(memory), std::move(origin)};
}

// A page that is taken apart, but for its values.
struct OpenedPage {
  ParquetLevels levels;
  UnpackedBytes values;
};

bool is_data_page(ParquetPageKind kind) noexcept {
  return kind == ParquetPageKind::data || kind == ParquetPageKind::data_v2;
}

OpenedPage open_page(const ParquetPageInput& page, const ParquetLimits& limits, bool with_values) {
  const ParquetPageHeader& header = page.header;
  if (!is_data_page(header.kind))
    throw_parquet_damage(page.origin, 0,
                         fmt::format("expected a data page, and found a {}", name_of(header.kind)));
  check_page(page);
  OpenedPage opened;
  if (header.kind == ParquetPageKind::data) {
    opened.values = unpack(page, page.bytes, header.unpacked_bytes, limits);
    opened.levels =
        read_parquet_levels(page.leaf, header, opened.values.bytes, limits, opened.values.origin);
    opened.values.bytes =
        opened.values.bytes.subspan(static_cast<std::size_t>(opened.levels.bytes));
    return opened;
  }
  opened.levels = read_parquet_levels(page.leaf, header, page.bytes, limits, page.origin);
  if ((header.rows > 0 || page.leaf.max_repetition > 0) && opened.levels.row_count() != header.rows)
    throw_parquet_damage(page.origin, 0,
                         fmt::format("expected a page of {} rows, and found {}", header.rows,
                                     opened.levels.row_count()));
  if (!with_values) return opened;
  const auto packed = page.bytes.subspan(static_cast<std::size_t>(opened.levels.bytes));
  const std::uint64_t size = header.unpacked_bytes - opened.levels.bytes;
  if (!header.is_compressed) {
    opened.values = {packed, nullptr, page.origin};
    opened.values.origin.offset += opened.levels.bytes;
  } else if (size > 0) {
    opened.values = unpack(page, packed, size, limits);
    if (page.codec == ParquetCodec::uncompressed)
      opened.values.origin.offset += opened.levels.bytes;
  }
  if (opened.values.origin.file.empty()) opened.values.origin = page.origin;
  return opened;
}

}  // namespace

Result<ParquetDecodedPage> decode_parquet_page(const ParquetPageInput& page,
                                               const ParquetValues* dictionary,
                                               const ParquetLimits& limits) {
  return parquet_result([&] {
    OpenedPage opened = open_page(page, limits, true);
    const ParquetEncoded encoded{.encoding = page.header.encoding,
                                 .count = opened.levels.present,
                                 .bytes = opened.values.bytes,
                                 .owner = opened.values.owner,
                                 .dictionary = dictionary,
                                 .is_only_checked = page.needs_levels_only};
    ParquetValues values = decode_parquet_values(page.leaf, encoded, limits, opened.values.origin);
    return ParquetDecodedPage{std::move(opened.levels), std::move(values)};
  });
}

Result<ParquetValues> decode_parquet_dictionary(const ParquetPageInput& page,
                                                const ParquetLimits& limits) {
  return parquet_result([&] {
    if (page.header.kind != ParquetPageKind::dictionary)
      throw_parquet_damage(
          page.origin, 0,
          fmt::format("expected a dictionary page, and found a {}", name_of(page.header.kind)));
    if (page.header.encoding != ParquetEncoding::plain &&
        page.header.encoding != ParquetEncoding::plain_dictionary)
      throw_parquet_unread(page.origin, fmt::format("a dictionary of {} in column '{}'",
                                                    name_of(page.header.encoding), page.leaf.path));
    if (page.header.values > limits.page_values)
      throw_parquet_limit(page.origin,
                          fmt::format("a dictionary has {} values; at most {} are read",
                                      page.header.values, limits.page_values));
    check_page(page);
    const UnpackedBytes unpacked = unpack(page, page.bytes, page.header.unpacked_bytes, limits);
    const ParquetEncoded encoded{.encoding = ParquetEncoding::plain,
                                 .count = page.header.values,
                                 .bytes = unpacked.bytes,
                                 .owner = unpacked.owner};
    ParquetValues values = decode_parquet_values(page.leaf, encoded, limits, unpacked.origin);
    if (!values.owner) {
      auto memory = std::make_shared_for_overwrite<std::byte[]>(values.bytes.size());
      std::ranges::copy(values.bytes, memory.get());
      values.bytes = {memory.get(), values.bytes.size()};
      values.owner = std::move(memory);
    }
    return values;
  });
}

Result<ParquetLevels> decode_parquet_levels(const ParquetPageInput& page,
                                            const ParquetLimits& limits) {
  return parquet_result([&] { return open_page(page, limits, false).levels; });
}

}  // namespace penstock::source
