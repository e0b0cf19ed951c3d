#include "src/source/mds/shard_scan.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/little_endian.hpp"
#include "src/source/mds/unpack.hpp"
#include "src/source/mds/values.hpp"
#include "src/source/shards/file_window.hpp"
#include "src/source/tables/table_fields.hpp"
#include "src/storage/retry.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kIntegersOf = "integers of ";
constexpr std::string_view kLengthsAs = "lengths as ";
constexpr std::size_t kOffsetBytes = sizeof(std::uint32_t);

// The decompressed shard, looked at from its beginning to its end.
class MdsBytes {
 public:
  MdsBytes() = default;
  MdsBytes(const MdsBytes&) = delete;
  MdsBytes& operator=(const MdsBytes&) = delete;
  virtual ~MdsBytes() = default;
  /// Fewer than `bytes` where the shard ends, or where they lie before what was looked at already; valid until the next call.
  virtual std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes) = 0;
};

// Through a window where rows are small. Of large rows, and of the header, no more is read than is asked for: of an object the
// window has some megabytes.
class RawMdsBytes final : public MdsBytes {
 public:
  RawMdsBytes(const storage::StoredFile& file, const std::string& path, std::uint64_t rows)
      : file_(file),
        path_(path),
        file_bytes_(file.stamp().bytes),
        exact_bytes_(file_bytes_ / (rows + 1) > file.window_bytes() ? file_bytes_
                                                                    : (rows + 2) * kOffsetBytes),
        window_(file, path) {}
  std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes) override {
    if (offset + bytes > std::min(exact_bytes_, file_bytes_)) return window_.at(offset, bytes);
    bytes_.resize(bytes);
    if (auto result = storage::with_retries([&] { return file_.read(offset, bytes_); }); !result)
      throw Error(fmt::format("cannot index the shard {}: {}", path_, result.fault().reason));
    return bytes_;
  }

 private:
  const storage::StoredFile& file_;
  const std::string& path_;
  std::uint64_t file_bytes_;
  std::uint64_t exact_bytes_;  // up to here exactly what is asked for is read
  std::vector<std::byte> bytes_;
  FileWindow window_;
};

class ZippedMdsBytes final : public MdsBytes {
 public:
  ZippedMdsBytes(const storage::StoredFile& file, const std::string& path)
      : path_(path), unpacker_(file, path) {}
  std::span<const std::byte> at(std::uint64_t offset, std::size_t bytes) override {
    constexpr std::size_t kAtOnce = std::size_t{64} << 10;
    buffer_.resize(std::max(bytes, kAtOnce));
    while (offset > position_) {
      const auto skipped =
          static_cast<std::size_t>(std::min<std::uint64_t>(offset - position_, kAtOnce));
      const std::size_t got = read(skipped);
      position_ += got;
      if (got < skipped) return {};
    }
    if (offset < position_) return {};
    const std::size_t got = read(bytes);
    position_ += got;
    return {buffer_.data(), got};
  }

 private:
  // Into the buffer, which has room for them.
  std::size_t read(std::size_t bytes) {
    try {
      return unpacker_.read({buffer_.data(), bytes});
    } catch (const MdsDamage&) {
      throw;
    } catch (const DataError& error) {
      throw Error(fmt::format("cannot index the shard {}: {}", path_, error.fault().reason));
    }
  }

  const std::string& path_;
  MdsUnpacker unpacker_;
  std::vector<std::byte> buffer_;
  std::uint64_t position_ = 0;  // of what the unpacker reads next
};

class MdsShardScan {
 public:
  MdsShardScan(MdsBytes& bytes, const std::string& path, const MdsShard& shard,
               const MdsColumns& columns)
      : bytes_(bytes), path_(path), shard_(shard), columns_(columns) {}

