// source/parquet/table_file: a Parquet file that is read through an index: the pages that it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/source/parquet/footer.hpp"
#include "src/source/parquet/page_rows.hpp"
#include "src/source/parquet/parquet_fields.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// Decodes a page that was read with its header. If it `needs_levels_only`, values of one width may be left out, once they are
/// checked.
///
/// Errors  a fault  it is damaged, or is no longer the one that was indexed
[[nodiscard]] Result<ParquetPageRows> decode_indexed_page(
    const ParquetLeaf& leaf, const ParquetChunk& chunk, const IndexedPage& page,
    std::shared_ptr<const std::byte[]> bytes, const ParquetValues* dictionary,
    const std::string& path, bool needs_levels_only = false);
[[nodiscard]] Result<ParquetValues> decode_indexed_dictionary(const ParquetLeaf& leaf,
                                                              const ParquetChunk& chunk,
                                                              const IndexedPage& page,
                                                              std::span<const std::byte> bytes,
                                                              const std::string& path);

/// The pages of one file's column, row group by row group.
class ParquetColumnPages {
 public:
  struct Group {
    std::uint64_t first = 0;  ///< numbers of pages in the index
    std::uint64_t last = 0;   ///< one behind
    std::optional<std::uint64_t> dictionary;
  };
  std::vector<Group> groups;
};

/// One file of a table.
class ParquetTableFile {
 public:
  /// Errors  Error  the index has a damaged footer, or the file has not the fields
  ParquetTableFile(const ShardIndex& index, std::span<const ParquetField> fields,
                   const std::string& path, const std::string& first_path);

  struct Place {
    std::size_t group = 0;
    std::uint64_t row = 0;  ///< in its group
  };
  [[nodiscard]] Place place(std::uint64_t row) const noexcept;
  [[nodiscard]] const ParquetFooter& footer() const noexcept { return footer_; }
  [[nodiscard]] const ParquetField& field(std::size_t number) const noexcept {
    return fields_[number];
  }
  [[nodiscard]] const ParquetLeaf& leaf(std::size_t field) const noexcept {
    return footer_.schema.leaves[leaves_[field]];
  }
  [[nodiscard]] std::uint32_t leaf_number(std::size_t field) const noexcept {
    return leaves_[field];
  }
  [[nodiscard]] const ParquetChunk& chunk(std::size_t field, std::size_t group) const noexcept {
    return footer_.row_groups[group].chunks[leaves_[field]];
  }
  [[nodiscard]] const ParquetColumnPages::Group& pages(std::size_t field,
                                                       std::size_t group) const noexcept {
    return pages_[field].groups[group];
  }
  /// The page in which a row of a group begins, by its number in the index; none where the index has none.
  [[nodiscard]] std::optional<std::uint64_t> page_of(const ShardIndex& index, std::size_t field,
                                                     const Place& place) const noexcept;
  /// Puts the rows of the file at which chunks begin behind `begins`, `first_row` added, as Source::chunks: the pages of the
  /// column that has most bytes in pages which are decoded as a whole, in each row group; the row group where most of these are
  /// its dictionary.
  void add_chunks(const ShardIndex& index, std::uint64_t first_row,
                  std::vector<std::uint64_t>& begins) const;

 private:
  ParquetFooter footer_;
  std::vector<ParquetField> fields_;
  std::vector<std::uint32_t> leaves_;      // of fields
  std::vector<ParquetColumnPages> pages_;  // of fields
  std::vector<std::uint64_t> group_ends_;  // rows up to the end of each group
};

}  // namespace penstock::source
