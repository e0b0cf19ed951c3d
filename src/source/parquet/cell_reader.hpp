// source/parquet/cell_reader: what a row has in one column, from pages that are read and decoded once and kept.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <penstock/source/source.hpp>
#include <penstock/source/tables.hpp>

#include "src/core/storage_tiers.hpp"
#include "src/source/page_cache.hpp"
#include "src/source/parquet/page_numbers.hpp"
#include "src/source/parquet/snappy_blocks.hpp"
#include "src/source/parquet/table_cell.hpp"
#include "src/source/parquet/table_file.hpp"
#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

/// A row of a column.
struct ParquetCellPlace {
  std::size_t shard;
  ParquetTableFile::Place place;
  std::size_t field;
  std::uint64_t row;                            ///< of the shard
  const ShardIndex::Labels* lengths = nullptr;  ///< of the shard's lists, if its index has some
};

/// Reads the values of a column's rows that are in pages.
///
/// Owns     the pages that it keeps; refers to the shards and their files
/// Threads  const, any number at once
class ParquetCellReader {
 public:
  ParquetCellReader(const ShardSet& shards, const std::vector<ParquetTableFile>& files,
                    const ParquetOptions& options);

  /// The values of a row that begins in a page, which is given by its number in the index. What is read is counted in
  /// `record`.
  ///
  /// Errors  a fault  a page is damaged or missing, or a list has more than options.max_record_bytes
  [[nodiscard]] Result<ParquetCell> read(const ParquetCellPlace& at, std::uint64_t page,
                                         Record& record) const;
  /// Where the values of a page's rows lie in blocks, if the page is not in memory, and was before: a value can be read without
  /// the rest of the page, or of its dictionary. Null otherwise.
  [[nodiscard]] std::shared_ptr<const SnappyRows> find_in_blocks(const ParquetCellPlace& at,
                                                                 std::uint64_t page) const;
  /// Why the index has no page for a row, or for what it goes on with. The column's pages are looked at again, once for all
  /// rows of a row group.
  [[nodiscard]] Fault missing_page(const ParquetCellPlace& at) const;
  /// The pages and dictionaries in memory.
  [[nodiscard]] std::vector<StorageTier> tiers() const {
    std::vector<StorageTier> all{pages_.tier()};
    core::add_tiers(all, {dictionaries_.tier()});
    return all;
  }

 private:
  template <class T>
  using DecodedPtr = std::shared_ptr<const Decoded<T>>;
  using PagePtr = std::shared_ptr<const ParquetPageRows>;
  struct Dictionary {
    ParquetValues values;
    std::shared_ptr<const SnappyBlocks> blocks;  // null: it is read as a whole
  };
  using DictionaryPtr = std::shared_ptr<const Dictionary>;

  [[nodiscard]] Result<std::shared_ptr<const std::byte[]>> read_page(const ParquetCellPlace& at,
                                                                     const IndexedPage& page,
                                                                     Record& record) const;
  [[nodiscard]] Result<ParquetCell::Part> part_at(const ParquetCellPlace& at, std::uint64_t number,
                                                  std::uint64_t row, Record& record) const;
  [[nodiscard]] Result<PagePtr> page_at(const ParquetCellPlace& at, std::uint64_t number,
                                        Record& record) const;
  [[nodiscard]] Result<DecodedPtr<ParquetPageRows>> decode_page(const ParquetCellPlace& at,
                                                                std::uint64_t number,
                                                                Record& record) const;
  void keep_numbers(const ParquetCellPlace& at, std::uint64_t number,
                    std::span<const std::byte> file_bytes, const ParquetPageRows& rows) const;
  [[nodiscard]] Result<DictionaryPtr> dictionary_at(const ParquetCellPlace& at,
                                                    std::uint64_t number, Record& record) const;
  [[nodiscard]] Result<std::shared_ptr<const Fault>> find_damage(const ParquetCellPlace& at) const;

  const ShardSet& shards_;
  const std::vector<ParquetTableFile>& files_;
  std::uint64_t max_record_bytes_;
  std::uint64_t page_bytes_;
  mutable PageCache<Decoded<ParquetPageRows>> pages_;  // of page_bytes_
  mutable PageCache<Decoded<Dictionary>> dictionaries_;
  mutable PageCache<SnappyRows> in_blocks_;            // of pages that were decoded
  mutable PageCache<PageNumbers> numbers_;             // as these
  mutable std::atomic<std::uint64_t> part_reads_ = 0;  // by part_at()
  mutable PageCache<Fault> damage_;                    // of the column chunks that have some
};

}  // namespace penstock::source