  // With `is_end_known`, the last row ends where the shard does.
  ScannedShard run(std::span<const std::string> labels, bool is_end_known) {
    ScannedShard scanned{.records = shard_.rows, .contents = {}};
    const std::uint64_t end = read_places(scanned.contents);
    if (is_end_known && end != shard_.raw.bytes)
      throw Error(
          fmt::format("{}: its header says that it has {} bytes, and it has {}: the chunk is cut "
                      "short, or is of another data set; copy it again",
                      path_, end, shard_.raw.bytes));
    for (const std::string& label : labels) add_wanted(label);
    if (!wanted_.empty()) read_wanted(scanned.contents);
    for (Wanted& wanted : wanted_) scanned.contents.labels.push_back(std::move(wanted.labels));
    return scanned;
  }

 private:
  struct Wanted {
    std::size_t column = 0;
    std::optional<DType> elements;  // of a length
    ShardContents::Labels labels;
  };

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(
        fmt::format("{}: {}: the shard is damaged, or is not that of index.json", path_, reason));
  }

  // Piece by piece, so that they take memory as they are there. Where the last row ends.
  std::uint64_t read_places(ShardContents& contents) {
    constexpr std::uint64_t kAtOnce = 16384;
    std::optional<std::uint64_t> begin;
    for (std::uint64_t done = 0; done < shard_.rows + 2;) {
      const auto count = static_cast<std::size_t>(std::min(kAtOnce, shard_.rows + 2 - done));
      const auto piece = bytes_.at(done * kOffsetBytes, count * kOffsetBytes);
      if (done == 0) require_rows(piece);
      if (piece.size() < count * kOffsetBytes)
        fail(fmt::format("its header of {} rows is cut short", shard_.rows));
      for (std::size_t i = done == 0 ? 1 : 0; i < count; ++i) {
        const std::uint64_t end = load_little_endian<std::uint32_t>(piece, i * kOffsetBytes);
        if (begin) add_row(*begin, end, contents);
        begin = end;
      }
      done += count;
    }
    if (contents.damages.empty()) contents.first_member_ends.clear();
    return begin.value_or(0);
  }

  void require_rows(std::span<const std::byte> header) const {
    if (header.size() < kOffsetBytes)
      fail(fmt::format("expected a header, found {} bytes", header.size()));
    const auto rows = load_little_endian<std::uint32_t>(header);
    if (rows != shard_.rows)
      fail(fmt::format("its header says {} rows, and index.json {}", rows, shard_.rows));
  }

  void add_row(std::uint64_t begin, std::uint64_t end, ShardContents& contents) const {
    // More than any damage to some pages of a file leaves. Zeros compress to nothing, and take memory here row by row.
    constexpr std::size_t kMostDamages = 65536;
    const std::uint64_t first = (shard_.rows + 2) * kOffsetBytes;
    // An index cannot keep members that are all at one place: of rows that begin where the first member does, that one
    // counts. Rows that begin where another does are told by their sizes when they are read.
    const bool is_again = !contents.members.empty() && contents.members.front().begin == begin;
    const bool is_good = !is_again && begin >= first && begin <= end && end <= shard_.raw.bytes &&
                         end - begin >= std::max<std::uint64_t>(columns_.least_bytes(), 1);
    if (is_good)
      contents.members.push_back({.begin = begin, .bytes = end - begin});
    else
      contents.damages.push_back({.record = contents.first_member_ends.size(),
                                  .begin = begin,
                                  .end = end,
                                  .kind = DamageKind::bad_place});
    contents.first_member_ends.push_back(contents.members.size());
    if (contents.damages.size() > kMostDamages)
      fail(fmt::format("its header has more than {} rows where they cannot be", kMostDamages));
  }

  // Of other programs' columns, too, whose names are in an older index.
  void add_wanted(const std::string& label) {
    Wanted wanted;
    std::string_view column = label;
    if (column.starts_with(kIntegersOf)) {
      column.remove_prefix(kIntegersOf.size());
    } else if (column.starts_with(kLengthsAs)) {
      column.remove_prefix(kLengthsAs.size());
      for (const DType dtype : kDTypes) {
        const std::string_view name = name_of(dtype);
        if (!column.starts_with(name) || !column.substr(name.size()).starts_with(" of ")) continue;
        wanted.elements = dtype;
        column.remove_prefix(name.size() + std::string_view(" of ").size());
        break;
      }
      if (!wanted.elements) return;
    } else {
      return;
    }
    const auto found = columns_.find(std::string(column));
    if (!found) return;
    wanted.column = *found;
    wanted.labels.name = label;
    wanted.labels.states.assign(static_cast<std::size_t>(shard_.rows), LabelState::unreadable);
    wanted.labels.values.assign(static_cast<std::size_t>(shard_.rows), 0);
    wanted_.push_back(std::move(wanted));
  }

  void read_wanted(const ShardContents& contents) {
    // In the order of the bytes.
    std::ranges::sort(wanted_, {}, &Wanted::column);
    for (Wanted& wanted : wanted_)
      needs_head_ |= !columns_.place_of(wanted.column, columns_.least_bytes());
    try {
      std::uint64_t member = 0;
      for (std::size_t row = 0; row < shard_.rows; ++row) {
        const std::uint64_t end =
            contents.first_member_ends.empty() ? row + 1 : contents.first_member_ends[row];
        if (member == end) continue;  // a damaged row
        read_row(row, contents.members[static_cast<std::size_t>(member)]);
        member = end;
      }
    } catch (const MdsDamage&) {
      // From here on the shard cannot be decompressed: its rows are faults when they are read.
    }
  }

  void read_row(std::size_t row, const Member& member) {
    if (needs_head_) {
      const auto size = static_cast<std::size_t>(columns_.head_bytes());
      const auto head = bytes_.at(member.begin, size);
      if (head.size() < size || !columns_.locate(head, member.bytes, places_)) return;
    }
    for (Wanted& wanted : wanted_) {
      const MdsPlace place =
          needs_head_ ? places_[wanted.column] : *columns_.place_of(wanted.column, member.bytes);
      std::optional<std::int64_t> value;
      if (wanted.elements) {
        const auto length = mds_length(columns_[wanted.column], place.bytes, *wanted.elements);
        if (length) value = static_cast<std::int64_t>(*length);
      } else {
        constexpr std::size_t kMostDigits = 64;
        const auto size =
            static_cast<std::size_t>(std::min<std::uint64_t>(place.bytes, kMostDigits));
        value = mds_integer(columns_[wanted.column], bytes_.at(member.begin + place.begin, size));
      }
      if (!value) continue;
      wanted.labels.states[row] = LabelState::known;
      wanted.labels.values[row] = *value;
    }
  }

  MdsBytes& bytes_;
  const std::string& path_;
  const MdsShard& shard_;
  const MdsColumns& columns_;
  std::vector<Wanted> wanted_;
  bool needs_head_ = false;
  std::vector<MdsPlace> places_;
};

}  // namespace

