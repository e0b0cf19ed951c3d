#include "src/source/tfrecord/tfrecord_scan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "src/source/shards/file_window.hpp"
#include "src/source/shards/foreign_files.hpp"
#include "src/source/tfrecord/crc32c.hpp"
#include "src/source/tfrecord/example.hpp"

namespace penstock::source {

namespace {

// The one integer of a feature.
struct IntegerSink {
  void start(FeatureKind found) noexcept {
    kind = found;
    count = 0;
  }
  void bytes(WireRange) noexcept { ++count; }
  void float_bits(std::uint32_t) noexcept { ++count; }
  void number(std::uint64_t found) noexcept {
    value = static_cast<std::int64_t>(found);
    ++count;
  }
  FeatureKind kind = FeatureKind::none;
  std::uint64_t count = 0;
  std::int64_t value = 0;
};

class TfRecordScanner {
 public:
  TfRecordScanner(FileWindow& file, const std::string& path, std::span<const std::string> labels)
      : file_(file), path_(path) {
    for (const std::string& name : labels) {
      shard_.contents.labels.push_back({.name = name, .states = {}, .values = {}});
      features_.push_back(split_lines(name));
    }
  }

  ScannedShard run() {
    while (at_ < file_.file_bytes()) {
      if (file_.file_bytes() - at_ < kFrameHeader) {
        add_damage(DamageKind::cut_header, file_.file_bytes());
        break;
      }
      const std::optional<std::uint64_t> bytes = header_at(at_);
      if (!bytes) {
        // A record that is as long as a compressed file's first bytes say has a good header.
        if (at_ == 0) require_uncompressed(file_, path_);
        add_damage(DamageKind::bad_header, behind_bad_header());
      } else if (!fits(at_, *bytes)) {
        add_damage(DamageKind::cut_data, file_.file_bytes());
      } else {
        add(*bytes);
      }
    }
    return std::move(shard_);
  }

 private:
  std::optional<std::uint64_t> header_at(std::uint64_t offset) {
    return parse_frame_header(file_.at(offset, kFrameHeader).first<kFrameHeader>());
  }

  // Whether a record that begins at `offset` and holds `bytes` lies within the file.
  bool fits(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    const std::uint64_t left = file_.file_bytes() - offset;
    return left >= kFrameHeader + kFrameFooter && bytes <= left - kFrameHeader - kFrameFooter;
  }

  void add(std::uint64_t bytes) {
    const std::uint64_t begin = at_ + kFrameHeader;
    shard_.contents.members.push_back({.begin = begin, .bytes = bytes});
    for (std::size_t i = 0; i < features_.size(); ++i) {
      add_label(shard_.contents.labels[i], features_[i], {begin, begin + bytes});
    }
    at_ = begin + bytes + kFrameFooter;
    ++shard_.records;
  }

  void add_damage(DamageKind kind, std::uint64_t end) {
    shard_.contents.damages.push_back({shard_.records, at_, end, kind});
    shard_.contents.members.push_back({.begin = at_, .bytes = 0});
    for (ShardContents::Labels& labels : shard_.contents.labels) {
      labels.states.push_back(LabelState::unreadable);
      labels.values.push_back(0);
    }
    at_ = end;
    ++shard_.records;
  }

  void add_label(ShardContents::Labels& labels, std::span<const std::string> names,
                 WireRange example) {
    std::size_t choice = names.size();
    WireRange entry;
    bool good = for_each_feature(file_, example, [&](std::string_view name, WireRange range) {
      const auto known = std::ranges::find(names, name);
      const auto index = static_cast<std::size_t>(known - names.begin());
      if (known == names.end() || index > choice) return;
      choice = index;
      entry = range;
    });
    IntegerSink sink;
    if (good && choice < names.size()) good = read_feature(file_, entry, sink);
    LabelState state = LabelState::missing;
    if (!good) {
      state = LabelState::unreadable;
    } else if (sink.kind != FeatureKind::none) {
      const bool one = sink.kind == FeatureKind::integers && sink.count == 1;
      state = one ? LabelState::known : LabelState::unreadable;
    }
    labels.states.push_back(state);
    labels.values.push_back(state == LabelState::known ? sink.value : 0);
  }

  // If only the checksum is damaged, the length still leads to the next record, and no records lie
  // on the way there.
  std::uint64_t behind_bad_header() {
    const std::uint64_t first = next_header(at_ + 1);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, file_.at(at_, sizeof bytes).data(), sizeof bytes);
    if (!fits(at_, bytes)) return first;
    const std::uint64_t next = at_ + kFrameHeader + bytes + kFrameFooter;
    if (next == first || next == file_.file_bytes() || is_good_header(next)) {
      return is_chain(first, next) ? first : next;
    }
    return first;
  }

  bool is_good_header(std::uint64_t offset) {
    if (file_.file_bytes() - offset < kFrameHeader) return false;
    const auto bytes = header_at(offset);
    return bytes && fits(offset, *bytes);
  }

  // Whether the headers from `from` on lead to `to`. Those of a TFRecord file that is itself in a
  // record do not: a checksum comes behind it.
  bool is_chain(std::uint64_t from, std::uint64_t to) {
    while (from < to && is_good_header(from)) {
      from += kFrameHeader + *header_at(from) + kFrameFooter;
    }
    return from == to;
  }

  // The next good header at `from` or behind it, looked for byte by byte: that 12 others look like
  // one, of a record that fits, has a chance of 1 in 2^32 and less. Or the end of the file.
  std::uint64_t next_header(std::uint64_t from) {
    constexpr std::size_t kStride = std::size_t{256} << 10;
    for (; from < file_.file_bytes(); from += kStride) {
      const auto part = file_.at(from, kStride + kFrameHeader - 1);
      for (std::size_t i = 0; i + kFrameHeader <= part.size(); ++i) {
        const auto found = parse_frame_header(part.subspan(i).first<kFrameHeader>());
        if (found && fits(from + i, *found)) return from + i;
      }
    }
    return file_.file_bytes();
  }

  FileWindow& file_;
  const std::string& path_;
  std::vector<std::vector<std::string>> features_;
  ScannedShard shard_;
  std::uint64_t at_ = 0;
};

}  // namespace

std::optional<std::uint64_t> parse_frame_header(
    std::span<const std::byte, kFrameHeader> header) noexcept {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  std::memcpy(&bytes, header.data(), sizeof bytes);
  std::memcpy(&crc, header.data() + sizeof bytes, sizeof crc);
  if (masked_crc(crc32c(header.first(sizeof bytes))) != crc) return std::nullopt;
  return bytes;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

ScannedShard scan_tfrecord(const storage::StoredFile& file, const std::string& path,
                           std::span<const std::string> labels) {
  FileWindow window(file, path);
  return TfRecordScanner(window, path, labels).run();
}

std::string describe_tfrecord_damage(const Damage& damage) {
  if (damage.kind == DamageKind::bad_header) {
    return fmt::format("the checksum of a record's length is wrong; bytes {} to {} are lost",
                       damage.begin, damage.end);
  }
  return fmt::format(
      "the file is cut off: it ends at byte {}, within a record; this record and all later ones "
      "are lost",
      damage.end);
}

}  // namespace penstock::source
