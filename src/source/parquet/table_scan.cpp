#include "src/source/parquet/table_scan.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/parquet/chunk_scan.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/source/parquet/table_cell.hpp"
#include "src/source/parquet/table_file.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kLengthsOf = "lengths of ";
constexpr std::string_view kIntegersOf = "integers of ";

ParquetRead read_through(FileWindow& file) {
  return [&file](std::uint64_t offset, std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    return file.at(offset, static_cast<std::size_t>(bytes));
  };
}

// What one label column of the index says of each row, of which some may not be known.
class LabelColumn {
 public:
  LabelColumn(std::string name, std::uint64_t rows) : rows_(rows) {
    labels_.name = std::move(name);
  }
  // Takes memory for the rows that were found, and not for those that a footer claims.
  void set(std::uint64_t row, LabelState state, std::int64_t value = 0) {
    if (row >= rows_) return;
    if (row >= labels_.states.size()) {
      labels_.states.resize(static_cast<std::size_t>(row) + 1, LabelState::unreadable);
      labels_.values.resize(static_cast<std::size_t>(row) + 1, 0);
    }
    labels_.states[row] = state;
    labels_.values[row] = value;
  }
  // Of a list that goes on in another page.
  void add(std::uint64_t row, std::int64_t more) {
    if (row < labels_.states.size() && labels_.states[row] == LabelState::known)
      labels_.values[row] += more;
  }
  // What a list goes on with is not known.
  void forget(std::uint64_t row) {
    if (row < labels_.states.size()) set(row, LabelState::unreadable);
  }
  [[nodiscard]] ShardContents::Labels take() { return std::move(labels_); }

 private:
  std::uint64_t rows_;
  ShardContents::Labels labels_;
};

// Nothing of what is no integer, or more than 2^63-1.
std::optional<std::int64_t> integer_of(const ParquetLeaf& leaf, std::span<const std::byte> value) {
  const bool is_signed = leaf.logical.meaning != ParquetMeaning::integer || leaf.logical.is_signed;
  if (leaf.type == ParquetType::int32) {
    const auto number = load_little_endian<std::int32_t>(value);
    return is_signed ? number : std::int64_t{static_cast<std::uint32_t>(number)};
  }
  if (leaf.type != ParquetType::int64) return std::nullopt;
  const auto number = load_little_endian<std::int64_t>(value);
  if (!is_signed && number < 0) return std::nullopt;
  return number;
}

class TableScan {
 public:
  TableScan(FileWindow& file, const std::string& path, std::span<const std::string> labels)
      : path_(path), read_(read_through(file)), footer_(open_parquet_footer(file, path)) {
    require_likely_rows(footer_.rows, file.file_bytes(), path);
    if (!labels.empty()) {
      const TableLeaves leaves = list_parquet_columns(footer_.schema);
      for (const std::string& label : labels) add_label(label, leaves);
    }
    values_.resize(footer_.schema.leaves.size());
    std::uint64_t first_row = 0;
    for (std::size_t group = 0; group < footer_.row_groups.size(); ++group) {
      for (std::uint32_t leaf = 0; leaf < footer_.schema.leaves.size(); ++leaf)
        scan(group, leaf, first_row);
      first_row += footer_.row_groups[group].rows;
    }
  }

  ScannedShard take() {
    ScannedShard scanned{.records = footer_.rows, .contents = {}, .is_complete = is_complete_};
    scanned.contents.pages = std::move(pages_);
    for (Wanted& wanted : wanted_) scanned.contents.labels.push_back(wanted.column.take());
    merge_values(scanned.contents);
    return scanned;
  }

 private:
  struct Wanted {
    std::uint32_t leaf = 0;
    bool is_lengths = false;
    LabelColumn column;
  };
  struct Value {
    std::uint64_t row = 0;
    ParquetRange range;
  };

  void add_label(const std::string& label, const TableLeaves& leaves) {
    const bool is_lengths = label.starts_with(kLengthsOf);
    const std::string_view name =
        std::string_view(label).substr(is_lengths ? kLengthsOf.size() : kIntegersOf.size());
    if (!is_lengths && !label.starts_with(kIntegersOf)) return;
    for (const auto* const some : {&leaves.fields, &leaves.parts}) {
      const auto leaf = std::ranges::find(*some, name, &TableLeaf::name);
      if (leaf == some->end()) continue;
      wanted_.push_back({.leaf = leaf->number,
                         .is_lengths = is_lengths,
                         .column = LabelColumn(label, footer_.rows)});
      return;
    }
    // The file is refused later, with a message that names the column.
  }

