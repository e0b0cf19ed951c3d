#include "src/source/parquet/page_numbers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "src/source/little_endian.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/source/parquet/hybrid.hpp"
#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

namespace {

constexpr std::uint64_t kBlockBytes = SnappyBlocks::kBlockBytes;
// A page of fewer blocks is decoded as a whole.
constexpr std::uint64_t kLeastBlocks = 4;
// Reads of rows that cost about as much as decoding a page, for each of its blocks: a page of 1 MiB took 2.1 ms, a row 0.04.
constexpr std::uint64_t kReadsForBlock = 2;

// Bytes of a page, of which blocks are read as they are needed.
class BlockReader {
 public:
  BlockReader(const PageNumbers& page, const ReadBytes& read, Record& record)
      : page_(page), read_(read), record_(record) {}

  // Bytes [begin, end) of what all blocks become; valid until the next call.
  Result<std::span<const std::byte>> bytes(std::uint64_t begin, std::uint64_t end) {
    if (begin > end || end > page_.bytes)
      return changed_page(page_.begins.front(), "a page ends before its numbers");
    if (begin == end) return std::span<const std::byte>();
    if (begin < first_ || end > first_ + size_) {
      if (auto result = load(begin / kBlockBytes, (end - 1) / kBlockBytes + 1); !result)
        return std::move(result.fault());
    }
    return std::span<const std::byte>(blocks_.get(), size_)
        .subspan(static_cast<std::size_t>(begin - first_), static_cast<std::size_t>(end - begin));
  }

 private:
  Result<void> load(std::uint64_t first, std::uint64_t behind) {
    const auto begins =
        std::span(page_.begins)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(behind - first) + 1);
    first_ = first * kBlockBytes;
    size_ = static_cast<std::size_t>(std::min(behind * kBlockBytes, page_.bytes) - first_);
    blocks_ = std::make_unique_for_overwrite<std::byte[]>(size_);
    const std::span<std::byte> out(blocks_.get(), size_);
    record_.add_bytes_read(static_cast<std::size_t>(begins.back() - begins.front()));
    if (page_.is_packed) return read_snappy_blocks(begins, read_, out);
    return read_(begins.front(), out);
  }

  const PageNumbers& page_;
  const ReadBytes& read_;
  Record& record_;
  std::uint64_t first_ = 0;  // where blocks_ begin
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> blocks_;
};

// Whether each row has as many values as `count_of` says, none of them null.
template <class CountOf>
bool has_counts(const ParquetPageRows& rows, const CountOf& count_of) {
  for (std::uint64_t row = 0; row < rows.rows(); ++row) {
    const ParquetPiece piece = rows.row(static_cast<std::size_t>(row));
    const std::uint64_t values = piece.last_value - piece.first_value;
    // A null list has a slot, and so has an empty one.
    if (values != count_of(row) || (values > 0 && piece.last_slot - piece.first_slot != values))
      return false;
  }
  return true;
}

// How many values rows have, in `out`. False if it cannot be told without a number for each.
bool find_rows(const ParquetPageRows& rows, const IndexedLengths& lengths, PageNumbers& out) {
  const ParquetPiece leading = rows.leading();
  out.leading = leading.last_value;
  if (rows.rows() == 0 || leading.last_slot != leading.last_value) return false;
  // The last may go on in the next page, and is never asked for.
  const ParquetPiece first = rows.row(0);
  const std::uint64_t of_first = first.last_value - first.first_value;
  const std::uint64_t last = rows.rows() - 1;
  const auto count_of_last = [&](std::uint64_t row, std::uint64_t count) {
    const ParquetPiece piece = rows.row(static_cast<std::size_t>(row));
    return row == last ? std::uint64_t{piece.last_value - piece.first_value} : count;
  };
  if (has_counts(rows, [&](std::uint64_t row) { return count_of_last(row, of_first); })) {
    out.row_values = of_first;
    return of_first > 0;
  }
  if (lengths.labels == nullptr ||
      !has_counts(rows, [&](std::uint64_t row) { return count_of_last(row, lengths[row]); }))
    return false;
  for (std::uint64_t row = 0; row < rows.rows(); row += PageNumbers::kRowsBetween)
    out.row_begins.push_back(rows.row(static_cast<std::size_t>(row)).first_value);
  return true;
}

// The first run that begins in each block.
bool find_runs(std::span<const std::byte> encoded, PageNumbers& out) {
  const ParquetOrigin origin;
  std::uint64_t first = 0;
  std::uint64_t next_block = 0;
  std::size_t at = 0;
  while (first < out.count) {
    if (at >= encoded.size()) return false;
    if (const std::uint64_t block = (out.encoded_at + at) / kBlockBytes; block >= next_block) {
      out.runs.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(at)});
      next_block = block + 1;
    }
    const HybridRun run = read_hybrid_run(encoded, at, out.index_bits, origin);
    if (run.count > out.count - first) break;
    first += run.count;
    if (run.is_packed) at += static_cast<std::size_t>(run.count / 8 * out.index_bits);
  }
  return true;
}

