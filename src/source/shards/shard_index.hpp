// source/shards/shard_index: where the records of one shard lie, as it is kept in a file of its
// own.
//
// The file, all little-endian: a header (see FileHeader in the .cpp), then a body, which is a table
// of sections and the sections. A section is a column of numbers or of bytes; a reader that does
// not know its id skips it, so a later writer may add some (a checksum for each record has its id
// already). What cannot be passed over raises the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/source/shards/packed_column.hpp"
#include "src/storage/stored_file.hpp"

namespace penstock::source {

enum class ShardKind : std::uint32_t {
  tar = 1,
  tfrecord = 2,
  tokens = 3,
  parquet = 4,
  mds = 5,
  mds_zipped = 6,  ///< places are those of the decompressed shard
};

/// What tells whether a shard is still the one that was indexed.
using ShardStamp = storage::FileStamp;

/// What a damaged stretch of a shard is.
enum class DamageKind : std::uint8_t {
  none,
  cut_header,    ///< the file ends within a header
  cut_data,      ///< the file ends within what a header announces
  bad_header,    ///< a header whose checksum or fields are wrong
  bad_extended,  ///< an invalid pax header or GNU long name
  zeros,         ///< the end mark of a tar file, with members behind it
  empty,         ///< a tar file of 0 bytes
  sparse,        ///< a kind of member that no reader here understands
  bad_place,  ///< of an MDS row, by the shard's header: before other bytes of it, or beyond its end
};

struct Damage {
  std::uint64_t record = 0;
  std::uint64_t begin = 0;  ///< bytes of the shard
  std::uint64_t end = 0;
  DamageKind kind = DamageKind::none;
};

/// What may explain that a record lacks something. It is no damage: the record may be whole.
enum class HintKind : std::uint8_t {
  key_again,  ///< other members with the record's key lie elsewhere
  hard_link,  ///< a member of the sample that is no regular file
  symbolic_link,
  special_file,  ///< a device or a pipe
};

struct Hint {
  std::uint64_t record = 0;  ///< the number of records: of what makes no record at all
  std::uint64_t at = 0;      ///< byte of the shard: the header of what the hint is about
  HintKind kind{};
};

/// What a user should know of a shard as a whole.
struct ShardRemarks {
  bool has_end_mark = true;         ///< the zero blocks at the end of a tar file
  std::uint64_t apple_members = 0;  ///< left out: AppleDouble files, and what is below __MACOSX/
  std::uint64_t hard_links = 0;  ///< left out, as the next two: they have names of samples' members
  std::uint64_t symbolic_links = 0;
  std::uint64_t special_files = 0;

  friend bool operator==(const ShardRemarks&, const ShardRemarks&) = default;
};

/// One stretch of the shard: a member of a tar file's sample, or a whole TFRecord.
struct Member {
  std::uint64_t begin = 0;  ///< of its data
  std::uint64_t bytes = 0;
  std::uint64_t extension = 0;  ///< index into extensions
  bool own_size = true;         ///< the header before the data holds this size
  bool own_name = true;         ///< and this name, as far as it has room for it
};

/// A page of a column of a Parquet file, and the rows that begin in it.
struct IndexedPage {
  enum class Kind : std::uint8_t {
    values,      ///< to be decoded
    ranges,      ///< its values are members of their records
    dictionary,  ///< of the values of the same column and row group
  };
  std::uint64_t group = 0;   ///< number of its row group
  std::uint64_t column = 0;  ///< number of its column
  Kind kind = Kind::values;
  std::uint64_t begin = 0;      ///< of its header
  std::uint64_t bytes = 0;      ///< with its header
  std::uint64_t first_row = 0;  ///< in its row group
  std::uint64_t rows = 0;
};

/// What is known of a record's label.
enum class LabelState : std::uint8_t {
  missing,  ///< the record has no such member or feature
  known,
  unreadable,  ///< it has one that is not one integer
};

/// What the scan of a shard finds, in plain vectors; becomes a ShardIndex.
struct ShardContents {
  struct Labels {
    std::string name;
    std::vector<LabelState> states;  ///< one per record; of tables fewer: the others are unreadable
    std::vector<std::int64_t> values;  ///< as many
  };
  std::vector<std::string> keys;  ///< one per record, or none at all
  /// One per record; empty: one member each. Of tables fewer: the others have none.
  std::vector<std::uint64_t> first_member_ends;
  std::vector<Member> members;
  std::vector<std::string> extensions;
  std::vector<Damage> damages;  ///< in the order of their records
  std::vector<Hint> hints;      ///< in the order of their records
  ShardRemarks remarks;
  std::vector<Labels> labels;
  /// Of tokens: where each record ends, in tokens; there are no members. What the records were found with.
  std::vector<std::uint64_t> record_ends;
  std::string found_with;
  /// Of Parquet: the file's footer, and its pages, group by group and column by column.
  std::string footer;
  std::vector<IndexedPage> pages;
};

/// The index of one shard. Packed: about 7 bytes for a TFRecord; for a sample of a tar file the
/// length of its key, about 7 bytes for each member and about 5 more, labels included.
///
/// Threads  const, any number at once.
class ShardIndex {
 public:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  ///< one behind
  };
  struct Labels {
    PackedColumn states;
    PackedColumn values;
    [[nodiscard]] LabelState state(std::uint64_t record) const noexcept;
    [[nodiscard]] std::int64_t value(std::uint64_t record) const noexcept;
  };

