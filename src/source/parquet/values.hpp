// source/parquet/values: the values of a page, of every encoding, as bytes of one width or as slices of bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/source/parquet/origin.hpp"
#include "src/source/parquet/schema.hpp"

namespace penstock::source {

/// A value's bytes, within ParquetValues::bytes.
struct ParquetSlice {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;
};

/// Values without the nulls between them.
///
/// Owns  `bytes`, together with copies of it, where `owner` is set; else they are those of the page that was decoded.
struct ParquetValues {
  std::uint64_t count = 0;
  std::uint32_t width = 0;  ///< bytes of each value (a BOOLEAN has one); 0: they are `slices`
  std::span<const std::byte> bytes;  ///< little-endian values, or what slices are of
  std::vector<ParquetSlice> slices;
  std::shared_ptr<const std::byte[]> owner;
  bool is_shared = false;  ///< `bytes` are those of a dictionary

  /// One value's bytes.
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t number) const {
    if (width == 0) return bytes.subspan(slices[number].begin, slices[number].bytes);
    return bytes.subspan(number * width, width);
  }
};

/// Bytes of a value of the leaf; 0 for BYTE_ARRAY.
///
/// Errors  DataError  the type is not read
[[nodiscard]] std::uint32_t parquet_width(const ParquetLeaf& leaf, const ParquetOrigin& origin);

/// Copies values of a dictionary that have a width, each index of which is below its count.
void copy_dictionary_values(std::span<const std::uint32_t> indices, const ParquetValues& dictionary,
                            std::byte* to) noexcept;

/// What values are decoded from.
struct ParquetEncoded {
  ParquetEncoding encoding = ParquetEncoding::plain;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::byte[]> owner;   ///< of the bytes, if they were decompressed
  const ParquetValues* dictionary = nullptr;  ///< where there is one
  bool is_only_checked = false;  ///< values of one width may be left out, once they are checked
};

/// Decodes values.
///
/// Errors  DataError  the bytes are damaged, or the encoding is not read for this type
[[nodiscard]] ParquetValues decode_parquet_values(const ParquetLeaf& leaf,
                                                  const ParquetEncoded& encoded,
                                                  const ParquetLimits& limits,
                                                  const ParquetOrigin& origin);

}  // namespace penstock::source