  // Finds the pages of a column, and what is asked of them.
  void scan(std::size_t group, std::uint32_t number, std::uint64_t first_row) {
    const ParquetLeaf& leaf = footer_.schema.leaves[number];
    const ParquetChunk& chunk = footer_.row_groups[group].chunks[number];
    const std::uint64_t rows = footer_.row_groups[group].rows;
    if (rows == 0 || chunk.is_encrypted || !chunk.other_file.empty()) return;
    // Rows in pages that are missing are faults, which say why when they are read.
    const ParquetPages found = find_parquet_pages(leaf, chunk, rows, read_, path_);
    const auto add = [&](const ParquetPage& page, IndexedPage::Kind kind) {
      pages_.push_back({.group = group,
                        .column = number,
                        .kind = kind,
                        .begin = page.offset,
                        .bytes = page.is_damaged ? 0 : page.end() - page.offset,
                        .first_row = page.first_row,
                        .rows = page.rows});
    };
    if (found.dictionary) add(*found.dictionary, IndexedPage::Kind::dictionary);
    for (const ParquetPage& page : found.data)
      add(page, add_values(leaf, chunk, number, page, first_row) ? IndexedPage::Kind::ranges
                                                                 : IndexedPage::Kind::values);
    bool is_needed = found.fault.has_value();
    for (Wanted& wanted : wanted_) {
      if (wanted.leaf != number) continue;
      read_labels(wanted, chunk, found, first_row);
      is_needed = true;
    }
    if (is_needed && lacks_parquet_codec(chunk.codec)) is_complete_ = false;
  }

  // Whether each value of the page is found by itself.
  bool add_values(const ParquetLeaf& leaf, const ParquetChunk& chunk, std::uint32_t number,
                  const ParquetPage& page, std::uint64_t first_row) {
    const bool is_plain = !page.is_damaged && chunk.codec == ParquetCodec::uncompressed &&
                          leaf.type == ParquetType::byte_array && leaf.max_repetition == 0 &&
                          page.header.encoding == ParquetEncoding::plain;
    if (!is_plain) return false;
    const auto found = find_parquet_values(leaf, chunk.codec, page, read_, path_);
    if (!found || found->levels.slots != page.rows) return false;
    std::size_t value = 0;
    for (std::uint64_t slot = 0; slot < found->levels.slots; ++slot) {
      const bool is_there =
          found->levels.definition.empty() || found->levels.definition[slot] == leaf.max_definition;
      if (is_there)
        values_[number].push_back({first_row + page.first_row + slot, found->values[value++]});
    }
    rows_with_values_ = std::max(rows_with_values_, first_row + page.first_row + page.rows);
    return true;
  }

  void read_labels(Wanted& wanted, const ParquetChunk& chunk, const ParquetPages& found,
                   std::uint64_t first_row) {
    const ParquetLeaf& leaf = footer_.schema.leaves[wanted.leaf];
    ParquetValues dictionary;
    if (found.dictionary) {
      const IndexedPage page{.begin = found.dictionary->offset,
                             .bytes = found.dictionary->end() - found.dictionary->offset};
      const auto bytes = read_(page.begin, page.bytes);
      if (!bytes) return;
      auto decoded = decode_indexed_dictionary(leaf, chunk, page, *bytes, path_);
      if (!decoded) return;
      dictionary = std::move(*decoded);
    }
    for (const ParquetPage& place : found.data) {
      const IndexedPage page{.begin = place.offset,
                             .bytes = place.end() - place.offset,
                             .first_row = place.first_row,
                             .rows = place.rows};
      if (!place.is_damaged) {
        const auto bytes = read_(page.begin, page.bytes);
        if (!bytes) continue;
        auto memory = std::make_shared_for_overwrite<std::byte[]>(bytes->size());
        std::ranges::copy(*bytes, memory.get());
        const auto decoded = decode_indexed_page(leaf, chunk, page, std::move(memory),
                                                 found.dictionary ? &dictionary : nullptr, path_);
        if (decoded) {
          set_labels(wanted, leaf, *decoded, first_row + place.first_row);
          continue;
        }
      }
      if (wanted.is_lengths && place.first_row > 0)
        wanted.column.forget(first_row + place.first_row - 1);
    }
  }