// What a page becomes, in `memory` unless it lies there so; none where it cannot be told how to decompress its blocks alone.
std::optional<std::span<const std::byte>> unpack_blocks(ParquetCodec codec,
                                                        std::span<const std::byte> packed,
                                                        std::uint64_t begin, PageNumbers& out,
                                                        std::vector<std::byte>& memory) {
  out.is_packed = codec == ParquetCodec::snappy;
  if (!out.is_packed) {
    if (packed.size() != out.bytes) return std::nullopt;
    for (std::uint64_t at = 0; at < out.bytes; at += kBlockBytes) out.begins.push_back(begin + at);
    out.begins.push_back(begin + out.bytes);
    return packed;
  }
  auto begins = find_snappy_begins(packed, begin, out.bytes);
  if (!begins) return std::nullopt;
  out.begins = std::move(*begins);
  memory.resize(static_cast<std::size_t>(out.bytes));
  decompress_parquet(codec, packed, memory, {});
  return std::span<const std::byte>(memory);
}

// Indices [range.first, range.first + range.count).
Result<std::vector<std::uint32_t>> read_indices(const PageNumbers& page,
                                                const PageNumbers::Range& range,
                                                BlockReader& blocks) {
  constexpr std::uint64_t kLongestHeader = 10 + sizeof(std::uint32_t);
  const ParquetOrigin origin{.file = {}, .offset = page.begins.front()};
  const std::uint64_t encoded_bytes = page.bytes - page.encoded_at;
  const auto behind =
      std::ranges::upper_bound(page.runs, range.first, {}, &PageNumbers::Run::first);
  std::uint64_t first = std::prev(behind)->first;
  std::uint64_t at = std::prev(behind)->at;
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(range.count));
  std::size_t done = 0;
  while (done < indices.size()) {
    const std::uint64_t begin = page.encoded_at + at;
    auto header = blocks.bytes(begin, begin + std::min(kLongestHeader, encoded_bytes - at));
    if (!header) return std::move(header.fault());
    std::size_t header_bytes = 0;
    auto run = parquet_result(
        [&] { return read_hybrid_run(*header, header_bytes, page.index_bits, origin); });
    if (!run) return changed_page(origin.offset, "a run of indices ends before");
    at += header_bytes;
    const std::uint64_t next = range.first + done;
    const std::uint64_t skipped = next - first;
    if (run->count > skipped) {
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>(run->count - skipped, indices.size() - done));
      const auto some = std::span(indices).subspan(done, count);
      if (run->is_packed) {
        // Eight of them begin with a byte.
        const auto before = static_cast<std::size_t>(skipped % 8);
        const std::uint64_t begin_byte = skipped / 8 * page.index_bits;
        const std::uint64_t end_byte =
            begin_byte + (std::uint64_t{before + count} * page.index_bits + 7) / 8;
        auto packed =
            blocks.bytes(page.encoded_at + at + begin_byte, page.encoded_at + at + end_byte);
        if (!packed) return std::move(packed.fault());
        std::vector<std::uint32_t> unpacked(before + count);
        (void)unpack_bits(*packed, page.index_bits, std::span(unpacked));
        std::ranges::copy(std::span(unpacked).subspan(before), some.begin());
      } else {
        std::ranges::fill(some, run->value);
      }
      done += count;
    }
    if (run->is_packed) at += run->count / 8 * page.index_bits;
    first += run->count;
    if (done < indices.size() && at >= encoded_bytes)
      return changed_page(origin.offset, "runs of indices end before");
  }
  return indices;
}

}  // namespace

std::optional<PageNumbers::Range> PageNumbers::find(std::uint64_t row,
                                                    const IndexedLengths& lengths) const noexcept {
  Range range;
  if (row_values) {
    range = {leading + row * *row_values, *row_values};
  } else {
    if (lengths.labels == nullptr) return std::nullopt;
    const std::uint64_t known = row / kRowsBetween;
    range.first = row_begins[static_cast<std::size_t>(known)];
    for (std::uint64_t before = known * kRowsBetween; before < row; ++before)
      range.first += lengths[before];
    range.count = lengths[row];
  }
  if (range.count == 0 || range.first > count || range.count > count - range.first)
    return std::nullopt;
  return range;
}

