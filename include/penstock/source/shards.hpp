// source/shards: records in shards: tar files as WebDataset has them, and TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- which files make up a sharded data set, and where their indexes are kept ----

/// One or more of: the path of a shard; a folder, whose shards are taken in the order of their names' bytes; a pattern of
/// the shell: with braces, "train-{000000..000099}.tar" or "{train,val}.tar", in the order as written, or with * ? [...],
/// in the order of the paths' bytes. A file whose name is exactly what was given is taken, even where that looks like a
/// pattern. Each may be s3://bucket/key, hf://datasets/owner/name@revision/path or, as a file or with braces, https://host/path?query.
///
///   source::webdataset("imagenet/train-{000000..001023}.tar");
///   source::webdataset({"a.tar", "b.tar"});
class ShardPaths {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  ShardPaths(std::string path) : paths_{std::move(path)} {}
  ShardPaths(const char* path) : paths_{path} {}
  ShardPaths(const std::filesystem::path& path) : paths_{path.string()} {}
  ShardPaths(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  ShardPaths(std::initializer_list<std::string> paths) : paths_(paths) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] std::span<const std::string> as_given() const noexcept { return paths_; }

 private:
  std::vector<std::string> paths_;
};

/// Where an index is looked for and kept.
enum class IndexLocation {
  /// as `<file>.penstock-index` in the file's folder, hidden beside Parquet; in the cache where that cannot be, and for buckets
  next_to_data,
  cache,   ///< in the cache folder only
  memory,  ///< not kept: each opening scans the files, unless it finds an index in one of the two
};
template <>
struct EnumNames<IndexLocation> {
  static constexpr std::pair<IndexLocation, const char*> kNames[] = {
      {IndexLocation::next_to_data, "next_to_data"},
      {IndexLocation::cache, "cache"},
      {IndexLocation::memory, "memory"}};
};

/// How the indexes of a data set's files are kept and made. The records are the same with all of these options.
///
/// An index is made when a file has none, or one that does not fit: it has the file's size, time of change and checksums
/// of itself, and one that is stale or damaged is not used. It is written under another name, flushed and renamed.
/// Processes that open the same files at the same time share the work where the file system has locks; where it has none,
/// each of them does all of it.
struct IndexOptions {
  /// where an index is looked for and kept
  IndexLocation location = IndexLocation::next_to_data;
  /// the cache folder; by default $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else ~/.cache/penstock, else penstock-UID
  /// in the temporary folder; the indexes are in `indexes` there
  std::filesystem::path cache{};
  /// threads that read indexes and scan files; 0: as many as a loader takes, but at least 8, since they mostly wait for
  /// storage
  int threads = 0;
};

template <class Visitor>
void visit_fields(Visitor& visit, IndexOptions& options) {
  visit("location", options.location);
  visit("cache", options.cache);
  visit("threads", options.threads);
}

// ---- samples of tar shards in the WebDataset layout, and a writer of such shards ----

/// One field of the records, made of one member of each sample.
struct WebDatasetField {
  enum class Type : std::uint8_t {
    bytes,    ///< the member's bytes, u8 [?]
    integer,  ///< its text as one integer, i64 [], which is in the index, too, for filter()
  };
  std::string name;  ///< the field's name
  /// what follows the first dot of the member's name, "jpg" or "seg.png", in upper or lower case; of several the first that
  /// a sample has is taken
  std::vector<std::string> extensions;
  /// "bytes", the member's bytes as u8 [?], or "integer", its text as i64 [], which is in the index, too, for filter()
  Type type = Type::bytes;
  /// whether a sample without it is a fault; if not, the field is then u8 [0], or `default_value`
  bool required = true;
  std::int64_t default_value = 0;  ///< the value of an integer that is missing and not required
};

template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetField& field) {
  visit.required("name", field.name);
  visit.required("extensions", field.extensions);
  visit("type", field.type);
  visit("required", field.required);
  visit("default_value", field.default_value);
}
template <>
struct EnumNames<WebDatasetField::Type> {
  static constexpr std::pair<WebDatasetField::Type, const char*> kNames[] = {
      {WebDatasetField::Type::bytes, "bytes"}, {WebDatasetField::Type::integer, "integer"}};
};

struct WebDatasetOptions {
  /// the fields of a record, each made of one member
  std::vector<WebDatasetField> fields = {
      {.name = "image", .extensions = {"jpg", "jpeg", "png", "webp"}},
      {.name = "label", .extensions = {"cls"}, .type = WebDatasetField::Type::integer}};
  /// a sample that takes more is a fault, so that one record cannot take all memory
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  IndexOptions index{};
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("fields", options.fields);
  visit("max_record_bytes", options.max_record_bytes);
  visit.object("index", options.index);
}

