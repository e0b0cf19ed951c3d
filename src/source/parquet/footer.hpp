// source/parquet/footer: what the end of a Parquet file says: its fields, and where each column's pages are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/source/parquet/schema.hpp"

namespace penstock::source {

/// Bytes of a file, checked to lie within it.
struct ParquetRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  [[nodiscard]] std::uint64_t end() const noexcept { return begin + bytes; }
};

/// A leaf's pages in a row group.
struct ParquetChunk {
  ParquetCodec codec = ParquetCodec::uncompressed;
  std::vector<ParquetEncoding> encodings;
  std::uint64_t values = 0;                      ///< nulls included
  std::uint64_t data_page = 0;                   ///< offset of the first data page
  std::optional<std::uint64_t> dictionary_page;  ///< offset, as far as the footer says it
  ParquetRange pages;                            ///< with their headers, the dictionary's included
  std::optional<ParquetRange> offset_index;
  bool is_encrypted = false;
  std::string other_file;  ///< where the pages are in another file
};

struct ParquetRowGroup {
  std::uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< one for each leaf
};

struct ParquetFooter {
  std::int32_t version = 0;
  std::uint64_t rows = 0;
  std::string created_by;
  std::vector<std::pair<std::string, std::string>> metadata;
  ParquetSchema schema;
  std::vector<ParquetRowGroup> row_groups;
  /// The value of a key, or nothing.
  [[nodiscard]] const std::string* find_metadata(std::string_view key) const noexcept;
};

/// Bytes at the end of a file that parquet_footer_bytes() needs.
inline constexpr std::uint64_t kParquetTail = 8;

/// Bytes at the end of a file that read_parquet_footer() needs, from the last kParquetTail of its `file_bytes`.
///
/// Errors  a fault  this is no Parquet file, it is encrypted, or the length does not fit in it
[[nodiscard]] Result<std::uint64_t> parquet_footer_bytes(std::span<const std::byte> tail,
                                                         std::uint64_t file_bytes,
                                                         const std::string& file);

/// Reads the footer from the end of a file: at least the bytes that parquet_footer_bytes() says.
///
/// Errors  a fault  the footer is damaged, or says something that its file cannot hold
[[nodiscard]] Result<ParquetFooter> read_parquet_footer(std::span<const std::byte> end,
                                                        std::uint64_t file_bytes,
                                                        const std::string& file);

}  // namespace penstock::source
