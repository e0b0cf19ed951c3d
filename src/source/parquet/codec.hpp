// source/parquet/codec: what pages are compressed with, where this build has the libraries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/source/parquet/format.hpp"
#include "src/source/parquet/origin.hpp"

namespace penstock::source {

/// The codecs that this build decompresses, UNCOMPRESSED first.
[[nodiscard]] std::vector<ParquetCodec> parquet_codecs();

/// Whether it is read by builds that have its library, and this one has not.
[[nodiscard]] bool lacks_parquet_codec(ParquetCodec codec);

/// Fails where the codec is not read, or this build lacks its library: the fault names both.
///
/// Errors  DataError
void require_parquet_codec(ParquetCodec codec, const ParquetOrigin& origin);

/// The CRC-32 that page headers have, which is gzip's; `before` is that of the bytes in front of these.
[[nodiscard]] std::uint32_t parquet_crc(std::span<const std::byte> bytes,
                                        std::uint32_t before = 0) noexcept;

/// The most bytes that `packed` bytes can become: what memory is taken for is checked against it.
[[nodiscard]] std::uint64_t most_unpacked(ParquetCodec codec, std::uint64_t packed) noexcept;

/// Decompresses `packed`, which must fill `out` exactly.
///
/// Errors  DataError  the bytes are damaged, are of another size, or the codec is not read
void decompress_parquet(ParquetCodec codec, std::span<const std::byte> packed,
                        std::span<std::byte> out, const ParquetOrigin& origin);

}  // namespace penstock::source
