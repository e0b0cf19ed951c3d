// source/parquet/page_numbers: the numbers of a few rows of a page, read without the rest of the page.
//
// Rows of lists of numbers, such as documents of tokens, are small against their pages. Of a page that was decoded, this keeps where
// its blocks of 64 KiB begin, and where the runs of its encoded numbers begin in them: about 24 bytes for each block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/source/parquet/page_rows.hpp"
#include "src/source/parquet/snappy_blocks.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// How many values each row of a page has, as an index says; `first` is the page's first row.
struct IndexedLengths {
  const ShardIndex::Labels* labels = nullptr;  ///< of the shard's rows; null: it does not say
  std::uint64_t first = 0;
  /// Of a row of the page. A row without a list has 0.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t row) const noexcept {
    if (labels->state(first + row) != LabelState::known) return 0;
    return static_cast<std::uint64_t>(labels->value(first + row));
  }
};

/// A page of numbers none of which is null, uncompressed or in Snappy blocks that can be decompressed alone.
struct PageNumbers {
  /// Numbers of a page, by the place of the first, and how many there are.
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  /// The first run of indices that begins in a block.
  struct Run {
    std::uint32_t first = 0;  ///< place of its first number
    std::uint32_t at = 0;     ///< of its header, among the encoded numbers
  };
  static constexpr std::uint64_t kRowsBetween = 64;

  std::vector<std::uint64_t> begins;  ///< of each block, in the file; then where the last one ends
  std::uint64_t bytes = 0;            ///< of all blocks when decompressed
  bool is_packed = false;             ///< by Snappy
  std::uint64_t encoded_at = 0;       ///< where the encoded numbers begin, in these
  std::uint32_t width = 0;            ///< bytes of a number
  std::uint64_t count = 0;            ///< of the numbers
  unsigned index_bits = 0;
  bool is_plain = false;  ///< numbers, and not indices of a dictionary
  std::vector<Run> runs;  ///< of indices
  std::uint64_t leading =
      0;  ///< numbers in front of the first row: of a list that began in another page
  std::optional<std::uint64_t> row_values;       ///< of each row; none: as the index says
  std::vector<std::uint32_t> row_begins;         ///< then where every kRowsBetween-th row begins
  mutable std::atomic<std::uint64_t> reads = 0;  ///< of rows, lately: see count_read()
  mutable std::atomic<std::uint64_t> in_order =
      0;  ///< the last row, and how many before it were near

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return sizeof *this + begins.capacity() * sizeof begins[0] + runs.capacity() * sizeof runs[0] +
           row_begins.capacity() * sizeof row_begins[0];
  }
  /// Where the numbers of a row are; none if it has none, and may be null.
  [[nodiscard]] std::optional<Range> find(std::uint64_t row,
                                          const IndexedLengths& lengths) const noexcept;
  /// A read of a row.
  struct Read {
    std::uint64_t row = 0;
    std::uint64_t number = 0;  ///< of the reads of all pages
    std::uint64_t room = 0;    ///< bytes of pages that the cache holds
    bool is_remote = false;
  };
  /// Counts it. Whether the page should be decoded as a whole: its rows come one after another, or no more pages than the cache
  /// holds are read so often that its decoding is cheaper.
  [[nodiscard]] bool count_read(const Read& read) const noexcept;
};

/// Of a page, which `file_bytes` are, with its header, and which was decoded to `rows`. Null if it is small, has nulls or another
/// encoding, or if its blocks cannot be decompressed alone.
[[nodiscard]] std::shared_ptr<const PageNumbers> find_page_numbers(
    const ParquetLeaf& leaf, const ParquetChunk& chunk, const IndexedPage& page,
    std::span<const std::byte> file_bytes, const ParquetPageRows& rows,
    const IndexedLengths& lengths);

/// Reads some numbers; `dictionary` is null where the page has none. What is read is counted in `record`.
///
/// Errors  a fault  what is read is no longer what was looked at
[[nodiscard]] Result<ParquetValues> read_page_numbers(const PageNumbers& page,
                                                      const PageNumbers::Range& range,
                                                      const ParquetValues* dictionary,
                                                      const ReadBytes& read, Record& record);

}  // namespace penstock::source
