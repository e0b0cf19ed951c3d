// source/arrow/message: one message of Arrow's IPC formats: what it is, and where its metadata and its body are.
//
// Source  github.com/apache/arrow, format/Message.fbs and docs/source/format/Columnar.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/source/arrow/schema.hpp"

namespace penstock::source {

enum class ArrowCompression : std::uint8_t { none, lz4_frame, zstd };

/// Where the metadata of a message is.
struct ArrowMessagePlace {
  std::uint64_t offset = 0;   ///< of the message
  ArrowRange metadata;        ///< the Flatbuffer; no bytes: the stream's end mark
  std::uint64_t body = 0;     ///< offset of the body, or of what follows the end mark
  bool is_continued = false;  ///< whether it begins with kArrowContinuation
};

/// A record batch or a dictionary's batch: where it is, and how many rows it has.
struct ArrowBlock {
  ArrowRange metadata;  ///< in the file; so `body`
  ArrowRange body;
  std::uint64_t rows = 0;
  // Of a dictionary's batch:
  std::int64_t id = 0;
  bool is_delta = false;  ///< its entries come behind those before, and do not replace them
  std::uint64_t batches_before = 0;  ///< record batches before it in a stream, which do not use it
};

/// Numbers of MessageHeader.
enum class ArrowMessageKind : std::uint8_t {
  none = 0,
  schema = 1,
  dictionary = 2,
  batch = 3,
  tensor = 4,
  sparse_tensor = 5,
};

/// A message's root table, which must outlive neither its FlatBuffer nor its bytes.
struct ArrowMessage {
  std::uint32_t version = 0;  ///< of the metadata: 4 or 5
  ArrowMessageKind kind = ArrowMessageKind::none;
  FlatTable header;  ///< the Schema, RecordBatch or DictionaryBatch
  std::uint64_t body_bytes = 0;
};

/// With which messages begin since Arrow 0.15.
inline constexpr std::uint32_t kArrowContinuation = 0xFFFFFFFF;

/// "Schema", "RecordBatch" and so on; "message type 9" for unknown numbers.
[[nodiscard]] std::string name_of(ArrowMessageKind kind);

/// Finds the metadata of the message at an offset, of which it reads 4 or 8 bytes; messages end at `end` at the latest.
/// Nothing, if the file ends there.
///
/// Errors  DataError  the length is damaged, or more than is read
[[nodiscard]] std::optional<ArrowMessagePlace> find_arrow_message(const ArrowRead& read,
                                                                  std::uint64_t offset,
                                                                  std::uint64_t end,
                                                                  const std::string& file,
                                                                  const ArrowLimits& limits);

/// Reads what a message's metadata begins with.
///
/// Errors  DataError  it is damaged, or of a version that is not read
[[nodiscard]] ArrowMessage read_arrow_message(FlatBuffer& buffer, const ArrowOrigin& origin);

/// The RecordBatch that a message has, also within its DictionaryBatch.
///
/// Errors  DataError  it has none
[[nodiscard]] FlatTable arrow_record_batch(const ArrowMessage& message);

/// What an index keeps of a batch's message, whose body must end at `end` at the latest.
///
/// Errors  DataError  it is damaged, is no batch, or ends behind `end`
[[nodiscard]] ArrowBlock arrow_block(const ArrowMessage& message, const ArrowMessagePlace& place,
                                     std::uint64_t end, const ArrowOrigin& origin,
                                     const ArrowLimits& limits);

}  // namespace penstock::source