std::string name_of_mds_integers(const std::string& column) {
  return std::string(kIntegersOf) + column;
}

std::string name_of_mds_lengths(const std::string& column, DType elements) {
  return fmt::format("{}{} of {}", kLengthsAs, name_of(elements), column);
}

void require_mds_size(const std::string& path, std::uint64_t expected, std::uint64_t found) {
  if (expected != 0 && found != expected)
    throw Error(
        fmt::format("{}: expected {} bytes, as index.json says, found {}: the shard is cut "
                    "short, or is of another data set; copy it again",
                    path, expected, found));
}

ScannedShard scan_mds_shard(const storage::StoredFile& file, const std::string& path,
                            const MdsShard& shard, const MdsColumns& columns,
                            std::span<const std::string> labels) {
  const bool is_zipped = path != shard.raw_path();
  require_mds_size(path, is_zipped ? shard.zipped->bytes : shard.raw.bytes, file.stamp().bytes);
  MdsShard whole = shard;
  if (whole.raw.bytes == 0) whole.raw.bytes = file.stamp().bytes;
  std::unique_ptr<MdsBytes> bytes;
  if (is_zipped)
    bytes = std::make_unique<ZippedMdsBytes>(file, path);
  else
    bytes = std::make_unique<RawMdsBytes>(file, path, shard.rows);
  try {
    return MdsShardScan(*bytes, path, whole, columns).run(labels, shard.raw.bytes == 0);
  } catch (const MdsDamage& damage) {
    throw_table_error(damage.fault());
  }
}

}  // namespace penstock::source
