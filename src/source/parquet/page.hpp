// source/parquet/page: one page of a column, decoded.
#pragma once

#include <cstdint>
#include <span>

#include "src/source/parquet/levels.hpp"
#include "src/source/parquet/page_header.hpp"
#include "src/source/parquet/values.hpp"

namespace penstock::source {

/// The page's levels, and the values of those slots that have one, in order.
struct ParquetDecodedPage {
  ParquetLevels levels;
  ParquetValues values;
};

/// What a page is of. `origin` is that of the page's bytes, behind its header.
struct ParquetPageInput {
  const ParquetLeaf& leaf;
  ParquetCodec codec = ParquetCodec::uncompressed;
  const ParquetPageHeader& header;
  std::span<const std::byte> bytes;  ///< in the file, without the header
  const ParquetOrigin& origin;
  bool needs_levels_only = false;  ///< values of one width may be left out, once they are checked
};

/// Decodes a DATA_PAGE or DATA_PAGE_V2, whose checksum is checked if it has one. `dictionary` is null where its chunk
/// has none.
///
/// Owns    the result refers to the page's bytes where they are neither compressed nor encoded, and shares the
///         dictionary's memory
/// Errors  a fault  the page is damaged, larger than the limits, or has something that is not read
[[nodiscard]] Result<ParquetDecodedPage> decode_parquet_page(const ParquetPageInput& page,
                                                             const ParquetValues* dictionary,
                                                             const ParquetLimits& limits = {});

/// Decodes a DICTIONARY_PAGE. The result owns its bytes.
///
/// Errors  a fault  as above
[[nodiscard]] Result<ParquetValues> decode_parquet_dictionary(const ParquetPageInput& page,
                                                              const ParquetLimits& limits = {});

/// The levels of a DATA_PAGE or DATA_PAGE_V2 without its values.
///
/// Errors  a fault  as above
[[nodiscard]] Result<ParquetLevels> decode_parquet_levels(const ParquetPageInput& page,
                                                          const ParquetLimits& limits = {});

}  // namespace penstock::source
