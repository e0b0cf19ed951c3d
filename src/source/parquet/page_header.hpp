// source/parquet/page_header: what stands in front of each page of a column chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/source/parquet/format.hpp"
#include "src/source/parquet/origin.hpp"

namespace penstock::source {

struct ParquetPageHeader {
  ParquetPageKind kind = ParquetPageKind::data;
  std::uint32_t header_bytes = 0;
  std::uint32_t packed_bytes = 0;    ///< of the page in the file, without its header
  std::uint32_t unpacked_bytes = 0;  ///< of the page when decompressed
  std::optional<std::uint32_t> crc;  ///< CRC-32 of the packed bytes
  std::uint32_t values = 0;          ///< nulls included; of an INDEX_PAGE 0
  ParquetEncoding encoding = ParquetEncoding::plain;
  // DATA_PAGE only
  ParquetEncoding definition_encoding = ParquetEncoding::rle;
  ParquetEncoding repetition_encoding = ParquetEncoding::rle;
  // DATA_PAGE_V2 only
  std::uint32_t nulls = 0;
  std::uint32_t rows = 0;
  std::uint32_t definition_bytes = 0;
  std::uint32_t repetition_bytes = 0;
  bool is_compressed = true;  ///< the values; the levels never are
};

/// Reads the header that `bytes` begin with. `ran_out` becomes whether more bytes may help.
///
/// Errors  a fault  the header is damaged, or its sizes contradict each other
[[nodiscard]] Result<ParquetPageHeader> read_parquet_page_header(std::span<const std::byte> bytes,
                                                                 const ParquetOrigin& origin,
                                                                 bool* ran_out = nullptr);

/// The header of a DATA_PAGE, as it stands in a file.
[[nodiscard]] std::string encode_parquet_page_header(const ParquetPageHeader& header);

}  // namespace penstock::source
