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
    integer,  ///< its text as one integer, i64 []; kept in the index, so that it costs no read
  };
  std::string name;
  /// The member's extension, in any case: what follows the first dot of the member's name,
  /// "jpg" or "seg.png". Of several the first that a sample has is taken.
  std::vector<std::string> extensions;
  Type type = Type::bytes;
  /// True: a sample without it is a fault. False: the field is then u8 [0], or `default_value`.
  bool required = true;
  std::int64_t default_value = 0;
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
  std::vector<WebDatasetField> fields = {
      {.name = "image", .extensions = {"jpg", "jpeg", "png", "webp"}},
      {.name = "label", .extensions = {"cls"}, .type = WebDatasetField::Type::integer}};
  /// A sample that takes more is a fault, so that no single record can take all memory.
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
  IndexOptions index{};
  ObjectStorageOptions storage{};  ///< for s3:// paths
};

template <class Visitor>
void visit_fields(Visitor& visit, WebDatasetOptions& options) {
  // `storage`: as in ImageFolderOptions.
  visit("fields", options.fields);
  visit("max_record_bytes", options.max_record_bytes);
}

namespace source {

/// The samples of tar shards, in the order of the shards and, in each, of its members. Grouped as
/// the webdataset package does: a member's key is its path up to the first dot of the last
/// component, its extension is the rest, in lower case; folders, links and names like __this__ are
/// passed over, and a shard's end ends its last sample. Reads what GNU tar, BSD tar, Python's
/// tarfile and the webdataset package write: ustar, pax, GNU long names and sizes; not compressed.
///
/// A record takes one read of the shard, unless the members asked for lie more than 16 KiB apart;
/// the headers of what is read are checked again.
///
/// What is damaged is a fault of the sample that it is in, and no other sample moves:
/// - a sample without a required member, with two of them, or with one that is no integer: it keeps
///   its number and is a fault when it is read;
/// - a damaged header: the scan continues at the next good one. The sample that lacks a member
///   for it is a fault; if none does, one sample is taken to be lost, and is a fault that has its
///   number;
/// - a shard that is cut off, or empty: the sample in which it ends is a fault. How many are
///   missing after it is unknown, so the records of later shards have other numbers than with the
///   whole shard, and the fingerprint differs.
///
/// info() gives the key, the value of the integer field named "label", and the bytes of the fields
/// of Type::bytes. The fingerprint covers the fields, the shards' names, sizes and members, not the
/// folders that they lie in, nor what the members hold.
///
/// Shapes   by default image u8 [?], label i64 []; else as options.fields say.
/// Units    in memory and in the index about 20 bytes and the key's length for a sample of an image
///          and a label; opening costs about 30 ns for each.
/// Errors   std::invalid_argument  no shard, no field, more than 16 fields, a field without a name
///                                 or an extension, or a name used twice; max_record_bytes = 0
///          Error                  a shard is missing, cannot be read when it needs to be indexed,
///                                 is compressed, or changes at that time
///          Fault, from read()     as above; or the shard is gone, cannot be read, was changed
///                                 since the source was made; the sample is larger than
///                                 max_record_bytes
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