  /// The bytes of an index file.
  [[nodiscard]] static std::vector<std::byte> encode(ShardKind kind, const ShardStamp& stamp,
                                                     std::uint64_t records,
                                                     const ShardContents& contents);
  /// Takes the bytes of an index file over; nothing if they are none of this version, or damaged.
  /// Numbers in it that lead outside of it, which no checksum excludes, never do; and of nothing it has more than it has
  /// room for.
  [[nodiscard]] static std::optional<ShardIndex> decode(std::unique_ptr<std::byte[]> bytes,
                                                        std::size_t size);
  /// Of what encode() made.
  [[nodiscard]] static ShardIndex of_encoded(std::span<const std::byte> file);
  /// Writes another stamp into the bytes of an index file: for one that was made elsewhere, and was
  /// copied along with its shard. False where they are too few.
  static bool restamp(std::span<std::byte> file, const ShardStamp& stamp) noexcept;
  /// What decode() wants behind the bytes it is given.
  static constexpr std::size_t kPadding = PackedColumn::kPadding;

  [[nodiscard]] ShardKind kind() const noexcept { return kind_; }
  [[nodiscard]] const ShardStamp& stamp() const noexcept { return stamp_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  /// Of all that the shard holds, the columns of labels, hints and remarks aside: equal for the same shard, whichever
  /// program made the index.
  [[nodiscard]] std::uint64_t content_hash() const noexcept { return content_hash_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return size_; }
  /// Of the index file.
  [[nodiscard]] std::span<const std::byte> file_bytes() const noexcept {
    return {bytes_.get(), size_};
  }

  /// Of tokens.
  [[nodiscard]] std::uint64_t record_end(std::uint64_t record) const noexcept {
    return record_ends_[record];
  }
  [[nodiscard]] std::string_view found_with() const noexcept { return found_with_; }
  /// Of Parquet.
  [[nodiscard]] std::string_view footer() const noexcept { return footer_; }
  [[nodiscard]] std::uint64_t pages() const noexcept { return page_begins_.size(); }
  /// It lies within the file.
  [[nodiscard]] IndexedPage page(std::uint64_t number) const noexcept;
  [[nodiscard]] std::string_view key(std::uint64_t record) const noexcept;
  [[nodiscard]] Range members(std::uint64_t record) const noexcept;
  /// It lies within the file; of mds_zipped it need not.
  [[nodiscard]] Member member(std::uint64_t number) const noexcept;
  [[nodiscard]] std::uint64_t extensions() const noexcept { return extension_ends_.size(); }
  [[nodiscard]] std::string_view extension(std::uint64_t number) const noexcept;
  [[nodiscard]] std::optional<Damage> damage(std::uint64_t record) const noexcept;
  [[nodiscard]] std::uint64_t hints() const noexcept { return hint_records_.size(); }
  [[nodiscard]] Hint hint(std::uint64_t number) const noexcept;
  /// Of one record: numbers of hints.
  [[nodiscard]] Range hints_of(std::uint64_t record) const noexcept;
  [[nodiscard]] ShardRemarks remarks() const noexcept;
  /// The labels of that name, if they were asked for when the index was made.
  [[nodiscard]] const Labels* labels(std::string_view name) const noexcept;
  [[nodiscard]] std::vector<std::string> label_names() const;

 private:
  struct NamedLabels {
    std::string_view name;
    Labels labels;
  };
  [[nodiscard]] bool read_sections(std::span<const std::byte> body, std::uint32_t sections);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
  ShardKind kind_{};
  ShardStamp stamp_;
  std::uint64_t records_ = 0;
  std::uint64_t content_hash_ = 0;
  std::string_view key_text_;
  std::string_view extension_text_;
  std::string_view found_with_;
  std::string_view footer_;
  PackedColumn page_groups_;
  PackedColumn page_columns_;
  PackedColumn page_kinds_;
  PackedColumn page_begins_;
  PackedColumn page_bytes_;
  PackedColumn page_first_rows_;
  PackedColumn page_rows_;
  PackedColumn record_ends_;
  PackedColumn key_ends_;
  PackedColumn member_ends_;
  PackedColumn member_begins_;
  PackedColumn member_bytes_;
  PackedColumn member_extensions_;
  PackedColumn member_flags_;
  PackedColumn extension_ends_;
  PackedColumn damage_records_;
  PackedColumn damage_begins_;
  PackedColumn damage_ends_;
  PackedColumn damage_kinds_;
  PackedColumn hint_records_;
  PackedColumn hint_ats_;
  PackedColumn hint_kinds_;
  PackedColumn remarks_;
  std::vector<NamedLabels> labels_;
};

}  // namespace penstock::source
