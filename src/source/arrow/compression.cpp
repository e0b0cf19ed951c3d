#include "src/source/arrow/compression.hpp"

#include <fmt/format.h>

#include "src/source/parquet/codec.hpp"

namespace penstock::source {

void require_arrow_codec(ArrowCompression compression, const ArrowOrigin& origin) {
  if (compression == ArrowCompression::lz4_frame)
    throw DataError(Fault{.reason = "a batch is compressed with LZ4_FRAME, which is not read here; "
                                    "pyarrow reads it: write the file again with "
                                    "IpcWriteOptions(compression=None), or 'zstd'",
                          .file = origin.file,
                          .offset = origin.offset});
  if (compression == ArrowCompression::zstd)
    require_parquet_codec(ParquetCodec::zstd, {.file = origin.file, .offset = origin.offset});
}

ArrowUnpacked unpack_arrow_buffer(ArrowCompression compression, std::span<const std::byte> packed,
                                  std::uint64_t most, const ArrowOrigin& origin) {
  if (packed.size() < kArrowUnpackedLength)
    throw_arrow_damage(origin, 0,
                       fmt::format("expected a compressed buffer to begin with its length, of {} "
                                   "bytes, and found {} bytes",
                                   kArrowUnpackedLength, packed.size()));
  const auto length = load_little_endian<std::int64_t>(packed);
  const auto body = packed.subspan(kArrowUnpackedLength);
  if (length == -1) return {body, nullptr};
  if (length < 0)
    throw_arrow_damage(origin, 0,
                       fmt::format("a compressed buffer has {} bytes when decompressed", length));
  require_arrow_codec(compression, origin);
  const auto size = static_cast<std::uint64_t>(length);
  if (size == 0) return {};
  if (size > most)
    throw_arrow_limit(origin,
                      fmt::format("a buffer has {} bytes when decompressed, and {} are left "
                                  "of what is read at once",
                                  size, most));
  const ParquetOrigin packed_origin{.file = origin.file, .offset = origin.offset};
  if (const std::uint64_t highest = most_unpacked(ParquetCodec::zstd, body.size()); size > highest)
    throw_arrow_damage(origin, 0,
                       fmt::format("a buffer of {} bytes of ZSTD has {} when decompressed, by its "
                                   "length; it cannot have more than {}",
                                   body.size(), size, highest));
  auto memory = std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
  const std::span<std::byte> out(memory.get(), static_cast<std::size_t>(size));
  decompress_parquet(ParquetCodec::zstd, body, out, packed_origin);
  return {out, std::move(memory)};
}

}  // namespace penstock::source
