#include "src/source/parquet/cell_reader.hpp"

#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "src/source/parquet/chunk_scan.hpp"
#include "src/source/tables/table_row.hpp"

namespace penstock::source {

namespace {

constexpr std::uint64_t kDamageBytes = std::uint64_t{1} << 20;  // of faults that are kept
// Of what is known of pages that are not: about 2 KB of one of 10 MB.
constexpr std::uint64_t kBlocksBytes = std::uint64_t{32} << 20;
// The same of numbers: about 0.6 KB of a page of 1 MiB.
constexpr std::uint64_t kNumbersBytes = std::uint64_t{64} << 20;

}  // namespace

ParquetCellReader::ParquetCellReader(const ShardSet& shards,
                                     const std::vector<ParquetTableFile>& files,
                                     const ParquetOptions& options)
    : shards_(shards),
      files_(files),
      max_record_bytes_(options.max_record_bytes),
      page_bytes_(options.page_cache_bytes - options.page_cache_bytes / 4),
      pages_(page_bytes_),
      dictionaries_(options.page_cache_bytes / 4),
      in_blocks_(kBlocksBytes),
      numbers_(kNumbersBytes),
      damage_(kDamageBytes) {}

std::shared_ptr<const SnappyRows> ParquetCellReader::find_in_blocks(const ParquetCellPlace& at,
                                                                    std::uint64_t page) const {
  if (files_[at.shard].chunk(at.field, at.place.group).codec != ParquetCodec::snappy)
    return nullptr;
  auto rows = in_blocks_.peek({at.shard, page});
  return rows == nullptr || pages_.peek({at.shard, page}) != nullptr ? nullptr : rows;
}

Result<ParquetCell> ParquetCellReader::read(const ParquetCellPlace& at, std::uint64_t number,
                                            Record& record) const {
  const ShardIndex& index = shards_.index(at.shard);
  const ParquetTableFile& file = files_[at.shard];
  const auto& group = file.pages(at.field, at.place.group);
  const ParquetField& field = file.field(at.field);
  const IndexedPage first = index.page(number);
  ParquetCell cell{.parts = {}, .offset = first.begin};
  const std::uint64_t row = at.place.row - first.first_row;
  const bool may_go_on = field.values.is_list && row + 1 == first.rows;
  if (!may_go_on) {
    auto part = part_at(at, number, row, record);
    if (!part) return std::move(part.fault());
    if (part->page != nullptr) {
      cell.parts.push_back(std::move(*part));
      return cell;
    }
  }
  auto page = page_at(at, number, record);
  if (!page) return std::move(page.fault());
  cell.parts.push_back({*page, (*page)->row(static_cast<std::size_t>(row))});
  std::uint64_t bytes = 0;
  for (std::uint64_t next = number + 1; may_go_on && next < group.last; ++next) {
    const IndexedPage indexed = index.page(next);
    if (indexed.bytes == 0 || indexed.group != at.place.group ||
        indexed.column != file.leaf_number(at.field))
      return missing_page(at);
    page = page_at(at, next, record);
    if (!page) return std::move(page.fault());
    const ParquetPiece leading = (*page)->leading();
    if (leading.last_slot > 0) cell.parts.push_back({*page, leading});
    if ((*page)->rows() > 0) break;
    // All pages of the list are in memory at once.
    bytes += (*page)->bytes_of(leading, field);
    if (bytes > max_record_bytes_)
      return TableRow::fault(first.begin,
                             fmt::format("the list takes {} bytes up to here, more than "
                                         "max_record_bytes = {}",
                                         bytes, max_record_bytes_));
  }
  return cell;
}

// With its header.
Result<std::shared_ptr<const std::byte[]>> ParquetCellReader::read_page(const ParquetCellPlace& at,
                                                                        const IndexedPage& page,
                                                                        Record& record) const {
  const auto size = static_cast<std::size_t>(page.bytes);
  auto bytes = std::make_shared_for_overwrite<std::byte[]>(size);
  if (auto result = shards_.read(at.shard, page.begin, {bytes.get(), size}); !result)
    return std::move(result.fault());
  record.add_bytes_read(size);
  return std::shared_ptr<const std::byte[]>(std::move(bytes));
}

// The numbers of a row alone, where its page was decoded once, is no longer in memory, and is not read so often that it should be.
// Without a page otherwise.
Result<ParquetCell::Part> ParquetCellReader::part_at(const ParquetCellPlace& at,
                                                     std::uint64_t number, std::uint64_t row,
                                                     Record& record) const {
  const auto numbers = numbers_.peek({at.shard, number});
  if (numbers == nullptr || pages_.peek({at.shard, number}) != nullptr) return ParquetCell::Part{};
  const auto range = numbers->find(row, {at.lengths, at.row - row});
  if (!range || numbers->count_read({.row = row,
                                     .number = part_reads_.fetch_add(1, std::memory_order_relaxed),
                                     .room = page_bytes_,
                                     .is_remote = shards_.is_remote()}))
    return ParquetCell::Part{};
  DictionaryPtr dictionary;
  if (const auto& group = files_[at.shard].pages(at.field, at.place.group);
      !numbers->is_plain && group.dictionary) {
    auto found = dictionary_at(at, *group.dictionary, record);
    if (!found) return std::move(found.fault());
    dictionary = *found;
  }
  auto values = read_page_numbers(
      *numbers, *range, dictionary == nullptr ? nullptr : &dictionary->values,
      [&](std::uint64_t offset, std::span<std::byte> into) {
        return shards_.read(at.shard, offset, into);
      },
      record);
  if (!values) return std::move(values.fault());
  ParquetDecodedPage decoded{.levels = {.slots = range->count, .present = range->count},
                             .values = std::move(*values)};
  const auto count = static_cast<std::uint32_t>(range->count);
  return ParquetCell::Part{std::make_shared<const ParquetPageRows>(
                               std::move(decoded), files_[at.shard].leaf(at.field), nullptr),
                           {0, count, 0, count}};
}

// Decoded, by this call or an earlier one.
Result<ParquetCellReader::PagePtr> ParquetCellReader::page_at(const ParquetCellPlace& at,
                                                              std::uint64_t number,
                                                              Record& record) const {
  const auto found = pages_.get(
      {at.shard, number}, [&] { return decode_page(at, number, record); },
      [](const Decoded<ParquetPageRows>& page) -> CachedBytes {
        if (!page.value) return {bytes_of_fault(page.fault)};
        // Texts of a dictionary are in its memory, which all of its pages share.
        const ParquetValues& values = page.value->values();
        const std::uint64_t all = page.value->memory_bytes();
        if (!values.is_shared) return {all};
        return {all - values.bytes.size(), values.owner.get(), values.bytes.size()};
      });
  if (!found) return found.fault();
  if (!(*found)->value) return (*found)->fault;
  return PagePtr(*found, &*(*found)->value);
}

Result<ParquetCellReader::DecodedPtr<ParquetPageRows>> ParquetCellReader::decode_page(
    const ParquetCellPlace& at, std::uint64_t number, Record& record) const {
  const ParquetTableFile& file = files_[at.shard];
  const IndexedPage page = shards_.index(at.shard).page(number);
  const auto& group = file.pages(at.field, at.place.group);
  DictionaryPtr dictionary;
  if (group.dictionary) {
    auto found = dictionary_at(at, *group.dictionary, record);
    if (!found) return std::move(found.fault());
    dictionary = *found;
  }
  auto bytes = read_page(at, page, record);
  if (!bytes) return std::move(bytes.fault());
  const std::shared_ptr<const std::byte[]> stored = *bytes;
  const ParquetChunk& chunk = file.chunk(at.field, at.place.group);
  auto rows =
      decode_indexed_page(file.leaf(at.field), chunk, page, std::move(*bytes),
                          dictionary ? &dictionary->values : nullptr, shards_.path(at.shard));
  if (rows && rows->values().width != file.field(at.field).file_width)
    rows = TableRow::fault(
        page.begin,
        fmt::format("a page has values of {} bytes, and its column of {}: the file {}",
                    rows->values().width, file.field(at.field).file_width, kDamagedOrChanged));
  if (!rows) return decoded(std::move(rows));
  const std::span<const std::byte> all(stored.get(), static_cast<std::size_t>(page.bytes));
  keep_numbers(at, number, all, *rows);
  auto blocks = rows->values().is_shared
                    ? dictionary->blocks
                    : find_snappy_blocks(file.leaf(at.field), chunk, page, all, rows->values());
  if (blocks)
    (void)in_blocks_.get(
        {at.shard, number},
        [&]() -> Result<std::shared_ptr<const SnappyRows>> {
          return std::make_shared<const SnappyRows>(snappy_rows(std::move(blocks), *rows));
        },
        [](const SnappyRows& kept) -> CachedBytes {
          return {kept.memory_bytes(), kept.blocks.get(), kept.blocks->memory_bytes()};
        });
  return decoded(std::move(rows));
}

// Once: what is known of a page does not change.
void ParquetCellReader::keep_numbers(const ParquetCellPlace& at, std::uint64_t number,
                                     std::span<const std::byte> file_bytes,
                                     const ParquetPageRows& rows) const {
  const PageCache<PageNumbers>::Key key{at.shard, number};
  if (numbers_.peek(key) != nullptr) return;
  const ParquetTableFile& file = files_[at.shard];
  const IndexedPage page = shards_.index(at.shard).page(number);
  auto numbers =
      find_page_numbers(file.leaf(at.field), file.chunk(at.field, at.place.group), page, file_bytes,
                        rows, {at.lengths, at.row - (at.place.row - page.first_row)});
  if (numbers == nullptr) return;
  (void)numbers_.get(
      key, [&]() -> Result<std::shared_ptr<const PageNumbers>> { return std::move(numbers); },
      [](const PageNumbers& kept) -> CachedBytes { return {kept.memory_bytes()}; });
}

Result<ParquetCellReader::DictionaryPtr> ParquetCellReader::dictionary_at(
    const ParquetCellPlace& at, std::uint64_t number, Record& record) const {
  const auto found = dictionaries_.get(
      {at.shard, number},
      [&]() -> Result<DecodedPtr<Dictionary>> {
        const ParquetTableFile& file = files_[at.shard];
        const ParquetLeaf& leaf = file.leaf(at.field);
        const ParquetChunk& chunk = file.chunk(at.field, at.place.group);
        const IndexedPage page = shards_.index(at.shard).page(number);
        auto bytes = read_page(at, page, record);
        if (!bytes) return std::move(bytes.fault());
        const std::span<const std::byte> all(bytes->get(), static_cast<std::size_t>(page.bytes));
        auto values = decode_indexed_dictionary(leaf, chunk, page, all, shards_.path(at.shard));
        if (!values) return decoded(Result<Dictionary>(std::move(values.fault())));
        auto blocks = find_snappy_blocks(leaf, chunk, page, all, *values);
        return decoded(Result<Dictionary>(Dictionary{std::move(*values), std::move(blocks)}));
      },
      [](const Decoded<Dictionary>& dictionary) -> CachedBytes {
        if (!dictionary.value) return {bytes_of_fault(dictionary.fault)};
        const auto& [values, blocks] = *dictionary.value;
        return {values.bytes.size() + values.slices.size() * sizeof(ParquetSlice) +
                (blocks ? blocks->memory_bytes() : 0)};
      });
  if (!found) return found.fault();
  if (!(*found)->value) return (*found)->fault;
  return DictionaryPtr(*found, &*(*found)->value);
}

// The index has no page for the row, or for what it goes on with. The column's pages are looked at again, once for all
// rows of a row group.
Fault ParquetCellReader::missing_page(const ParquetCellPlace& at) const {
  const ParquetTableFile& file = files_[at.shard];
  const std::uint64_t chunk =
      at.place.group * file.footer().schema.leaves.size() + file.leaf_number(at.field);
  auto found = damage_.get(
      {at.shard, chunk}, [&] { return find_damage(at); },
      [](const Fault& fault) -> CachedBytes { return {bytes_of_fault(fault)}; });
  return found ? **found : std::move(found.fault());
}

// A fault of its own if the file cannot be read at all, which may pass.
Result<std::shared_ptr<const Fault>> ParquetCellReader::find_damage(
    const ParquetCellPlace& at) const {
  const auto is = [](Fault fault) -> std::shared_ptr<const Fault> {
    return std::make_shared<const Fault>(std::move(fault));
  };
  const ParquetTableFile& file = files_[at.shard];
  const ParquetChunk& chunk = file.chunk(at.field, at.place.group);
  if (chunk.is_encrypted) return is(TableRow::fault(chunk.pages.begin, "its pages are encrypted"));
  if (!chunk.other_file.empty())
    return is(TableRow::fault(chunk.pages.begin,
                              fmt::format("its pages are in another file, {}", chunk.other_file)));
  std::vector<std::byte> buffer;
  std::optional<Fault> unread;
  const ParquetRead read = [&](std::uint64_t offset,
                               std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    buffer.resize(static_cast<std::size_t>(bytes));
    auto result = shards_.read(at.shard, offset, buffer);
    if (result) return std::span<const std::byte>(buffer);
    if (!unread) unread = result.fault();
    return std::move(result.fault());
  };
  auto pages =
      scan_parquet_chunk(file.leaf(at.field), chunk, file.footer().row_groups[at.place.group].rows,
                         read, shards_.path(at.shard));
  if (unread) return std::move(*unread);
  if (!pages) return is(std::move(pages.fault()));
  return is(TableRow::fault(
      chunk.pages.begin,
      fmt::format("the index has no page for the row: the file {}", kDamagedOrChanged)));
}

}  // namespace penstock::source
