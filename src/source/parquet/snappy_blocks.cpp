#include "src/source/parquet/snappy_blocks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "src/source/little_endian.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kLengthBytes = 4;  // in front of each value
// A value needs its own blocks, and 64 KiB more on average: of larger values that is little against what is decoded of them.
constexpr std::uint64_t kLeastMeanBytes = SnappyBlocks::kBlockBytes / 2;

// The number that a compressed text begins with: how many bytes it becomes. Seven bits a byte, the lowest first.
struct SnappyLength {
  static constexpr std::size_t kMost = 5;
  std::uint64_t value = 0;
  std::size_t size = 0;  // 0: damaged
};

SnappyLength read_length(std::span<const std::byte> bytes) {
  SnappyLength length;
  for (std::size_t k = 0; k < std::min(bytes.size(), SnappyLength::kMost); ++k) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[k]);
    length.value |= (byte & 0x7F) << (7 * k);
    if (byte < 0x80) {
      length.size = k + 1;
      break;
    }
  }
  return length;
}

std::size_t write_length(std::uint64_t value, std::span<std::byte, SnappyLength::kMost> out) {
  std::size_t size = 0;
  for (; value >= 0x80; value >>= 7) out[size++] = static_cast<std::byte>(value | 0x80);
  out[size++] = static_cast<std::byte>(value);
  return size;
}

// One element of a compressed text: bytes that stand there, or a copy of what came before.
struct SnappyElement {
  std::uint64_t size = 0;    // of the element
  std::uint64_t bytes = 0;   // that it becomes
  std::uint64_t offset = 0;  // of a copy: how far back
};

std::optional<SnappyElement> element_at(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto tag = std::to_integer<std::uint32_t>(bytes[0]);
  const auto number = [&](std::size_t size) -> std::optional<std::uint64_t> {
    if (bytes.size() < 1 + size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < size; ++k)
      value |= std::to_integer<std::uint64_t>(bytes[1 + k]) << (8 * k);
    return value;
  };
  if (const std::uint32_t kind = tag & 3; kind != 0) {
    constexpr std::array<std::size_t, 4> kOffsetBytes{0, 1, 2, 4};
    auto offset = number(kOffsetBytes[kind]);
    if (!offset) return std::nullopt;
    if (kind == 1) *offset |= std::uint64_t{tag >> 5} << 8;
    return SnappyElement{1 + kOffsetBytes[kind], kind == 1 ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2),
                         *offset};
  }
  constexpr std::uint32_t kShort = 60;  // of literals up to so many bytes the tag has the length
  if (const std::uint32_t length = tag >> 2; length < kShort)
    return SnappyElement{2 + std::uint64_t{length}, 1 + std::uint64_t{length}, 0};
  const std::size_t size = (tag >> 2) - kShort + 1;
  const auto length = number(size);
  if (!length) return std::nullopt;
  return SnappyElement{1 + size + *length + 1, *length + 1, 0};
}

}  // namespace

Fault changed_page(std::uint64_t offset, std::string_view what) {
  return {.reason = fmt::format("{}: the file {}", what, kDamagedOrChanged),
          .file = {},
          .offset = offset};
}

std::optional<std::vector<std::uint64_t>> find_snappy_begins(std::span<const std::byte> text,
                                                             std::uint64_t begin,
                                                             std::uint64_t bytes) {
  const SnappyLength length = read_length(text);
  if (length.size == 0 || length.value != bytes) return std::nullopt;
  std::vector<std::uint64_t> begins;
  begins.reserve(static_cast<std::size_t>(bytes / SnappyBlocks::kBlockBytes) + 2);
  std::uint64_t at = length.size;
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::uint64_t in_block = done % SnappyBlocks::kBlockBytes;
    if (in_block == 0) begins.push_back(begin + at);
    const auto element = element_at(text.subspan(static_cast<std::size_t>(at)));
    if (!element || element->size > text.size() - at || element->offset > in_block ||
        element->bytes > SnappyBlocks::kBlockBytes - in_block)
      return std::nullopt;
    at += element->size;
    done += element->bytes;
  }
  if (at != text.size()) return std::nullopt;
  begins.push_back(begin + at);
  return begins;
}

