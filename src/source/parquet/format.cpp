#include "src/source/parquet/format.hpp"

#include <array>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "src/source/parquet/origin.hpp"

namespace penstock::source {

namespace {

std::string parquet_name(std::span<const std::string_view> names, std::string_view kind,
                         unsigned number) {
  if (number < names.size() && !names[number].empty()) return std::string(names[number]);
  return fmt::format("{} {}", kind, number);
}

}  // namespace

std::string name_of(ParquetType type) {
  static constexpr std::array<std::string_view, 8> kNames{
      "BOOLEAN", "INT32",  "INT64",      "INT96",
      "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  return parquet_name(kNames, "type", static_cast<unsigned>(type));
}

std::string name_of(ParquetEncoding encoding) {
  static constexpr std::array<std::string_view, 11> kNames{"PLAIN",
                                                           "",
                                                           "PLAIN_DICTIONARY",
                                                           "RLE",
                                                           "BIT_PACKED",
                                                           "DELTA_BINARY_PACKED",
                                                           "DELTA_LENGTH_BYTE_ARRAY",
                                                           "DELTA_BYTE_ARRAY",
                                                           "RLE_DICTIONARY",
                                                           "BYTE_STREAM_SPLIT",
                                                           "ALP"};
  return parquet_name(kNames, "encoding", static_cast<unsigned>(encoding));
}

std::string name_of(ParquetCodec codec) {
  static constexpr std::array<std::string_view, 8> kNames{
      "UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"};
  return parquet_name(kNames, "codec", static_cast<unsigned>(codec));
}

std::string name_of(ParquetPageKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"DATA_PAGE", "INDEX_PAGE",
                                                          "DICTIONARY_PAGE", "DATA_PAGE_V2"};
  return parquet_name(kNames, "page type", static_cast<unsigned>(kind));
}

void throw_parquet_damage(const ParquetOrigin& origin, std::uint64_t at, std::string reason) {
  if (origin.unpacked) {
    reason += fmt::format(" (byte {} of the page's decompressed bytes)", at);
    at = 0;
  }
  reason += ": the file is damaged, or was not written completely: write or download it again";
  throw DataError(
      Fault{.reason = std::move(reason), .file = origin.file, .offset = origin.offset + at});
}

void throw_parquet_limit(const ParquetOrigin& origin, const std::string& reason) {
  throw DataError(Fault{.reason = reason + ": write the file again with smaller pages (in pyarrow: "
                                           "data_page_size, dictionary_pagesize_limit)",
                        .file = origin.file,
                        .offset = origin.offset});
}

void throw_parquet_unread(const ParquetOrigin& origin, const std::string& what) {
  throw DataError(Fault{.reason = fmt::format("{} is not read here; pyarrow reads it: write the "
                                              "column again with pyarrow and its defaults",
                                              what),
                        .file = origin.file,
                        .offset = origin.offset});
}

}  // namespace penstock::source