namespace source {

/// Samples of tar shards in the WebDataset layout, read at random through an index, in the order of the shards and, in
/// each, of its members. `shards` is a path, a folder, a pattern such as "train-{000000..000099}.tar", or a list of these.
///
/// Members are grouped as by the webdataset package: a member's key is its path up to the first dot of the last
/// component, and its extension is the rest, in lower case. Folders, links, devices, names like __this__ and what
/// macOS adds (names that begin with "._", and all below __MACOSX/) are skipped, and a shard's end ends its last
/// sample. This reads what GNU tar, BSD tar, Python's tarfile and the webdataset package write: ustar, pax, GNU long
/// names and sizes; compressed shards are refused. A record takes one read of the shard, unless its members are more
/// than 16 KiB apart. What the index says of it, sizes, names and integers, is compared with the headers and texts
/// that are read: where they differ, the sample is a fault, since the shard was changed after it was indexed.
///
/// Damaged data are a fault of the sample that they are in, and no other sample moves:
/// - a sample without a required member, with two of them, or with one that is no integer keeps its number and is a
///   fault when it is read. Where its key comes again in the shard, whose members must then be packed in the order of
///   their names, or where it has a link in place of a file, the fault has the byte and what to do;
/// - after a damaged header the scan continues at the next good one. The sample that lacks a member because of it is a
///   fault; if none does, one sample is taken to be lost, and is a fault that has its number. What is skipped when it is
///   whole is skipped then, too, where its name and kind leave no doubt;
/// - in a shard that is cut off, or empty, the sample in which it ends is a fault. The number of samples missing after it
///   is unknown, so the records of later shards have other numbers than with the whole shard, and the fingerprint differs.
///
/// Source::notices() has a warning of shards without an end-of-archive marker, which may have been cut between two
/// members (some writers leave it out), and of links, devices and keys that come again where samples lack a member
/// because of it. It has the number of other links and devices that were skipped, and of members that macOS added.
///
/// A record's key is that of its members, its label the value of the integer field named "label", and its size the bytes
/// of the other fields. The fingerprint covers the fields, and the shards' names, sizes and members, but neither the
/// folders that they are in nor the contents of the members.
///
/// Shapes  by default image u8 [?], label i64 []
/// Units   about 20 bytes and the key's length for a sample of an image and a label, in memory and in the index; opening
///         takes about 30 ns for each
/// Errors  std::invalid_argument  no shard, no field, more than 16 fields, a field without a name or an extension, or a
///                                name used twice; max_record_bytes = 0
///         Error                  a shard is missing, cannot be read when it needs to be indexed, is compressed, or
///                                changes at that time
/// Faults  as above; or the shard is gone, cannot be read, or was changed since; the sample is larger than
///         max_record_bytes
[[nodiscard]] SourcePtr webdataset(const ShardPaths& shards, WebDatasetOptions options = {});

}  // namespace source
namespace core {
class ByteSink;
}

/// Writes one tar file, member by member: ustar, with pax records for names beyond 100 bytes. The
/// same members give the same bytes. The file appears under its name, in place of another, when it
/// is finished; without that nothing is left of it.
///
///   TarWriter shard("train-000000.tar");
///   shard.add("000017.jpg", jpeg);
///   shard.add("000017.cls", std::as_bytes(std::span("3", 1)));
///   shard.finish();
///
/// Threads  one at a time.
class TarWriter {
 public:
  /// A file, or with "s3://bucket/key" an object: it is uploaded in parts while it is written, each of which is tried five
  /// times. `storage` counts for it alone.
  ///
  /// Errors  Error  the file cannot be made
  explicit TarWriter(const std::filesystem::path& path, const ObjectStorageOptions& storage = {});
  /// What the library itself writes to.
  explicit TarWriter(std::unique_ptr<core::ByteSink> file);
  TarWriter(TarWriter&&) noexcept;
  TarWriter& operator=(TarWriter&&) noexcept;
  ~TarWriter();

  /// Errors  std::invalid_argument  the name is empty or holds a zero byte
  ///         std::logic_error       after finish()
  ///         Error                  the storage is full, or fails
  void add(std::string_view name, std::span<const std::byte> data);

  /// Size of the file if it were finished now, for beginning another shard in time.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  /// Marks the end, flushes to the storage and gives the file its name.
  ///
  /// Errors  as add
  void finish();

 private:
  std::unique_ptr<core::ByteSink> file_;
};

// ---- samples of TFRecord files, and a writer of such files ----

/// One field of the records, made of one feature of each Example. A shape whose first extent is None takes any number of
/// values, as tf.io.VarLenFeature and RaggedFeature do: `pad` makes rows of one length of them. An empty list is one without
/// rows; so is a missing one with `required` = false.
struct ExampleField {
  std::string name;  ///< the field's name
  /// the feature's name; of several the first that an Example has is taken
  std::vector<std::string> features;
  /// u8 is the one value of a bytes_list, i64 an int64_list, f32 a float_list
  DType dtype = DType::u8;
  /// the number of values of i64 and f32, () for one; of u8 the number of bytes, () for all that there are, u8 [?]. With
  /// None in front it takes any number of values: (None,) of numbers; (None, 4) a number that 4 divides, as rows of 4; of u8
  /// (None, n) values of n bytes each
  Shape shape{};
  /// whether an Example without it is a fault; if not, the field is then u8 [0], an empty list, or filled with
  /// `default_value`
  bool required = true;
  double default_value = 0;  ///< the value of a number that is missing and not required
  /// the name of one more field, i64 [?]: the lengths of values of u8 that differ in size, or of a sequence's steps that
  /// have differing numbers of values. The field itself has all of them, concatenated, as [?]
  std::string lengths{};
  /// whether it is one of the feature_lists of a tf.train.SequenceExample (without it, one of the context's features): the
  /// first extent is that of the steps, None for any number; a step has one value for (None,), n numbers, or one value of n
  /// bytes, for (None, n)
  bool sequence = false;
};