Result<void> read_snappy_blocks(std::span<const std::uint64_t> begins, const ReadBytes& read,
                                std::span<std::byte> out) {
  const std::uint64_t offset = begins.front();
  const auto stored_bytes = static_cast<std::size_t>(begins.back() - offset);
  // The blocks with their length in front of them are a compressed text.
  const auto memory =
      std::make_unique_for_overwrite<std::byte[]>(SnappyLength::kMost + stored_bytes);
  const std::span text(memory.get(), SnappyLength::kMost + stored_bytes);
  if (auto result = read(offset, text.subspan(SnappyLength::kMost)); !result) return result;
  std::array<std::byte, SnappyLength::kMost> length{};
  const std::size_t size = write_length(out.size(), length);
  const auto whole = text.subspan(SnappyLength::kMost - size);
  std::ranges::copy(std::span(length).first(size), whole.begin());
  const auto result = parquet_result([&] {
    decompress_parquet(ParquetCodec::snappy, whole, out, {.file = {}, .offset = offset});
    return true;
  });
  if (!result) return changed_page(offset, "blocks of a page do not decompress");
  return {};
}

std::shared_ptr<const SnappyBlocks> find_snappy_blocks(const ParquetLeaf& leaf,
                                                       const ParquetChunk& chunk,
                                                       const IndexedPage& page,
                                                       std::span<const std::byte> file_bytes,
                                                       const ParquetValues& values) {
  if (chunk.codec != ParquetCodec::snappy || leaf.type != ParquetType::byte_array ||
      leaf.max_repetition != 0 || values.is_shared || values.owner == nullptr ||
      values.slices.empty() || values.bytes.size() / values.slices.size() < kLeastMeanBytes)
    return nullptr;
  const auto header = read_parquet_page_header(file_bytes, {.file = {}, .offset = page.begin});
  if (!header || !header->is_compressed) return nullptr;
  const bool is_plain = header->encoding == ParquetEncoding::plain ||
                        header->kind == ParquetPageKind::dictionary;  // whatever it calls that
  if (!is_plain) return nullptr;
  // Levels of the second version lie uncompressed in front of the values; those of the first are compressed with them.
  const std::uint64_t levels =
      header->kind == ParquetPageKind::data_v2
          ? std::uint64_t{header->repetition_bytes} + header->definition_bytes
          : 0;
  const std::uint64_t first = header->header_bytes + levels;
  const std::uint64_t bytes = header->unpacked_bytes - levels;
  auto begins = find_snappy_begins(file_bytes.subspan(static_cast<std::size_t>(first)),
                                   page.begin + first, bytes);
  if (!begins) return nullptr;
  return std::make_shared<const SnappyBlocks>(SnappyBlocks{std::move(*begins), bytes});
}

SnappyRows snappy_rows(std::shared_ptr<const SnappyBlocks> blocks, const ParquetPageRows& rows) {
  const ParquetValues& values = rows.values();
  const auto values_begin = static_cast<std::uint32_t>(values.bytes.data() - values.owner.get());
  SnappyRows found{.blocks = std::move(blocks), .values = {}};
  found.values.reserve(static_cast<std::size_t>(rows.rows()));
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const ParquetPiece piece = rows.row(row);
    if (piece.first_value == piece.last_value) {
      found.values.push_back({SnappyRows::kNull, 0});
      continue;
    }
    const ParquetSlice slice = values.slices[piece.first_value];
    found.values.push_back({values_begin + slice.begin, slice.bytes});
  }
  return found;
}

Result<std::span<const std::byte>> read_snappy_value(const SnappyBlocks& blocks,
                                                     const ParquetSlice& value, std::size_t wanted,
                                                     const ReadBytes& read, Record& record) {
  const std::uint64_t begin = value.begin - kLengthBytes;
  const std::uint64_t end = value.begin + wanted;
  const auto first = static_cast<std::size_t>(begin / SnappyBlocks::kBlockBytes);
  const auto behind = static_cast<std::size_t>((end - 1) / SnappyBlocks::kBlockBytes) + 1;
  const std::uint64_t blocks_begin = first * SnappyBlocks::kBlockBytes;
  const std::uint64_t bytes =
      std::min(behind * SnappyBlocks::kBlockBytes, blocks.bytes) - blocks_begin;
  const std::uint64_t offset = blocks.begins[first];
  auto out = record.allocate(wanted);
  if (!out) return Fault{.reason = std::move(out.fault().reason), .offset = offset};
  // As a page's, this memory is not the record's, which has room for the value alone.
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
  const std::span unpacked(memory.get(), static_cast<std::size_t>(bytes));
  const auto begins = std::span(blocks.begins).subspan(first, behind - first + 1);
  if (auto result = read_snappy_blocks(begins, read, unpacked); !result)
    return std::move(result.fault());
  record.add_bytes_read(static_cast<std::size_t>(begins.back() - begins.front()));
  const auto found = unpacked.subspan(static_cast<std::size_t>(begin - blocks_begin));
  if (load_little_endian<std::uint32_t>(found) != value.bytes)
    return changed_page(offset, "the value's length is no longer the one that was read before");
  std::ranges::copy(found.subspan(kLengthBytes, wanted), out->begin());
  return std::span<const std::byte>(*out);
}

}  // namespace penstock::source
