#include "src/source/arrow/batch.hpp"

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::uint32_t kPairBytes = 16;  // of a FieldNode, and of a Buffer: two integers

class BatchReader {
 public:
  BatchReader(const ArrowFields& fields, const FlatTable& table, std::uint32_t version)
      : fields_(fields),
        table_(table),
        version_(version),
        nodes_(table.elements(1, kPairBytes)),
        buffers_(table.elements(2, kPairBytes)),
        variadic_(table.elements(4, sizeof(std::int64_t))) {}

  ArrowBatch run(const ArrowBlock& block, std::optional<std::uint32_t> dictionary_of) {
    batch_.rows = block.rows;
    batch_.body = block.body;
    batch_.first = dictionary_of.value_or(0);
    read_compression();
    const ArrowField& root = fields_.nodes[batch_.first];
    batch_.nodes.resize(root.end - batch_.first);
    batch_.buffers.reserve(buffers_.size() / kPairBytes);
    if (dictionary_of) {
      take_values(*dictionary_of);
      require_rows(*dictionary_of);
    } else {
      batch_.nodes[0] = ArrowNode{.length = block.rows};
      for (const std::uint32_t column : root.children) {
        take(column);
        require_rows(column);
      }
    }
    if (node_ * kPairBytes != nodes_.size() ||
        batch_.buffers.size() * kPairBytes != buffers_.size())
      table_.fail(fmt::format("expected a batch of {} fields and {} buffers, and found {} and {}",
                              node_, batch_.buffers.size(), nodes_.size() / kPairBytes,
                              buffers_.size() / kPairBytes));
    return std::move(batch_);
  }

 private:
  void read_compression() {
    const auto compression = table_.table(3);
    if (!compression) return;
    const auto codec = compression->number<std::int8_t>(0);
    const auto method = compression->number<std::int8_t>(1);
    if (codec < 0 || codec > 1 || method != 0)
      table_.fail(
          fmt::format("expected a body compressed with LZ4_FRAME (0) or ZSTD (1), buffer by "
                      "buffer (0), and found codec {}, method {}",
                      codec, method));
    batch_.compression = codec == 0 ? ArrowCompression::lz4_frame : ArrowCompression::zstd;
  }

  // A field as a batch has it: of one with a dictionary, the numbers of its entries.
  void take(std::uint32_t field) {
    if (!fields_.nodes[field].dictionary) return take_values(field);
    constexpr std::uint32_t kValidityAndNumbers = 2;
    add(field, kValidityAndNumbers);
  }

  void take_values(std::uint32_t field) {
    const ArrowField& node = fields_.nodes[field];
    auto buffers = arrow_buffer_count(node.type, version_);
    if (!buffers)
      table_.fail(
          fmt::format("field '{}' has {}, which is not known here: other columns of the file "
                      "cannot be found, either",
                      fields_.path(field), name_of(node.type)));
    if (arrow_layout(node.type.kind) == ArrowLayout::views) *buffers += take_variadic(field);
    add(field, *buffers);
    for (const std::uint32_t child : node.children) take(child);
  }

  std::uint32_t take_variadic(std::uint32_t field) {
    if (variadic_.size() < sizeof(std::int64_t))
      table_.fail(
          fmt::format("a batch has no variadicBufferCounts for field '{}'", fields_.path(field)));
    const auto count = load_little_endian<std::int64_t>(variadic_);
    variadic_ = variadic_.subspan(sizeof count);
    if (count < 0 || static_cast<std::uint64_t>(count) > buffers_.size() / kPairBytes)
      table_.fail(fmt::format("field '{}' has {} buffers, and its batch {}", fields_.path(field),
                              count, buffers_.size() / kPairBytes));
    return static_cast<std::uint32_t>(count);
  }

