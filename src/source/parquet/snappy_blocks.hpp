// source/parquet/snappy_blocks: values of a Snappy page that are decompressed without the rest of the page.
//
// Compressors cut what they are given into blocks of 64 KiB, and no copy reaches back into the block before. The format does not
// demand it, so a page is looked at once, after it was decompressed as a whole.
//
// Source  Snappy's format_description.txt, and kBlockSize of its compressor
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/source/parquet/page_rows.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// Where the blocks of one page begin: of a data page, or of the dictionary of data pages.
struct SnappyBlocks {
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 16;  ///< when decompressed

  std::vector<std::uint64_t> begins;  ///< of each block, in the file; then where the last one ends
  std::uint64_t bytes = 0;            ///< of all blocks when decompressed

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return sizeof *this + begins.capacity() * sizeof begins[0];
  }
};

/// Where the values of a data page's rows lie, in blocks of it or of its dictionary.
struct SnappyRows {
  static constexpr std::uint32_t kNull = UINT32_MAX;  ///< a slice's begin, of a row without a value

  std::shared_ptr<const SnappyBlocks> blocks;
  std::vector<ParquetSlice> values;  ///< of each row, in these; its length lies in front of it

  /// Without the blocks, which pages may share.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return sizeof *this + values.capacity() * sizeof values[0];
  }
};

/// The blocks of a page, which `file_bytes` are, with its header, and which was decoded to `values`. Null if these are small
/// against a block, or not plain texts or bytes, or if its blocks cannot be decompressed alone.
[[nodiscard]] std::shared_ptr<const SnappyBlocks> find_snappy_blocks(
    const ParquetLeaf& leaf, const ParquetChunk& chunk, const IndexedPage& page,
    std::span<const std::byte> file_bytes, const ParquetValues& values);

/// The rows of a data page, whose values lie in `blocks`.
[[nodiscard]] SnappyRows snappy_rows(std::shared_ptr<const SnappyBlocks> blocks,
                                     const ParquetPageRows& rows);

/// What is read of a page is no longer what was looked at.
[[nodiscard]] Fault changed_page(std::uint64_t offset, std::string_view what);

/// Where the blocks of a Snappy text begin, which lies at `begin` in the file and becomes so many bytes; then where the last one
/// ends. None if they cannot be decompressed alone, or the text is damaged.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> find_snappy_begins(
    std::span<const std::byte> text, std::uint64_t begin, std::uint64_t bytes);

/// Reads bytes of the file that begin at an offset.
using ReadBytes = std::function<Result<void>(std::uint64_t offset, std::span<std::byte> into)>;

/// Reads the blocks that begin at these places, the last of which is where they end, and decompresses them: they fill `out`.
///
/// Errors  a fault  they are no longer what was looked at
[[nodiscard]] Result<void> read_snappy_blocks(std::span<const std::uint64_t> begins,
                                              const ReadBytes& read, std::span<std::byte> out);

/// The first `wanted` bytes of a row's value, in memory of `record`.
///
/// Errors  a fault  what is read is no longer what was looked at, or the record has no memory for it
[[nodiscard]] Result<std::span<const std::byte>> read_snappy_value(const SnappyBlocks& blocks,
                                                                   const ParquetSlice& value,
                                                                   std::size_t wanted,
                                                                   const ReadBytes& read,
                                                                   Record& record);

}  // namespace penstock::source
