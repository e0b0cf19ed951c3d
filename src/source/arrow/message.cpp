#include "src/source/arrow/message.hpp"

#include <array>

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::uint64_t kWord = 4;

// The 4 of V4, the 5 of V5; Schema.fbs numbers V1 as 0. Footers of old writers lack it: only messages are checked.
std::uint32_t arrow_version(std::int16_t number, const ArrowOrigin& origin) {
  constexpr std::int16_t kV4 = 3;
  constexpr std::int16_t kV5 = 4;
  if (number == kV4 || number == kV5) return static_cast<std::uint32_t>(number) + 1;
  throw DataError(Fault{
      .reason = fmt::format("expected Arrow metadata of version V4 or V5, and found V{}: write "
                            "the data again with Arrow 0.8 or later",
                            number + 1),
      .file = origin.file,
      .offset = origin.offset});
}

}  // namespace

std::string name_of(ArrowMessageKind kind) {
  static constexpr std::array<const char*, 6> kNames{"nothing",     "Schema", "DictionaryBatch",
                                                     "RecordBatch", "Tensor", "SparseTensor"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : fmt::format("message type {}", number);
}

std::optional<ArrowMessagePlace> find_arrow_message(const ArrowRead& read, std::uint64_t offset,
                                                    std::uint64_t end, const std::string& file,
                                                    const ArrowLimits& limits) {
  if (offset == end) return std::nullopt;
  const ArrowOrigin origin{.file = file, .offset = offset};
  const auto read_word = [&](std::uint64_t at) {
    if (end - at < kWord)
      throw_arrow_damage(
          origin, at - offset,
          fmt::format("expected a message's length in 4 bytes, and found {}", end - at));
    return load_little_endian<std::uint32_t>(read_arrow_range(read, at, kWord, file));
  };
  std::uint64_t at = offset;
  std::uint32_t length = read_word(at);
  at += kWord;
  const bool is_continued = length == kArrowContinuation;
  if (is_continued) {
    length = read_word(at);
    at += kWord;
  }
  if (length > end - at)
    throw_arrow_damage(
        origin, at - offset,
        fmt::format("the metadata of a message has {} bytes, and {} are left", length, end - at));
  if (length > limits.metadata_bytes)
    throw DataError(Fault{.reason = fmt::format("the metadata of a message has {} bytes, of which "
                                                "at most {} are read: leave out columns",
                                                length, limits.metadata_bytes),
                          .file = file,
                          .offset = offset});
  return ArrowMessagePlace{.offset = offset,
                           .metadata = {at, length},
                           .body = at + length,
                           .is_continued = is_continued};
}

ArrowMessage read_arrow_message(FlatBuffer& buffer, const ArrowOrigin& origin) {
  const FlatTable table = buffer.root();
  const std::uint32_t version = arrow_version(table.number<std::int16_t>(0), origin);
  const auto header = table.table(2);
  if (!header) table.fail("a message has no header");
  return {.version = version,
          .kind = static_cast<ArrowMessageKind>(table.number<std::uint8_t>(1)),
          .header = *header,
          .body_bytes = table.count(3, "the bytes of a message's body")};
}

FlatTable arrow_record_batch(const ArrowMessage& message) {
  if (message.kind == ArrowMessageKind::batch) return message.header;
  if (message.kind != ArrowMessageKind::dictionary)
    message.header.fail(
        fmt::format("expected a RecordBatch, and found a {}", name_of(message.kind)));
  const auto data = message.header.table(1);
  if (!data) message.header.fail("a DictionaryBatch has no data");
  return *data;
}

ArrowBlock arrow_block(const ArrowMessage& message, const ArrowMessagePlace& place,
                       std::uint64_t end, const ArrowOrigin& origin, const ArrowLimits& limits) {
  if (message.kind == ArrowMessageKind::tensor || message.kind == ArrowMessageKind::sparse_tensor)
    throw_arrow_unread(origin,
                       fmt::format("a {} in place of a table's batch", name_of(message.kind)));
  const FlatTable batch = arrow_record_batch(message);
  ArrowBlock block{.metadata = place.metadata,
                   .body = {place.body, message.body_bytes},
                   .rows = batch.count(0, "the rows of a batch")};
  if (place.body > end || block.body.bytes > end - place.body)
    throw_arrow_damage(
        origin, 0,
        fmt::format("the body of a {} has {} bytes from byte {} on, and its file ends at byte {}",
                    name_of(message.kind), block.body.bytes, place.body, end));
  if (block.rows > limits.batch_rows)
    throw_arrow_limit(origin, fmt::format("a batch has {} rows, and at most {} are read",
                                          block.rows, limits.batch_rows));
  if (message.kind == ArrowMessageKind::dictionary) {
    block.id = message.header.number<std::int64_t>(0);
    block.is_delta = message.header.boolean(2);
  }
  return block;
}

}  // namespace penstock::source
