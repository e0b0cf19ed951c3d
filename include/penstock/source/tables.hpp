// source/tables: rows of tables: Parquet files, as the Hugging Face Hub has them, and Arrow data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

struct ArrowArrayStream;  // of Arrow's C stream interface

namespace PENSTOCK_EXPORT penstock {

/// One field of the rows, made of one column of the table.
struct TableColumn {
  std::string name;  ///< the field's name
  /// the column's name, "" for that of the field; "address.city" is a part of a struct. A struct of bytes and path, which is
  /// an image or audio of Hugging Face, stands for its bytes
  std::string column{};
  /// how many values a list has, (768,), or what each of its rows has, (None, 4); of bytes (n,), how many there are. (): any
  /// number of values, or of bytes, or one number
  Shape shape{};
  /// whether a row in which the value is null is a fault; if not, the field is then u8 [0], an empty list, or
  /// `default_value`
  bool required = true;
  double default_value =
      0;  ///< what a number that is null, or missing in a list, is where it is not required
  /// the name of one more field, i64 [?]: the lengths of a list's texts or bytes, which the field itself has concatenated
  std::string lengths{};
};

template <class Visitor>
void visit_fields(Visitor& visit, TableColumn& column) {
  visit.required("name", column.name);
  visit("column", column.column);
  visit("shape", column.shape);
  visit("required", column.required);
  visit("default_value", column.default_value);
  visit("lengths", column.lengths);
}

struct ParquetOptions {
  /// the fields of a record, each made of one column; none: all columns, those in structs under dotted names
  std::vector<TableColumn> columns{};
  /// a row whose fields take more is a fault, so that one row cannot take all memory
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  /// memory for pages that are decompressed and decoded, which later rows of the same pages use again
  std::uint64_t page_cache_bytes = std::uint64_t{256} << 20;
  IndexOptions index{};
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, ParquetOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("columns", options.columns);
  visit("max_record_bytes", options.max_record_bytes);
  visit.speed("page_cache_bytes", options.page_cache_bytes);
  visit.object("index", options.index);
}

struct ArrowOptions {
  /// the fields of a record, each made of one column; none: all columns, those in structs under dotted names
  std::vector<TableColumn> columns{};
  /// a row whose fields take more is a fault, so that one row cannot take all memory
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  /// memory for batches that are decompressed, which later rows of the same batches use again
  std::uint64_t batch_cache_bytes = std::uint64_t{256} << 20;
};

template <class Visitor>
void visit_fields(Visitor& visit, ArrowOptions& options) {
  visit("columns", options.columns);
  visit("max_record_bytes", options.max_record_bytes);
  visit.speed("batch_cache_bytes", options.batch_cache_bytes);
}

namespace source {

/// Rows of Parquet files, read at random through an index, in the order of the files and, in each, of its rows. `files` is a
/// path, a folder, a pattern, or a list of these; in a folder those files are taken whose names end in .parquet or .parq.
/// All files must have the columns, with the same types, and where Hugging Face's metadata name the classes of the field
/// "label", the same classes in the same order.
///
/// What a column becomes:
/// - integers, floats and booleans are numbers of the same type, []; dates, times and timestamps are the integers that they
///   are stored as, in the column's unit;
/// - texts and bytes are u8 [?], bytes of one size u8 [n];
/// - a list of numbers is [?], or the shape that its TableColumn gives; one of texts or bytes needs `lengths`;
/// - a struct of `bytes` and `path` is its bytes, u8 [?]; any other is its parts, "box.left" and so on, which lists of
///   structs have, too, each as a list;
/// - lists of lists of numbers have the shape that the TableColumn gives, [?, 4] of boxes, or that the types or Hugging Face's
///   features say; a row with an inner list of another size is a fault.
///
/// Decimals, INT96, lists of lists of texts or bytes, and files with encryption or LZ4, Brotli or LZO pages are refused by name.
///
/// A value in an uncompressed page of texts or bytes, which is how Hugging Face writes images, is one read of its own bytes.
/// Of all other pages the whole is read, decompressed and decoded at the first row that needs it, and kept within
/// page_cache_bytes: rows in their order, or a table that fits, decode each page once. Under a full shuffle of a table that
/// is much larger, each row decodes its page again, but for large texts or bytes compressed by Snappy, and numbers that are
/// uncompressed or compressed by Snappy: of a page that was decoded once, or its dictionary, the parts that have the row's values
/// are decompressed alone.
///
/// What the index says of a row, lengths and labels, is compared with the file when the row is read: where they differ the
/// row is a fault. So is one that is null where a value is required, or whose page is damaged; no other row moves.
///
/// A row's key is "file.parquet:17", and its label the value of the field "label", if that is an integer. The
/// fingerprint covers the columns, and the files' names, sizes, footers and pages, but neither the folders that they are in
/// nor the values.
///
/// Shapes  as above, in the order of `columns`, or of the table
/// Units   about 15 bytes for a row of an uncompressed image and a label, in memory and in the index, also of columns that
///         are not read
/// Errors  std::invalid_argument  no file, a column without a name, or a name used twice; max_record_bytes = 0
///         Error                  a file is missing, is no Parquet file, cannot be read when it needs to be indexed, or
///                                changes at that time; a column is missing, differs between files, or has something that
///                                is refused
/// Faults  as above; or the file is gone, cannot be read, or was changed since; the row is larger than max_record_bytes
[[nodiscard]] SourcePtr parquet(const ShardPaths& files, ParquetOptions options = {});

/// Rows of Arrow files, of the stream or the file format, at random, in the order of the files and, in each, of its rows:
/// those that Hugging Face's datasets have in their cache or write by save_to_disk(), and what else pyarrow and polars
/// write. `files` is a path, a folder, a pattern, or a list of these, on local disks. Of a folder that save_to_disk()
/// wrote, the files and the rows are those that its state.json says; of another those files whose names end in .arrow,
/// .arrows, .ipc or .feather. All files must have the columns, with the same types and classes, as in parquet().
///
/// Columns become fields as in parquet(). Lists of one size are [n], or the shape of n elements that the TableColumn gives,
/// and columns with a dictionary have the values of its entries. Decimals, intervals, maps, unions, lists of
/// lists of texts or bytes, and LZ4 are refused by name.
///
/// The files are mapped, not read, and need no index: to open one, its batches' metadata are read. A text, an image or a
/// list of numbers is a view into the mapping until it is decoded or copied into the batch. Batches that are compressed, by
/// ZSTD, are decompressed as a whole at the first row that needs them, and kept within batch_cache_bytes.
///
/// A row that is damaged, or null where a value is required, is a fault; no other row moves. A file must not become shorter
/// while it is mapped, as with arrays(). A row's key is "file.arrow:17", and its label the value of the field "label", if
/// that is an integer. The fingerprint covers the columns, and the files' names, sizes, batches, and first and last 4 KiB.
/// Source::notices() has a warning of streams without an end mark, which a program leaves that ends before it closes them.
///
/// Shapes  as above, in the order of `columns`, or of the table
/// Units   about 0.6 KB for a batch, and 1 KB for each of its columns once a row of it was read
/// Errors  std::invalid_argument  no file, or a URL; a column without a name, or a name used twice; max_record_bytes = 0
///         Error                  a file is missing, is no Arrow data, is damaged where its batches are described, or goes
///                                on behind a stream's end mark; a folder has several splits; a column is missing, differs
///                                between files, or has something that is refused
/// Faults  as above; or the row is larger than max_record_bytes
[[nodiscard]] SourcePtr arrow(const ShardPaths& files, ArrowOptions options = {});

/// Rows of a table in memory, through Arrow's C stream interface: all its batches are taken from the producer here, and
/// nothing of them is copied. `rows` are the numbers of the rows that are read, in this order; by default all. Columns
/// become fields as in arrow(); those that are left out may have any type. The fingerprint covers the columns, and values
/// of 64 rows.
///
/// Owns    moves `*stream` and releases it; the arrays are released with the source
/// Units   8 bytes a row of `rows`
/// Errors  std::invalid_argument  as in arrow()
///         Error                  the producer fails, or its arrays are not valid; it has no columns; a row that it does not
///                                have; as in arrow()
/// Faults  as in arrow()
[[nodiscard]] SourcePtr arrow_table(::ArrowArrayStream* stream, ArrowOptions options = {},
                                    std::optional<std::vector<std::uint64_t>> rows = {});

}  // namespace source
}  // namespace penstock
