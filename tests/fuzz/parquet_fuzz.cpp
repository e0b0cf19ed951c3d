// Parquet files, and single pages with what their footer would say of them. The last byte says which.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/source/parquet/chunk_scan.hpp"

namespace {

using namespace penstock;
using namespace penstock::source;

constexpr ParquetLimits kFuzzLimits{.page_bytes = 1 << 18, .page_values = 1 << 12};

void require(bool holds) {
  if (!holds) std::abort();
}

void check_values(const ParquetLeaf& leaf, const ParquetDecodedPage& page) {
  const ParquetLevels& levels = page.levels;
  const ParquetValues& values = page.values;
  require(levels.slots <= kFuzzLimits.page_values && levels.present <= levels.slots);
  require(values.count == levels.present && values.bytes.size() <= kFuzzLimits.page_bytes);
  require(levels.definition.size() == (leaf.max_definition > 0 ? levels.slots : 0));
  require(levels.repetition.size() == (leaf.max_repetition > 0 ? levels.slots : 0));
  require(levels.rows().size() == levels.row_count());
  require(values.slices.size() == (values.width == 0 ? values.count : 0));
  std::uint64_t sum = 0;  // every byte is read, for sanitizers
  for (std::size_t i = 0; i < values.count; ++i)
    for (const std::byte byte : values[i]) {
      sum += std::to_integer<unsigned>(byte);
      if (i > 100) break;
    }
  require(sum < ~std::uint64_t{0});
}

void read_chunk(const ParquetLeaf& leaf, const ParquetChunk& chunk, std::uint64_t rows,
                std::span<const std::byte> file) {
  std::vector<std::byte> window;  // of each read its own: nothing may be used after the next one
  const ParquetRead read = [&](std::uint64_t offset,
                               std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    require(offset <= file.size() && bytes <= file.size() - offset);
    const auto found = file.subspan(offset, bytes);
    window = std::vector<std::byte>(found.begin(), found.end());
    return std::span<const std::byte>(window);
  };
  const std::string name = "a.parquet";
  (void)read_parquet_offset_index(chunk, rows, read, name);
  const auto pages = scan_parquet_chunk(leaf, chunk, rows, read, name, kFuzzLimits);
  if (!pages) return;
  ParquetValues dictionary;
  if (pages->dictionary) {
    const ParquetPage& page = *pages->dictionary;
    const ParquetOrigin origin{.file = name, .offset = page.begin()};
    auto decoded =
        decode_parquet_dictionary({leaf, chunk.codec, page.header,
                                   file.subspan(page.begin(), page.header.packed_bytes), origin},
                                  kFuzzLimits);
    if (decoded) dictionary = std::move(*decoded);
  }
  std::uint64_t row = 0;
  for (const ParquetPage& page : pages->data) {
    require(page.offset >= chunk.pages.begin && page.end() <= chunk.pages.end());
    require(page.first_row == row);
    row += page.rows;
    const ParquetOrigin origin{.file = name, .offset = page.begin()};
    const auto decoded =
        decode_parquet_page({leaf, chunk.codec, page.header,
                             file.subspan(page.begin(), page.header.packed_bytes), origin},
                            &dictionary, kFuzzLimits);
    if (decoded) check_values(leaf, *decoded);
    const auto found = find_parquet_values(leaf, chunk.codec, page, read, name, kFuzzLimits);
    if (!found) continue;
    for (const ParquetRange& value : found->values)
      require(value.begin >= page.begin() && value.bytes <= page.end() - value.begin);
    if (decoded) require(decoded->values.slices.size() == found->values.size());
  }
  require(row == rows);
}

void read_file(std::span<const std::byte> file) {
  const auto needed = parquet_footer_bytes(
      file.last(std::min<std::size_t>(file.size(), kParquetTail)), file.size(), "a.parquet");
  if (!needed) return;
  require(*needed <= file.size());
  const auto footer = read_parquet_footer(file.last(*needed), file.size(), "a.parquet");
  if (!footer) return;
  std::size_t chunks = 0;
  for (const ParquetRowGroup& group : footer->row_groups) {
    require(group.chunks.size() == footer->schema.leaves.size());
    for (std::size_t i = 0; i < group.chunks.size(); ++i) {
      const ParquetChunk& chunk = group.chunks[i];
      if (chunk.is_encrypted || !chunk.other_file.empty()) continue;
      require(chunk.pages.end() <= file.size());
      if (++chunks <= 30) read_chunk(footer->schema.leaves[i], chunk, group.rows, file);
    }
  }
}

// The leaf in five bytes, the header, and the page.
void read_page(std::span<const std::byte> bytes) {
  constexpr std::size_t kLeaf = 5;
  if (bytes.size() < kLeaf) return;
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  ParquetLeaf leaf;
  leaf.path = "a";
  leaf.type = static_cast<ParquetType>(at(0) % 8);
  leaf.type_length = 1 + at(1) % 40;
  leaf.max_definition = static_cast<std::uint8_t>(at(2) % 6);
  leaf.max_repetition = static_cast<std::uint8_t>(at(3) % 4);
  const auto codec = static_cast<ParquetCodec>(at(4) % 8);
  const ParquetOrigin origin{.file = "a.parquet"};
  const auto body = bytes.subspan(kLeaf);
  auto header = read_parquet_page_header(body, origin);
  if (!header) return;
  require(header->header_bytes <= body.size());
  const auto page = body.subspan(header->header_bytes);
  header->packed_bytes = static_cast<std::uint32_t>(page.size());
  if (header->crc && at(0) >= 128) header->crc.reset();
  const ParquetPageInput input{leaf, codec, *header, page, origin};
  static constexpr std::array<std::byte, 400> kEntries{};
  ParquetValues dictionary{.count = 9, .width = 0, .bytes = kEntries};
  if (leaf.type == ParquetType::byte_array) {
    for (std::uint32_t i = 0; i < dictionary.count; ++i) dictionary.slices.push_back({i, 2 * i});
  } else if (leaf.type != ParquetType::int96) {
    dictionary.width = parquet_width(leaf, origin);
  }
  const auto decoded = decode_parquet_page(input, &dictionary, kFuzzLimits);
  if (decoded) check_values(leaf, *decoded);
  const auto entries = decode_parquet_dictionary(input, kFuzzLimits);
  if (entries) require(entries->owner != nullptr && entries->count == header->values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // In memory of its own, whose end sanitizers see.
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                     reinterpret_cast<const std::byte*>(data) + size - 1);
  if (data[size - 1] % 2 == 0) {
    read_file(bytes);
  } else {
    read_page(bytes);
  }
  return 0;
}