template <class Visitor>
void visit_fields(Visitor& visit, ExampleField& field) {
  visit.required("name", field.name);
  visit.required("features", field.features);
  visit("dtype", field.dtype);
  visit("shape", field.shape);
  visit("required", field.required);
  visit("default_value", field.default_value);
  visit.later("lengths", field.lengths);
  visit.later("sequence", field.sequence);
}

struct TfRecordOptions {
  /// the fields of a record, each made of one feature
  std::vector<ExampleField> fields = {
      {.name = "image", .features = {"image/encoded", "image"}},
      {.name = "label", .features = {"image/class/label", "label"}, .dtype = DType::i64}};
  /// whether a record's checksum is compared when it is read, which takes about 0.15 ms for each MB
  bool verify = true;
  /// a larger record is a fault, so that one record cannot take all memory
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  IndexOptions index{};
  ObjectStorageOptions storage{};  ///< for s3://, hf:// and https:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, TfRecordOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("fields", options.fields);
  visit("max_record_bytes", options.max_record_bytes);
  visit("verify", options.verify);
  visit.object("index", options.index);
}

namespace source {

/// tf.train.Examples and SequenceExamples of TFRecord files, read at random through an index, in the order of the files and, in each, of its
/// records. `files` is a path, a folder, a pattern, or a list of these; in a folder those files are taken whose names end
/// in .tfrecord, .tfrecords, .tfrec or .record, or in -00000-of-00010. This reads what TensorFlow writes without
/// compression. Features that no field names are skipped.
///
/// Damaged data are a fault of their record, and no other record moves:
/// - a record whose checksum is wrong, that is no Example, lacks a required feature, or has another kind or number of
///   values keeps its number and is a fault when it is read; so is one whose lists take more than max_record_bytes;
/// - after a damaged length the scan continues at the next good one, and the bytes between are one record, which is a
///   fault;
/// - in a file that is cut off the record in which it ends is a fault. The number of records missing after it is unknown,
///   so the records of later files have other numbers than with the whole file, and the fingerprint differs. An empty file
///   has no records.
///
/// A record's key is "<file's name>:<number in the file>", its label the value of the field named "label" if that is one
/// i64 (it is kept in the index). The fingerprint covers the fields, the files' names and sizes, and the records'
/// lengths, but neither the folders that they are in nor the contents of the records.
///
/// Shapes  by default image u8 [?], label i64 []; a field with `lengths` is followed by that of its lengths; views of bytes
///         are not aligned
/// Units   about 7 bytes for a record and 2 for its label, in memory and in the index
/// Errors  std::invalid_argument  no file, no field, more than 16 fields, a field without a name or a feature, a name used
///                                twice, a type or shape that no feature has; max_record_bytes = 0
///         Error                  a file is missing, cannot be read when it needs to be indexed, is compressed, or changes
///                                at that time
/// Faults  as above; or the file is gone, cannot be read, or was changed since; the record is larger than
///         max_record_bytes
[[nodiscard]] SourcePtr tfrecord(const ShardPaths& files, TfRecordOptions options = {});

}  // namespace source
namespace core {
class OutputFile;
}

/// Encodes a tf.train.Example, feature by feature, in the order in which they are added.
///
/// Threads  a value.
class ExampleWriter {
 public:
  void add_bytes(std::string_view name, std::span<const std::byte> value);
  void add_integers(std::string_view name, std::span<const std::int64_t> values);
  void add_floats(std::string_view name, std::span<const float> values);

  /// The message.
  [[nodiscard]] std::string encode() const;
  /// Forgets the features, for the next message.
  void clear() noexcept { features_.clear(); }

 private:
  void add(std::string_view name, int kind, std::string_view list);
  std::string features_;
};

/// Writes one TFRecord file, record by record. The file appears under its name, in place of
/// another, when it is finished; without that nothing is left of it.
///
///   TfRecordWriter file("train-00000-of-00001");
///   file.add(std::as_bytes(std::span(example.encode())));
///   file.finish();
///
/// Threads  one at a time.
class TfRecordWriter {
 public:
  /// Errors  Error  the file cannot be made
  explicit TfRecordWriter(const std::filesystem::path& path);
  TfRecordWriter(TfRecordWriter&&) noexcept;
  TfRecordWriter& operator=(TfRecordWriter&&) noexcept;
  ~TfRecordWriter();

  /// Errors  std::logic_error  after finish()
  ///         Error             the storage is full, or fails
  void add(std::span<const std::byte> record);

  /// Size of the file so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept;

  /// Flushes to the storage and gives the file its name.
  ///
  /// Errors  as add
  void finish();

 private:
  std::unique_ptr<core::OutputFile> file_;
};

}  // namespace penstock
