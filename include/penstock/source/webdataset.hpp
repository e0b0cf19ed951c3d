// source/webdataset: samples of tar shards in the WebDataset layout, and a writer of such shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/enum_names.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>
#include <penstock/storage/object_storage.hpp>

namespace penstock {

/// One field of the records, made of one member of each sample.
struct WebDatasetField {
  enum class Type : std::uint8_t {
    bytes,    ///< the member's bytes, u8 [?]
    integer,  ///< its text as one integer, i64 [], which is kept in the index and costs no read
  };
  std::string name;  ///< the field's name
  /// what follows the first dot of the member's name, "jpg" or "seg.png", in upper or lower case; of several the first that
  /// a sample has is taken
  std::vector<std::string> extensions;
  /// "bytes", the member's bytes as u8 [?], or "integer", its text as i64 [], which is kept in the index and costs no read
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
  ObjectStorageOptions storage{};  ///< for s3:// paths
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
/// Members are grouped as by the webdataset package: a member's key is its path up to the first dot of the last component,
/// and its extension is the rest, in lower case. Folders, links and names like __this__ are skipped, and a shard's end ends
/// its last sample. This reads what GNU tar, BSD tar, Python's tarfile and the webdataset package write: ustar, pax, GNU
/// long names and sizes; compressed shards are refused. A record takes one read of the shard, unless its members are more
/// than 16 KiB apart; the headers of what is read are checked again.
///
/// Damaged data are a fault of the sample that they are in, and no other sample moves:
/// - a sample without a required member, with two of them, or with one that is no integer keeps its number and is a fault
///   when it is read;
/// - after a damaged header the scan continues at the next good one. The sample that lacks a member because of it is a
///   fault; if none does, one sample is taken to be lost, and is a fault that has its number;
/// - in a shard that is cut off, or empty, the sample in which it ends is a fault. The number of samples missing after it
///   is unknown, so the records of later shards have other numbers than with the whole shard, and the fingerprint differs.
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

}  // namespace penstock
