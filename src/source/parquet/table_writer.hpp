// source/parquet/table_writer: a Parquet file of images, integers, texts and bytes, written row by row.
//
// Source  github.com/apache/parquet-format: README.md, PageIndex.md, Encodings.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/core/byte_sink.hpp"
#include "src/source/parquet/footer.hpp"

namespace penstock::source {

/// A column of a file that is written. Each of its values may be null.
struct ParquetOutputColumn {
  enum class Kind : std::uint8_t {
    image,    ///< a struct of `bytes` and `path`, which are two leaves
    integer,  ///< INT64
    text,     ///< UTF-8
    bytes,
  };
  std::string name;
  Kind kind = Kind::bytes;
  std::vector<std::string> class_names{};  ///< of integers that are a ClassLabel
};

/// A null, or the value of a leaf. Bytes stay valid for the call alone.
using ParquetOutputValue = std::variant<std::monostate, std::int64_t, std::span<const std::byte>>;

/// The schema of such columns, as pyarrow makes it of Hugging Face's features.
[[nodiscard]] ParquetSchema make_parquet_schema(std::span<const ParquetOutputColumn> columns);

/// The value of the key "huggingface": the columns' features, as `datasets` writes them.
[[nodiscard]] std::string huggingface_metadata(std::span<const ParquetOutputColumn> columns);

/// The most bytes that a value may have: the size of a page is an i32.
inline constexpr std::uint64_t kMostParquetValue = (std::uint64_t{1} << 31) - 4096;

/// Pages of version 1, PLAIN and uncompressed, of about 1 MiB, with their CRC; row groups of at most 100 rows, as Hugging Face
/// has them for media, and of about 100 MB; an OffsetIndex for each leaf, and a ColumnIndex where the least and the largest
/// value of its pages are known. The bytes are a function of the rows alone: nothing is compressed, since libraries that do
/// that change their output between their versions.
///
/// Pages of the first leaf are written when they are full, those of the others at the end of their row group: so much of the
/// file is in memory.
///
/// Threads  one at a time.
class ParquetTableWriter {
 public:
  /// Errors  Error  the file cannot be written
  ParquetTableWriter(std::unique_ptr<core::ByteSink> to,
                     std::span<const ParquetOutputColumn> columns);

  /// A row: a value of each leaf.
  ///
  /// Errors  std::invalid_argument  a value has more than kMostParquetValue bytes, or there are more or fewer than the leaves
  ///         Error                  the storage is full, or fails
  void add(std::span<const ParquetOutputValue> row);
  /// Writes the rows that are still in memory, the indexes of the pages, and the footer.
  void end();
  /// After end(): the file appears under its name.
  void finish() { to_->finish(); }

  /// Bytes written so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return to_->bytes(); }
  [[nodiscard]] const ParquetSchema& schema() const noexcept { return schema_; }
  /// After end(): the last bytes of the file, with which a reader begins.
  [[nodiscard]] std::span<const std::byte> footer() const noexcept {
    return std::as_bytes(std::span(footer_));
  }

  /// What a byte of the file is part of; with the headers of pages, which belong to their first value.
  struct Part {
    std::uint32_t leaf = 0;
    std::uint64_t row = 0;
  };
  /// None for the indexes of the pages, and the footer.
  [[nodiscard]] std::optional<Part> part_at(std::uint64_t offset) const;

 private:
  // The least and the largest value of some, in an order of bytes; none, if all are null.
  struct Bounds {
    bool are_known = true;
    std::optional<std::string> least;
    std::optional<std::string> largest;
    void add(std::string_view value);
    void add(const Bounds& others);
  };
  struct Page {
    std::uint64_t first_row = 0;  // in its row group
    std::vector<std::uint8_t> definition;
    std::vector<std::byte> values;
    std::vector<std::size_t> ends;  // of each that is there
    Bounds bounds;
  };
  struct WrittenPage {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;  // with its header
    std::uint64_t first_row = 0;
    std::uint64_t nulls = 0;
    Bounds bounds;
  };
  struct Chunk {
    std::vector<WrittenPage> pages;
    std::optional<ParquetRange> column_index;
    ParquetRange offset_index;
    [[nodiscard]] std::uint64_t begin() const { return pages.front().offset; }
    [[nodiscard]] std::uint64_t bytes() const {
      return pages.back().offset + pages.back().bytes - begin();
    }
  };
  struct Group {
    std::uint64_t rows = 0;
    std::vector<Chunk> chunks;  // of each leaf
  };

  void put(std::uint32_t leaf, const ParquetOutputValue& value);
  void end_page(std::uint32_t leaf);
  void write_page(std::uint32_t leaf, const Page& page);
  void end_group();
  void write(std::string_view text) { to_->write(std::as_bytes(std::span(text))); }
  void write_column_index(Chunk& chunk, const ParquetLeaf& leaf);
  void write_offset_index(Chunk& chunk);
  [[nodiscard]] std::string encode_footer() const;

  std::unique_ptr<core::ByteSink> to_;
  ParquetSchema schema_;
  std::string metadata_;
  std::vector<Page> open_;                  // of each leaf
  std::vector<std::vector<Page>> waiting_;  // of each leaf: full, and not yet written
  Group group_;                             // that is open
  std::uint64_t group_bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t rows_in_groups_ = 0;  // that are written
  std::vector<Group> groups_;
  std::vector<std::pair<std::uint64_t, Part>> parts_;  // where each ends
  std::string footer_;
};

}  // namespace penstock::source
