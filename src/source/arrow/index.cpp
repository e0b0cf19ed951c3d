#include "src/source/arrow/index.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::string_view kArrowMagic = "ARROW1";
constexpr std::uint64_t kFirstMessage = 8;  // behind the magic bytes and their padding
constexpr std::uint64_t kFooterEnd = 10;    // the footer's length, and the magic bytes
constexpr std::uint64_t kSmallestArrowFile = kFirstMessage + kFooterEnd;

std::string_view text_of_head(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void throw_no_arrow(const std::string& file, std::uint64_t offset,
                                 std::string reason) {
  throw DataError(Fault{.reason = std::move(reason), .file = file, .offset = offset});
}

void add_batch(ArrowIndex& index, const ArrowBlock& block, const ArrowOrigin& origin) {
  if (block.rows > std::numeric_limits<std::uint64_t>::max() - index.rows)
    throw_arrow_damage(origin, 0, "the batches have more than 2^64 rows together");
  index.rows += block.rows;
  index.batches.push_back(block);
}

// Adds the batches of dictionaries; the first of each must be complete.
class DictionaryList {
 public:
  void add(ArrowIndex& index, const ArrowBlock& block, const ArrowOrigin& origin) {
    const bool is_first = ids_.insert(block.id).second;
    if (block.is_delta && is_first)
      throw_arrow_damage(origin, 0,
                         fmt::format("dictionary {} is extended before it is there", block.id));
    if (!block.is_delta && !is_first && index.has_footer)
      throw_arrow_damage(origin, 0,
                         fmt::format("dictionary {} is there twice, and one cannot replace another "
                                     "in the file format",
                                     block.id));
    index.dictionaries.push_back(block);
  }

 private:
  std::set<std::int64_t> ids_;
};

class StreamScan {
 public:
  StreamScan(const ArrowRead& read, std::uint64_t end, const std::string& file,
             const ArrowLimits& limits)
      : read_(read), end_(end), limits_(limits) {
    index_.file = file;
  }

  ArrowIndex run() {
    if (end_ == 0)
      throw_no_arrow(index_.file, 0,
                     "expected an Arrow stream, and found an empty file: leave it out, or write or "
                     "download it again");
    require_stream();
    std::uint64_t at = 0;
    std::optional<ArrowMessagePlace> place;
    while ((place = find_arrow_message(read_, at, end_, index_.file, limits_))) {
      if (place->metadata.bytes == 0) break;
      is_continued_ |= place->is_continued;
      at = read_message(*place);
    }
    if (index_.fields.nodes.empty())
      throw_no_arrow(index_.file, 0,
                     "expected an Arrow stream to begin with its schema, and found its end");
    index_.has_end = place.has_value();
    if (place) require_end(*place);
    return std::move(index_);
  }

 private:
  void require_stream() const {
    const auto head = read_arrow_range(read_, 0, std::min<std::uint64_t>(end_, 4), index_.file);
    if (head.size() == 4) {
      const auto word = load_little_endian<std::uint32_t>(head);
      if (word == kArrowContinuation || word <= end_ - 4) return;
    }
    throw_no_arrow(
        index_.file, 0,
        fmt::format("expected an Arrow stream, which begins with FF FF FF FF or the length "
                    "of its first message, and found other bytes in a file of {}: leave it "
                    "out, or write or download it again",
                    end_));
  }

  // What lies behind an end mark would be left out. Zeros are one in streams of before Arrow 0.15 only, which have no
  // continuation markers: elsewhere they are what a write that was broken off leaves.
  void require_end(const ArrowMessagePlace& mark) const {
    if (!mark.is_continued && is_continued_)
      throw_arrow_damage({.file = index_.file, .offset = mark.offset}, 0,
                         "expected a message or the stream's end mark, and found zeros");
    if (mark.body < end_)
      throw_no_arrow(index_.file, mark.body,
                     fmt::format("expected an Arrow stream to end with its end mark, and found {} "
                                 "bytes behind it: streams were joined, or the file is damaged; "
                                 "split it, or write it again",
                                 end_ - mark.body));
  }

  // Returns where the next one begins.
  std::uint64_t read_message(const ArrowMessagePlace& place) {
    const ArrowOrigin origin{.file = index_.file, .offset = place.metadata.begin};
    FlatBuffer buffer(
        read_arrow_range(read_, place.metadata.begin, place.metadata.bytes, index_.file), origin);
    const ArrowMessage message = read_arrow_message(buffer, origin);
    if (message.kind == ArrowMessageKind::schema) {
      if (!index_.fields.nodes.empty())
        throw_no_arrow(index_.file, place.offset,
                       "expected one schema in an Arrow stream, and found a second: streams were "
                       "joined; split the file, or write it again");
      index_.fields = read_arrow_schema(message.header, origin, limits_);
      return place.body + skip_body(message, place, origin);
    }
    if (index_.fields.nodes.empty())
      throw_arrow_damage(origin, 0,
                         fmt::format("expected an Arrow stream to begin with its schema, and found "
                                     "a {}",
                                     name_of(message.kind)));
    ArrowBlock block = arrow_block(message, place, end_, origin, limits_);
    if (message.kind == ArrowMessageKind::dictionary) {
      block.batches_before = index_.batches.size();
      dictionaries_.add(index_, block, origin);
    } else {
      add_batch(index_, block, origin);
    }
    return block.body.end();
  }

  [[nodiscard]] std::uint64_t skip_body(const ArrowMessage& message, const ArrowMessagePlace& place,
                                        const ArrowOrigin& origin) const {
    if (message.body_bytes > end_ - place.body)
      throw_arrow_damage(origin, 0,
                         fmt::format("the body of a {} has {} bytes, and {} are left",
                                     name_of(message.kind), message.body_bytes, end_ - place.body));
    return message.body_bytes;
  }

  const ArrowRead& read_;
  std::uint64_t end_;
  const ArrowLimits& limits_;
  ArrowIndex index_;
  DictionaryList dictionaries_;
  bool is_continued_ = false;  // whether a message began with the continuation marker
};

class FooterReader {
 public:
  FooterReader(const ArrowRead& read, std::uint64_t file_bytes, const std::string& file,
               const ArrowLimits& limits)
      : read_(read), file_bytes_(file_bytes), limits_(limits) {
    index_.file = file;
    index_.has_footer = true;
  }

  ArrowIndex run() {
    const ArrowRange footer = find_footer();
    end_ = footer.begin;
    const ArrowOrigin origin{.file = index_.file, .offset = footer.begin};
    // The blocks' messages are read while the footer is: it needs bytes of its own.
    const auto read = read_arrow_range(read_, footer.begin, footer.bytes, index_.file);
    const std::vector<std::byte> bytes(read.begin(), read.end());
    FlatBuffer buffer(bytes, origin);
    const FlatTable table = buffer.root();
    const auto schema = table.table(1);
    if (!schema) table.fail("the footer has no schema");
    index_.fields = read_arrow_schema(*schema, origin, limits_);
    read_blocks(table.elements(2, kBlockBytes), ArrowMessageKind::dictionary, origin);
    read_blocks(table.elements(3, kBlockBytes), ArrowMessageKind::batch, origin);
    require_all_batches(origin);
    return std::move(index_);
  }

 private:
  static constexpr std::uint32_t kBlockBytes = 24;

  ArrowRange find_footer() {
    if (file_bytes_ < kSmallestArrowFile)
      throw_no_arrow(index_.file, 0,
                     fmt::format("expected an Arrow file, and found {} bytes: the smallest has {}; "
                                 "leave the file out, or write or download it again",
                                 file_bytes_, kSmallestArrowFile));
    const std::uint64_t tail = file_bytes_ - kFooterEnd;
    const auto bytes = read_arrow_range(read_, tail, kFooterEnd, index_.file);
    if (text_of_head(bytes.subspan(4)) != kArrowMagic)
      throw_no_arrow(
          index_.file, tail + 4,
          "expected 'ARROW1' at the end of an Arrow file, and found other bytes: this is "
          "no Arrow file, or it was not written completely: leave it out, or write or "
          "download it again");
    const std::uint64_t length = load_little_endian<std::uint32_t>(bytes);
    if (length > tail - kFirstMessage)
      throw_arrow_damage(
          {.file = index_.file, .offset = tail}, 0,
          fmt::format("the footer has {} bytes, and the file {}", length, file_bytes_));
    if (length > limits_.metadata_bytes)
      throw_no_arrow(index_.file, tail,
                     fmt::format("the footer has {} bytes, of which at most {} are read: write "
                                 "larger batches, or several files",
                                 length, limits_.metadata_bytes));
    return {tail - length, length};
  }

  void read_blocks(std::span<const std::byte> blocks, ArrowMessageKind kind,
                   const ArrowOrigin& footer) {
    constexpr std::size_t kMetadata = 8;
    for (std::size_t at = 0; at < blocks.size(); at += kBlockBytes) {
      const auto offset = load_little_endian<std::int64_t>(blocks, at);
      const auto metadata = load_little_endian<std::int32_t>(blocks, at + kMetadata);
      if (offset < static_cast<std::int64_t>(kFirstMessage) ||
          static_cast<std::uint64_t>(offset) >= end_)
        throw_arrow_damage(footer, 0,
                           fmt::format("a {} is at byte {}, and the footer at byte {}",
                                       name_of(kind), offset, end_));
      read_block(static_cast<std::uint64_t>(offset), metadata, kind);
    }
  }

  void read_block(std::uint64_t offset, std::int64_t metadata_bytes, ArrowMessageKind kind) {
    auto place = find_arrow_message(read_, offset, end_, index_.file, limits_);
    const ArrowOrigin origin{.file = index_.file, .offset = offset};
    const auto needed = static_cast<std::int64_t>(place->body - offset);
    if (place->metadata.bytes == 0 || metadata_bytes < needed ||
        static_cast<std::uint64_t>(metadata_bytes) > end_ - offset)
      throw_arrow_damage(origin, 0,
                         fmt::format("the footer says that a {} has {} bytes of metadata, and it "
                                     "has {}",
                                     name_of(kind), metadata_bytes, needed));
    place->body = offset + static_cast<std::uint64_t>(metadata_bytes);
    // Messages have bytes of their own: together no more than the file has.
    metadata_read_ += place->metadata.bytes;
    if (metadata_read_ > file_bytes_)
      throw_arrow_damage(origin, 0, "the footer has one message many times");
    FlatBuffer buffer(
        read_arrow_range(read_, place->metadata.begin, place->metadata.bytes, index_.file), origin);
    const ArrowMessage message = read_arrow_message(buffer, origin);
    if (message.kind != kind)
      throw_arrow_damage(
          origin, 0,
          fmt::format("expected a {}, and found a {}", name_of(kind), name_of(message.kind)));
    const ArrowBlock block = arrow_block(message, *place, end_, origin, limits_);
    ends_[offset] = block.body.end();
    if (kind == ArrowMessageKind::dictionary) {
      dictionaries_.add(index_, block, origin);
    } else {
      add_batch(index_, block, origin);
    }
  }

  // A footer that lost batches would lose their rows. Messages lie one behind the other; only those that the footer does
  // not name are read. Looks no further where something else lies between them.
  void require_all_batches(const ArrowOrigin& footer) const {
    for (std::uint64_t at = kFirstMessage; at < end_;) {
      if (const auto known = ends_.find(at); known != ends_.end()) {
        at = known->second;
        continue;
      }
      const auto rows = arrow_result([&] { return skip_message(at); });
      if (!rows) return;
      if (*rows > 0)
        throw_arrow_damage(footer, 0,
                           fmt::format("the footer lacks a RecordBatch of {} rows, which is before "
                                       "byte {}",
                                       *rows, at));
    }
  }

  // The rows of a batch, else 0. `at` is then where the next message begins.
  std::uint64_t skip_message(std::uint64_t& at) const {
    const auto place = find_arrow_message(read_, at, end_, index_.file, limits_);
    const ArrowOrigin origin{.file = index_.file, .offset = at};
    if (!place || place->metadata.bytes == 0) {
      at = end_;
      return 0;
    }
    FlatBuffer buffer(
        read_arrow_range(read_, place->metadata.begin, place->metadata.bytes, index_.file), origin);
    const ArrowMessage message = read_arrow_message(buffer, origin);
    if (message.body_bytes > end_ - place->body)
      throw_arrow_damage(origin, 0, "the body of a message ends behind the file");
    at = place->body + message.body_bytes;
    if (message.kind != ArrowMessageKind::batch) return 0;
    return arrow_block(message, *place, end_, origin, limits_).rows;
  }

  const ArrowRead& read_;
  std::uint64_t file_bytes_;
  std::uint64_t end_ = 0;  // of the messages
  std::uint64_t metadata_read_ = 0;
  std::map<std::uint64_t, std::uint64_t> ends_;  // of the messages, by where they begin
  const ArrowLimits& limits_;
  ArrowIndex index_;
  DictionaryList dictionaries_;
};

}  // namespace

