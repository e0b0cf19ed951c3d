#include "src/source/parquet/table_file.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/shard_set.hpp"

namespace penstock::source {

namespace {

// Header and body, which `bytes` begin with.
Result<ParquetPageHeader> header_of(const IndexedPage& page, std::span<const std::byte> bytes,
                                    const std::string& path) {
  auto header = read_parquet_page_header(bytes, {.file = path, .offset = page.begin});
  if (header && std::uint64_t{header->header_bytes} + header->packed_bytes == page.bytes)
    return header;
  return Fault{.reason = fmt::format("a page is no longer the one that was indexed: the file {}",
                                     kDamagedOrChanged),
               .file = path,
               .offset = page.begin};
}

}  // namespace

Result<ParquetPageRows> decode_indexed_page(const ParquetLeaf& leaf, const ParquetChunk& chunk,
                                            const IndexedPage& page,
                                            std::shared_ptr<const std::byte[]> bytes,
                                            const ParquetValues* dictionary,
                                            const std::string& path, bool needs_levels_only) {
  const std::span<const std::byte> all(bytes.get(), static_cast<std::size_t>(page.bytes));
  const auto header = header_of(page, all, path);
  if (!header) return header.fault();
  const ParquetOrigin origin{.file = path, .offset = page.begin + header->header_bytes};
  auto decoded = decode_parquet_page({.leaf = leaf,
                                      .codec = chunk.codec,
                                      .header = *header,
                                      .bytes = all.subspan(header->header_bytes),
                                      .origin = origin,
                                      .needs_levels_only = needs_levels_only},
                                     dictionary);
  if (!decoded) return decoded.fault();
  ParquetPageRows rows(std::move(*decoded), leaf, std::move(bytes));
  if (rows.rows() == page.rows) return rows;
  return Fault{.reason = fmt::format("{} rows begin in a page, and the index of the file says {}: "
                                     "the file {}",
                                     rows.rows(), page.rows, kDamagedOrChanged),
               .file = path,
               .offset = page.begin};
}

Result<ParquetValues> decode_indexed_dictionary(const ParquetLeaf& leaf, const ParquetChunk& chunk,
                                                const IndexedPage& page,
                                                std::span<const std::byte> bytes,
                                                const std::string& path) {
  const auto header = header_of(page, bytes, path);
  if (!header) return header.fault();
  const ParquetOrigin origin{.file = path, .offset = page.begin + header->header_bytes};
  return decode_parquet_dictionary({.leaf = leaf,
                                    .codec = chunk.codec,
                                    .header = *header,
                                    .bytes = bytes.subspan(header->header_bytes),
                                    .origin = origin});
}

ParquetTableFile::ParquetTableFile(const ShardIndex& index, std::span<const ParquetField> fields,
                                   const std::string& path, const std::string& first_path) {
  const std::string_view text = index.footer();
  auto footer = read_parquet_footer(std::as_bytes(std::span(text)), index.stamp().bytes, path);
  if (!footer) throw_table_error(footer.fault());
  footer_ = std::move(*footer);
  require_likely_rows(footer_.rows, index.stamp().bytes, path);
  fields_ = find_parquet_fields(footer_, fields, path, first_path);
  std::uint64_t rows = 0;
  for (const ParquetRowGroup& group : footer_.row_groups) group_ends_.push_back(rows += group.rows);
  if (rows != index.records())
    throw Error(fmt::format("{}: its index has {} rows, and its footer {}: the file {}", path,
                            index.records(), rows, kDamagedOrChanged));
  pages_.resize(fields_.size());
  std::vector<std::vector<std::size_t>> users(footer_.schema.leaves.size());
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    leaves_.push_back(fields_[i].leaf);
    users[leaves_.back()].push_back(i);
    pages_[i].groups.resize(footer_.row_groups.size());
  }
  for (std::uint64_t number = 0; number < index.pages(); ++number) {
    const IndexedPage page = index.page(number);
    if (page.column >= users.size() || page.group >= footer_.row_groups.size()) continue;
    for (const std::size_t field : users[static_cast<std::size_t>(page.column)]) {
      ParquetColumnPages::Group& group = pages_[field].groups[static_cast<std::size_t>(page.group)];
      if (page.kind == IndexedPage::Kind::dictionary) {
        group.dictionary = number;
      } else {
        if (group.last == 0) group.first = number;
        group.last = number + 1;
      }
    }
  }
}

ParquetTableFile::Place ParquetTableFile::place(std::uint64_t row) const noexcept {
  const auto end = std::ranges::upper_bound(group_ends_, row);
  const auto group = static_cast<std::size_t>(end - group_ends_.begin());
  return {group, row - (group == 0 ? 0 : group_ends_[group - 1])};
}

std::optional<std::uint64_t> ParquetTableFile::page_of(const ShardIndex& index, std::size_t field,
                                                       const Place& place) const noexcept {
  const ParquetColumnPages::Group& group = pages(field, place.group);
  const auto numbers = std::views::iota(group.first, group.last);
  const auto behind = std::ranges::partition_point(
      numbers, [&](std::uint64_t number) { return index.page(number).first_row <= place.row; });
  if (behind == numbers.begin()) return std::nullopt;
  const std::uint64_t number = *std::ranges::prev(behind);
  const IndexedPage page = index.page(number);
  const bool is_it = page.group == place.group && page.column == leaves_[field] && page.bytes > 0 &&
                     place.row - page.first_row < page.rows;
  return is_it ? std::optional(number) : std::nullopt;
}

void ParquetTableFile::add_chunks(const ShardIndex& index, std::uint64_t first_row,
                                  std::vector<std::uint64_t>& begins) const {
  for (std::size_t group = 0; group < footer_.row_groups.size(); ++group) {
    if (footer_.row_groups[group].rows == 0) continue;
    const std::uint64_t begin =
        first_row + group_ends_[group] - footer_.row_groups[group].rows;  // of the group
    begins.push_back(begin);
    std::uint64_t most = 0;
    ParquetColumnPages::Group column;
    for (const ParquetColumnPages& pages : pages_) {
      const ParquetColumnPages::Group& its = pages.groups[group];
      std::uint64_t bytes = 0;
      for (std::uint64_t number = its.first; number < its.last; ++number)
        if (const IndexedPage page = index.page(number); page.kind == IndexedPage::Kind::values)
          bytes += page.bytes;
      // Pages that share a dictionary larger than they are belong together.
      const std::uint64_t shared = its.dictionary ? index.page(*its.dictionary).bytes : 0;
      if (bytes + shared > most) column = shared > bytes ? ParquetColumnPages::Group{} : its;
      most = std::max(most, bytes + shared);
    }
    for (std::uint64_t number = column.first; number < column.last; ++number)
      if (const std::uint64_t row = begin + index.page(number).first_row; row > begins.back())
        begins.push_back(row);
  }
}

}  // namespace penstock::source
