// source/tfrecord: samples of TFRecord files, and a writer of such files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace penstock {

/// One field of the records, made of one feature of each Example.
struct ExampleField {
  std::string name;  ///< the field's name
  /// the feature's name; of several the first that an Example has is taken
  std::vector<std::string> features;
  /// u8 is the one value of a bytes_list, i64 an int64_list, f32 a float_list
  DType dtype = DType::u8;
  /// the number of values of i64 and f32, () for one; of u8 the number of bytes, () for all that there are, u8 [?]
  Shape shape{};
  /// whether an Example without it is a fault; if not, the field is then u8 [0], or filled with `default_value`
  bool required = true;
  double default_value = 0;  ///< the value of a number that is missing and not required
};

template <class Visitor>
void visit_fields(Visitor& visit, ExampleField& field) {
  visit.required("name", field.name);
  visit.required("features", field.features);
  visit("dtype", field.dtype);
  visit("shape", field.shape);
  visit("required", field.required);
  visit("default_value", field.default_value);
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
  ObjectStorageOptions storage{};  ///< for s3:// paths
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

/// tf.train.Examples of TFRecord files, read at random through an index, in the order of the files and, in each, of its
/// records. `files` is a path, a folder, a pattern, or a list of these; in a folder those files are taken whose names end
/// in .tfrecord, .tfrecords, .tfrec or .record, or in -00000-of-00010. This reads what TensorFlow writes without
/// compression. Features that no field names are skipped.
///
/// Damaged data are a fault of their record, and no other record moves:
/// - a record whose checksum is wrong, that is no Example, lacks a required feature, or has another kind or number of
///   values keeps its number and is a fault when it is read;
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
/// Shapes  by default image u8 [?], label i64 []; views of bytes are not aligned
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