// Counts begin anew for every so many reads of all pages that each page which has room could be read often enough. Threads may lose
// a count of another, and rows that come in order may overtake each other.
bool PageNumbers::count_read(const Read& read) const noexcept {
  constexpr unsigned kCountBits = 16;
  constexpr std::uint64_t kMostCount = (1U << kCountBits) - 1;
  constexpr std::uint64_t kNear = 16;
  constexpr std::uint64_t kInOrder = 3;
  constexpr std::uint64_t kEnoughRemote = 4;  // requests, where a page takes one
  const std::uint64_t last = in_order.load(std::memory_order_relaxed);
  const std::uint64_t last_row = last >> kCountBits;
  const bool is_near = std::max(read.row, last_row) - std::min(read.row, last_row) <= kNear;
  const std::uint64_t near = is_near ? (last & kMostCount) + 1 : 0;
  const std::uint64_t enough =
      read.is_remote ? kEnoughRemote
                     : std::min<std::uint64_t>(kReadsForBlock * begins.size(), kMostCount);
  const std::uint64_t pages = std::max<std::uint64_t>(read.room / (count * width), 1);
  const std::uint64_t round = read.number / enough / pages + 1;
  const std::uint64_t before = reads.load(std::memory_order_relaxed);
  const std::uint64_t in_round = before >> kCountBits == round ? before & kMostCount : 0;
  const bool is_often = in_round + 1 >= enough || near >= kInOrder;
  reads.store(round << kCountBits | (is_often ? 0 : in_round + 1), std::memory_order_relaxed);
  in_order.store(read.row << kCountBits | (is_often ? 0 : near), std::memory_order_relaxed);
  return is_often;
}

std::shared_ptr<const PageNumbers> find_page_numbers(const ParquetLeaf& leaf,
                                                     const ParquetChunk& chunk,
                                                     const IndexedPage& page,
                                                     std::span<const std::byte> file_bytes,
                                                     const ParquetPageRows& rows,
                                                     const IndexedLengths& lengths) {
  const ParquetValues& values = rows.values();
  if (leaf.type == ParquetType::boolean || leaf.max_repetition > 1 || values.width == 0 ||
      (chunk.codec != ParquetCodec::snappy && chunk.codec != ParquetCodec::uncompressed))
    return nullptr;
  const auto header = read_parquet_page_header(file_bytes, {.file = {}, .offset = page.begin});
  if (!header) return nullptr;
  const bool is_plain = header->encoding == ParquetEncoding::plain;
  if (!is_plain && header->encoding != ParquetEncoding::rle_dictionary &&
      header->encoding != ParquetEncoding::plain_dictionary)
    return nullptr;
  // Levels of the second version lie uncompressed in front of the numbers; those of the first are compressed with them.
  const bool is_second = header->kind == ParquetPageKind::data_v2;
  const std::uint64_t levels =
      is_second ? std::uint64_t{header->repetition_bytes} + header->definition_bytes : 0;
  auto found = std::make_shared<PageNumbers>();
  found->bytes = header->unpacked_bytes - levels;
  if (found->bytes < kLeastBlocks * kBlockBytes || !find_rows(rows, lengths, *found))
    return nullptr;
  found->is_plain = is_plain;
  found->width = values.width;
  found->count = values.count;
  const std::uint64_t first = header->header_bytes + levels;
  const auto made = parquet_result([&]() -> bool {
    const ParquetCodec codec = header->is_compressed ? chunk.codec : ParquetCodec::uncompressed;
    std::vector<std::byte> memory;
    const auto encoded = unpack_blocks(codec, file_bytes.subspan(static_cast<std::size_t>(first)),
                                       page.begin + first, *found, memory);
    if (!encoded) return false;
    if (!is_second) found->encoded_at = parquet_levels_bytes(leaf, *encoded, {});
    if (is_plain) return found->count * found->width <= encoded->size() - found->encoded_at;
    if (found->encoded_at == encoded->size()) return false;
    found->index_bits =
        std::to_integer<unsigned>((*encoded)[static_cast<std::size_t>(found->encoded_at)]);
    ++found->encoded_at;
    if (found->index_bits > 32) return false;
    return find_runs(encoded->subspan(static_cast<std::size_t>(found->encoded_at)), *found);
  });
  if (!made || !*made) return nullptr;
  return found;
}

Result<ParquetValues> read_page_numbers(const PageNumbers& page, const PageNumbers::Range& range,
                                        const ParquetValues* dictionary, const ReadBytes& read,
                                        Record& record) {
  BlockReader blocks(page, read, record);
  const auto size = static_cast<std::size_t>(range.count * page.width);
  auto memory = std::make_shared_for_overwrite<std::byte[]>(size);
  ParquetValues values{.count = range.count, .width = page.width};
  if (page.is_plain) {
    const std::uint64_t begin = page.encoded_at + range.first * page.width;
    auto found = blocks.bytes(begin, begin + size);
    if (!found) return std::move(found.fault());
    std::ranges::copy(*found, memory.get());
  } else {
    const auto indices = read_indices(page, range, blocks);
    if (!indices) return std::move(indices.fault());
    if (dictionary == nullptr || dictionary->width != page.width ||
        std::ranges::any_of(*indices,
                            [&](std::uint32_t index) { return index >= dictionary->count; }))
      return changed_page(page.begins.front(), "an index leads outside of its dictionary");
    copy_dictionary_values(*indices, *dictionary, memory.get());
  }
  values.bytes = {memory.get(), size};
  values.owner = std::move(memory);
  return values;
}

}  // namespace penstock::source
