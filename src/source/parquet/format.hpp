// source/parquet/format: the numbers that Parquet gives to types, encodings, codecs and pages, and their names.
//
// Source  github.com/apache/parquet-format, parquet.thrift.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::source {

enum class ParquetType : std::uint8_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_len_byte_array = 7,
};

enum class ParquetEncoding : std::uint8_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9,
};

enum class ParquetCodec : std::uint8_t {
  uncompressed = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4 = 5,
  zstd = 6,
  lz4_raw = 7,
};

enum class ParquetPageKind : std::uint8_t {
  data = 0,
  index = 1,
  dictionary = 2,
  data_v2 = 3,
};

/// "BYTE_ARRAY", as the specification writes it; "type 9" for unknown numbers. So the others.
[[nodiscard]] std::string name_of(ParquetType type);
[[nodiscard]] std::string name_of(ParquetEncoding encoding);
[[nodiscard]] std::string name_of(ParquetCodec codec);
[[nodiscard]] std::string name_of(ParquetPageKind kind);

}  // namespace penstock::source