  void set_labels(Wanted& wanted, const ParquetLeaf& leaf, const ParquetPageRows& page,
                  std::uint64_t first_row) const {
    const std::uint8_t list_definition = parquet_list_definition(footer_.schema, leaf);
    const auto elements = [&](const ParquetPiece& piece) {
      std::int64_t count = 0;
      for (std::uint32_t slot = piece.first_slot; slot < piece.last_slot; ++slot)
        if (page.definition(slot, leaf.max_definition) >= list_definition) ++count;
      return count;
    };
    if (wanted.is_lengths && first_row > 0)
      wanted.column.add(first_row - 1, elements(page.leading()));
    for (std::uint64_t row = 0; row < page.rows(); ++row) {
      const ParquetPiece piece = page.row(row);
      if (wanted.is_lengths) {
        const bool is_null =
            is_null_parquet_list(page, piece, leaf.max_definition, list_definition);
        wanted.column.set(first_row + row, is_null ? LabelState::missing : LabelState::known,
                          elements(piece));
      } else if (piece.first_value == piece.last_value) {
        wanted.column.set(first_row + row, LabelState::missing);
      } else {
        const auto value = integer_of(leaf, page.values()[piece.first_value]);
        wanted.column.set(first_row + row, value ? LabelState::known : LabelState::unreadable,
                          value.value_or(0));
      }
    }
  }

  // Row by row, and in each column by column.
  void merge_values(ShardContents& contents) {
    std::vector<std::size_t> next(values_.size());
    std::vector<std::uint32_t> used;
    for (std::uint32_t leaf = 0; leaf < values_.size(); ++leaf)
      if (!values_[leaf].empty()) used.push_back(leaf);
    if (used.empty()) return;
    for (const std::uint32_t leaf : used)
      contents.extensions.push_back(footer_.schema.leaves[leaf].path);
    contents.first_member_ends.reserve(static_cast<std::size_t>(rows_with_values_));
    for (std::uint64_t row = 0; row < rows_with_values_; ++row) {
      for (std::size_t i = 0; i < used.size(); ++i) {
        const std::vector<Value>& values = values_[used[i]];
        std::size_t& at = next[used[i]];
        if (at == values.size() || values[at].row != row) continue;
        contents.members.push_back(
            {.begin = values[at].range.begin, .bytes = values[at].range.bytes, .extension = i});
        ++at;
      }
      contents.first_member_ends.push_back(contents.members.size());
    }
  }

  const std::string& path_;
  ParquetRead read_;
  ParquetFooter footer_;
  std::vector<Wanted> wanted_;
  std::vector<IndexedPage> pages_;
  std::vector<std::vector<Value>> values_;  // of each leaf
  std::uint64_t rows_with_values_ = 0;      // up to the last that was found, not the footer's
  bool is_complete_ = true;                 // a build with all codecs would find no more
};

}  // namespace

void require_likely_rows(std::uint64_t rows, std::uint64_t file_bytes, const std::string& path) {
  constexpr std::uint64_t kMostAByte = 4096;
  if (rows / kMostAByte > file_bytes)
    throw Error(fmt::format(
        "{}: the footer says that there are {} rows, more than {} bytes are likely to hold", path,
        rows, file_bytes));
}

ParquetFooter open_parquet_footer(FileWindow& file, const std::string& path) {
  const std::uint64_t bytes = file.file_bytes();
  const std::uint64_t tail = std::min(bytes, kParquetTail);
  const auto needed =
      parquet_footer_bytes(file.at(bytes - tail, static_cast<std::size_t>(tail)), bytes, path);
  if (!needed) throw_table_error(needed.fault());
  auto footer =
      read_parquet_footer(file.at(bytes - *needed, static_cast<std::size_t>(*needed)), bytes, path);
  if (!footer) throw_table_error(footer.fault());
  return std::move(*footer);
}

ParquetFooter read_first_footer(const std::string& path, const storage::Storage& storage) {
  const auto file = storage.open(path);
  if (!file) throw Error(fmt::format("cannot open the shard {}: {}", path, file.fault().reason));
  FileWindow window(**file, path);
  return open_parquet_footer(window, path);
}

std::string name_of_lengths(const std::string& column) { return std::string(kLengthsOf) + column; }
std::string name_of_integers(const std::string& column) {
  return std::string(kIntegersOf) + column;
}

ScannedShard scan_parquet(const storage::StoredFile& file, const std::string& path,
                          std::span<const std::string> labels) {
  FileWindow window(file, path);
  ScannedShard scanned = TableScan(window, path, labels).take();
  const std::uint64_t bytes = window.file_bytes();
  const auto tail = window.at(bytes - kParquetTail, kParquetTail);
  const auto needed = parquet_footer_bytes(tail, bytes, path);
  if (!needed) throw_table_error(needed.fault());
  const auto footer = window.at(bytes - *needed, static_cast<std::size_t>(*needed));
  scanned.contents.footer.assign(reinterpret_cast<const char*>(footer.data()), footer.size());
  return scanned;
}

}  // namespace penstock::source