std::vector<const ArrowBlock*> ArrowIndex::dictionary_blocks(std::int64_t id,
                                                             std::uint64_t batch) const {
  std::vector<const ArrowBlock*> used;
  for (const ArrowBlock& block : dictionaries) {
    if (block.id != id || block.batches_before > batch) continue;
    if (!block.is_delta) used.clear();
    used.push_back(&block);
  }
  return used;
}

bool is_arrow_file(std::span<const std::byte> head) noexcept {
  return head.size() >= kArrowHead && text_of_head(head.first(kArrowHead)) == kArrowMagic;
}

Result<ArrowIndex> scan_arrow_stream(const ArrowRead& read, std::uint64_t file_bytes,
                                     const std::string& file, const ArrowLimits& limits) {
  return arrow_result([&] { return StreamScan(read, file_bytes, file, limits).run(); });
}

Result<ArrowIndex> read_arrow_footer(const ArrowRead& read, std::uint64_t file_bytes,
                                     const std::string& file, const ArrowLimits& limits) {
  return arrow_result([&] { return FooterReader(read, file_bytes, file, limits).run(); });
}

Result<ArrowIndex> read_arrow_index(const ArrowRead& read, std::uint64_t file_bytes,
                                    const std::string& file, const ArrowLimits& limits) {
  return arrow_result([&] {
    const std::uint64_t head = std::min(file_bytes, kArrowHead);
    if (is_arrow_file(read_arrow_range(read, 0, head, file)))
      return FooterReader(read, file_bytes, file, limits).run();
    return StreamScan(read, file_bytes, file, limits).run();
  });
}

}  // namespace penstock::source