  void add(std::uint32_t field, std::uint32_t buffers) {
    if (node_ >= nodes_.size() / kPairBytes)
      table_.fail(fmt::format("a batch ends before field '{}': it has {} fields",
                              fields_.path(field), nodes_.size() / kPairBytes));
    const auto [length, nulls] = pair(nodes_, node_++);
    if (length < 0 || nulls < 0 || nulls > length)
      table_.fail(fmt::format("field '{}' has {} values in a batch, of which {} are null",
                              fields_.path(field), length, nulls));
    batch_.nodes[field - batch_.first] =
        ArrowNode{.length = static_cast<std::uint64_t>(length),
                  .null_count = static_cast<std::uint64_t>(nulls),
                  .first_buffer = static_cast<std::uint32_t>(batch_.buffers.size()),
                  .buffers = buffers};
    for (std::uint32_t i = 0; i < buffers; ++i) add_buffer(field);
  }

  void add_buffer(std::uint32_t field) {
    const std::size_t number = batch_.buffers.size();
    if (number >= buffers_.size() / kPairBytes)
      table_.fail(fmt::format("a batch ends before the buffers of field '{}': it has {}",
                              fields_.path(field), number));
    const auto [offset, bytes] = pair(buffers_, number);
    const std::uint64_t body = batch_.body.bytes;
    if (bytes < 0 || (bytes > 0 && (offset < 0 || static_cast<std::uint64_t>(offset) > body ||
                                    static_cast<std::uint64_t>(bytes) >
                                        body - static_cast<std::uint64_t>(offset))))
      table_.fail(
          fmt::format("expected a buffer of field '{}' within the batch's body of {} bytes, "
                      "and found {} bytes at byte {}",
                      fields_.path(field), body, bytes, offset));
    if (bytes > 0) require_place(field, static_cast<std::uint64_t>(offset));
    if (bytes > 0) buffers_end_ = static_cast<std::uint64_t>(offset + bytes);
    batch_.buffers.push_back(bytes == 0 ? ArrowRange{}
                                        : ArrowRange{static_cast<std::uint64_t>(offset),
                                                     static_cast<std::uint64_t>(bytes)});
  }

  // Every writer puts buffers one behind the other, each at the next multiple of an alignment of its choice. So one that
  // lies elsewhere is found, which has no checksum.
  void require_place(std::uint32_t field, std::uint64_t begin) const {
    const std::uint64_t alignment =
        begin & (~begin + 1);  // the largest power of two that it is a multiple of
    if (begin == buffers_end_ || (begin > buffers_end_ && begin - buffers_end_ < alignment)) return;
    table_.fail(
        fmt::format("expected a buffer of field '{}' behind the one before it, which ends at "
                    "byte {} of the body, and found it at byte {}",
                    fields_.path(field), buffers_end_, begin));
  }

  void require_rows(std::uint32_t field) const {
    const std::uint64_t found = batch_.nodes[field - batch_.first]->length;
    if (found != batch_.rows)
      table_.fail(fmt::format("field '{}' has {} values in a batch of {} rows", fields_.path(field),
                              found, batch_.rows));
  }

  static std::pair<std::int64_t, std::int64_t> pair(std::span<const std::byte> pairs,
                                                    std::size_t number) {
    const std::size_t at = number * kPairBytes;
    return {load_little_endian<std::int64_t>(pairs, at),
            load_little_endian<std::int64_t>(pairs, at + sizeof(std::int64_t))};
  }

  const ArrowFields& fields_;
  const FlatTable& table_;
  std::uint32_t version_;
  std::span<const std::byte> nodes_;
  std::span<const std::byte> buffers_;
  std::span<const std::byte> variadic_;
  std::size_t node_ = 0;
  std::uint64_t buffers_end_ = 0;  // of the last one with bytes, in the body
  ArrowBatch batch_;
};

}  // namespace

Result<ArrowBatch> read_arrow_batch(const ArrowFields& fields, const ArrowBlock& block,
                                    std::span<const std::byte> bytes, const std::string& file,
                                    std::optional<std::uint32_t> dictionary_of) {
  return arrow_result([&] {
    const ArrowOrigin origin{.file = file, .offset = block.metadata.begin};
    FlatBuffer buffer(bytes, origin);
    const ArrowMessage message = read_arrow_message(buffer, origin);
    const FlatTable table = arrow_record_batch(message);
    return BatchReader(fields, table, message.version).run(block, dictionary_of);
  });
}

}  // namespace penstock::source
