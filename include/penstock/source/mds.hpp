// source/mds: rows of MDS data sets, as MosaicML's streaming writes them, and of LitData's.
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

namespace PENSTOCK_EXPORT penstock {

/// One field of the rows, made of one column of an MDS data set, or one value of LitData's.
struct MdsColumn {
  std::string name;      ///< the field's name
  std::string column{};  ///< the column's name, "" for that of the field
  /// what each row of an array has, (768,), or (None, 4) where the number of rows differs; of bytes (n,), how many there are.
  /// (): any number of values, or of bytes, or one number
  Shape shape{};
  /// the type of the values: of `ndarray` without a type in its encoding; of `bytes` that are an array; i64 for integers of
  /// fewer bits. By default that of the encoding
  std::optional<DType> dtype{};
  /// the name of one more field, i64 [?]: the lengths of a list's images, which the field itself has concatenated
  std::string lengths{};
};

template <class Visitor>
void visit_fields(Visitor& visit, MdsColumn& column) {
  visit.required("name", column.name);
  visit("column", column.column);
  visit("shape", column.shape);
  visit("dtype", column.dtype);
  visit("lengths", column.lengths);
}

struct MdsOptions {
  /// the fields of a record, each made of one column; none: all columns
  std::vector<MdsColumn> columns{};
  /// a row that takes more is a fault, so that one row cannot take all memory
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  /// room on the disk for shards that are decompressed, in `shards` of the cache folder; those used longest ago are removed
  std::uint64_t unpacked_bytes = std::uint64_t{64} << 30;
  IndexOptions index{};
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, MdsOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("columns", options.columns);
  visit("max_record_bytes", options.max_record_bytes);
  visit.speed("unpacked_bytes", options.unpacked_bytes);
  visit.object("index", options.index);
}

namespace source {

/// Rows of MDS data sets, which MosaicML's streaming writes, read at random, in the order of index.json. `folders` is a folder
/// with an index.json, such as "data/train", or a list of these, one after the other, which have the same columns. Nothing is
/// copied or converted.
///
/// What a column becomes, by its encoding:
/// - int, int8 to int64, uint8 to uint64, float16 to float64: a number of the same type, []; int is i64;
/// - str_int: i64 []; str_float: f64 [];
/// - bytes, str, json, str_decimal, jpeg, png: the bytes, u8 [?]; bytes with a `dtype` are an array of it;
/// - ndarray:TYPE:SHAPE: TYPE [SHAPE]; ndarray:TYPE: TYPE [?], a row with more than one dimension needs a `shape`; ndarray
///   needs a `dtype`, too;
/// - jpegarray, list[jpeg], list[png]: all images concatenated, u8 [?], and their lengths as a second field.
///
/// pkl, pil and list[pil] are refused by name, as are shards of the formats json and csv, and compressions other than zstd.
///
/// A folder that litdata.optimize() wrote is read, too. Its columns are the values of a sample: "box.left" of a dict in a dict,
/// "0" and "1" of a tuple, "value" where it is all there is. By the name of its serializer:
/// - int, float, bool: i64, f64, bool []; str, text, json, bytes, jpeg, image: the bytes, u8 [?];
/// - no_header_numpy, no_header_tensor: their type [?]; numpy, tensor: as ndarray, they need a `dtype`.
/// Others are refused by name, and so is data that is compressed, encrypted, or written for another loader of LitData's.
///
/// The first opening reads the header of each shard, and where a field "label" is an integer each row's label, into an index,
/// which is kept beside the shard. A row is then one read of its bytes; where some columns are left out, one or two reads of those
/// that are needed. A shard that is compressed is decompressed as a whole into the cache folder at the first row that needs
/// it, and again after it was removed there: a full shuffle of data larger than unpacked_bytes decompresses a shard for
/// almost each row. A shard that lies beside it decompressed is read in its place.
///
/// What index.json and the index say is compared with the shard: sizes and numbers of rows at the opening, the sizes of a
/// row's columns and its label when it is read. A row whose place in the header is damaged is a fault; no other row moves.
///
/// Offsets, in names of rows and in faults, are those of the decompressed shard. A row's key is "shard.00000.mds:17", and its
/// label the value of the field "label", if that is an integer. The fingerprint covers the columns, and the shards' names,
/// decompressed sizes, hashes and the places of their rows, but neither the folders that they are in nor the values.
///
/// Source  mosaicml/streaming: streaming/base/format/mds; Lightning-AI/litData: streaming/serializers.py
/// Shapes  as above, in the order of `columns`, or of index.json
/// Units   about 7 bytes for a row, in memory and in the index
/// Errors  std::invalid_argument  no folder, a column without a name, a name used twice, or a shape or dtype that does not fit
///                                its column; max_record_bytes = 0
///         Error                  index.json is missing, is no MDS index, or has something that is refused; a shard is missing,
///                                or has another size or number of rows than index.json says; no such column
/// Faults  as above; or the shard is gone, cannot be read or decompressed, or was changed since; the row is larger than
///         max_record_bytes
[[nodiscard]] SourcePtr mds(const ShardPaths& folders, MdsOptions options = {});

}  // namespace source
}  // namespace penstock
