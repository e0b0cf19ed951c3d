#include "src/source/parquet/table_scan.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/interruption.hpp"
#include "src/source/in_parallel.hpp"
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

// What one label column of the index says of each row of a row group, of which some may not be known.
class LabelRows {
 public:
  explicit LabelRows(std::uint64_t rows) : rows_(rows) {}
  // Takes memory for the rows that were found, and not for those that a footer claims.
  void set(std::uint64_t row, LabelState state, std::int64_t value = 0) {
    if (row >= rows_) return;
    if (row >= states_.size()) {
      states_.resize(static_cast<std::size_t>(row) + 1, LabelState::unreadable);
      values_.resize(static_cast<std::size_t>(row) + 1, 0);
    }
    states_[row] = state;
    values_[row] = value;
  }
  // What is in front of a row: its list, which began before, goes on.
  void add_before(std::uint64_t row, std::int64_t more) {
    if (row == 0)
      before_ += more;
    else if (row <= states_.size() && states_[row - 1] == LabelState::known)
      values_[row - 1] += more;
  }
  // What the list in front of a row goes on with is not known.
  void forget_before(std::uint64_t row) {
    if (row > 0 && row <= states_.size()) set(row - 1, LabelState::unreadable);
  }
  [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }
  // Puts these rows behind those of `all`, which has room for them; their first one is `first_row`.
  void append_to(ShardContents::Labels& all, std::uint64_t first_row) const {
    const auto begin = static_cast<std::size_t>(first_row);
    if (begin > 0 && begin <= all.states.size() && all.states[begin - 1] == LabelState::known)
      all.values[begin - 1] += before_;
    if (states_.empty()) return;
    all.states.resize(begin, LabelState::unreadable);
    all.values.resize(begin, 0);
    all.states.insert(all.states.end(), states_.begin(), states_.end());
    all.values.insert(all.values.end(), values_.begin(), values_.end());
  }

 private:
  std::uint64_t rows_;
  std::vector<LabelState> states_;
  std::vector<std::int64_t> values_;
  std::int64_t before_ = 0;  // that the last row of the row group before goes on with
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

// A label column that is wanted, of a leaf.
struct WantedLabels {
  std::string name;
  std::uint32_t leaf = 0;
  bool is_lengths = false;
};

std::vector<WantedLabels> find_wanted(std::span<const std::string> labels,
                                      const ParquetFooter& footer) {
  std::vector<WantedLabels> wanted;
  if (labels.empty()) return wanted;
  const TableLeaves leaves = list_parquet_columns(footer);
  for (const std::string& label : labels) {
    const bool is_lengths = label.starts_with(kLengthsOf);
    const std::string_view name =
        std::string_view(label).substr(is_lengths ? kLengthsOf.size() : kIntegersOf.size());
    if (!is_lengths && !label.starts_with(kIntegersOf)) continue;
    // A file without the column is refused later, with a message that names it.
    for (const auto* const some : {&leaves.fields, &leaves.parts}) {
      const auto leaf = std::ranges::find(*some, name, &TableLeaf::name);
      if (leaf == some->end()) continue;
      wanted.push_back({.name = label, .leaf = leaf->number, .is_lengths = is_lengths});
      break;
    }
  }
  return wanted;
}

// Where a value of a column lies.
struct RowValue {
  std::uint64_t row = 0;
  ParquetRange range;
};

// A column chunk: of a row group, whose first row of the file is `first_row`, and of a leaf.
struct ChunkPlace {
  std::size_t group = 0;
  std::uint32_t leaf = 0;
  std::uint64_t first_row = 0;
};

// What was found in some column chunks, one after another.
struct ScannedChunks {
  struct Values {
    std::uint32_t leaf = 0;
    std::vector<RowValue> values;
  };
  struct Labels {
    std::size_t wanted = 0;
    std::uint64_t first_row = 0;
    LabelRows rows;
  };
  std::vector<IndexedPage> pages;
  std::vector<Values> values;
  std::vector<Labels> labels;
  std::uint64_t rows_with_values = 0;  // up to the last that was found, not the footer's
  bool is_complete = true;             // a build with all codecs would find no more
};

class ChunksScan {
 public:
  ChunksScan(const storage::StoredFile& file, const std::string& path, const ParquetFooter& footer,
             std::span<const WantedLabels> wanted)
      : window_(file, path),
        read_(read_through(window_)),
        path_(path),
        footer_(footer),
        wanted_(wanted) {}

  ScannedChunks run(std::span<const ChunkPlace> places) {
    for (const ChunkPlace& place : places) {
      core::require_wanted();
      scan(place);
    }
    return std::move(found_);
  }

 private:
  // Finds the pages of a column, and what is asked of them.
  void scan(const ChunkPlace& place) {
    const ParquetLeaf& leaf = footer_.schema.leaves[place.leaf];
    const ParquetChunk& chunk = footer_.row_groups[place.group].chunks[place.leaf];
    const std::uint64_t rows = footer_.row_groups[place.group].rows;
    if (rows == 0 || chunk.is_encrypted || !chunk.other_file.empty()) return;
    // Rows in pages that are missing are faults, which say why when they are read.
    const ParquetPages pages = find_parquet_pages(leaf, chunk, rows, read_, path_);
    const auto add = [&](const ParquetPage& page, IndexedPage::Kind kind) {
      found_.pages.push_back({.group = place.group,
                              .column = place.leaf,
                              .kind = kind,
                              .begin = page.offset,
                              .bytes = page.is_damaged ? 0 : page.end() - page.offset,
                              .first_row = page.first_row,
                              .rows = page.rows});
    };
    if (pages.dictionary) add(*pages.dictionary, IndexedPage::Kind::dictionary);
    for (const ParquetPage& page : pages.data)
      add(page,
          add_values(place, chunk, page) ? IndexedPage::Kind::ranges : IndexedPage::Kind::values);
    bool is_needed = pages.fault.has_value();
    for (std::size_t k = 0; k < wanted_.size(); ++k) {
      if (wanted_[k].leaf != place.leaf) continue;
      LabelRows labels(rows);
      read_labels(wanted_[k].is_lengths, leaf, chunk, pages, labels);
      found_.labels.push_back({k, place.first_row, std::move(labels)});
      is_needed = true;
    }
    if (is_needed && lacks_parquet_codec(chunk.codec)) found_.is_complete = false;
  }

  // Whether each value of the page is found by itself.
  bool add_values(const ChunkPlace& place, const ParquetChunk& chunk, const ParquetPage& page) {
    const ParquetLeaf& leaf = footer_.schema.leaves[place.leaf];
    const bool is_plain = !page.is_damaged && chunk.codec == ParquetCodec::uncompressed &&
                          leaf.type == ParquetType::byte_array && leaf.max_repetition == 0 &&
                          page.header.encoding == ParquetEncoding::plain;
    if (!is_plain) return false;
    const auto found = find_parquet_values(leaf, chunk.codec, page, read_, path_);
    if (!found || found->levels.slots != page.rows) return false;
    if (found_.values.empty() || found_.values.back().leaf != place.leaf)
      found_.values.push_back({place.leaf, {}});
    std::vector<RowValue>& values = found_.values.back().values;
    const std::uint64_t first_row = place.first_row + page.first_row;
    std::size_t value = 0;
    for (std::uint64_t slot = 0; slot < found->levels.slots; ++slot) {
      const bool is_there =
          found->levels.definition.empty() || found->levels.definition[slot] == leaf.max_definition;
      if (is_there) values.push_back({first_row + slot, found->values[value++]});
    }
    found_.rows_with_values = std::max(found_.rows_with_values, first_row + page.rows);
    return true;
  }

  void read_labels(bool is_lengths, const ParquetLeaf& leaf, const ParquetChunk& chunk,
                   const ParquetPages& pages, LabelRows& labels) {
    ParquetValues dictionary;
    if (pages.dictionary) {
      const IndexedPage page{.begin = pages.dictionary->offset,
                             .bytes = pages.dictionary->end() - pages.dictionary->offset};
      const auto bytes = read_(page.begin, page.bytes);
      if (!bytes) return;
      auto decoded = decode_indexed_dictionary(leaf, chunk, page, *bytes, path_);
      if (!decoded) return;
      dictionary = std::move(*decoded);
    }
    for (const ParquetPage& place : pages.data) {
      core::require_wanted();
      const IndexedPage page{.begin = place.offset,
                             .bytes = place.end() - place.offset,
                             .first_row = place.first_row,
                             .rows = place.rows};
      if (!place.is_damaged) {
        const auto bytes = read_(page.begin, page.bytes);
        if (!bytes) continue;
        // The page is seen before the window moves, which owns its bytes.
        const std::shared_ptr<const std::byte[]> owner(std::shared_ptr<void>(), bytes->data());
        const auto decoded = decode_indexed_page(
            leaf, chunk, page, owner, pages.dictionary ? &dictionary : nullptr, path_, is_lengths);
        if (decoded) {
          set_labels(is_lengths, leaf, *decoded, place.first_row, labels);
          continue;
        }
      }
      if (is_lengths) labels.forget_before(place.first_row);
    }
  }

  void set_labels(bool is_lengths, const ParquetLeaf& leaf, const ParquetPageRows& page,
                  std::uint64_t first_row, LabelRows& labels) const {
    const std::uint8_t list_definition = parquet_list_definition(footer_.schema, leaf);
    const auto elements = [&](const ParquetPiece& piece) {
      if (!page.has_levels()) return std::int64_t{piece.last_slot} - piece.first_slot;
      std::int64_t count = 0;
      for (std::uint32_t slot = piece.first_slot; slot < piece.last_slot; ++slot)
        if (page.definition(slot, leaf.max_definition) >= list_definition) ++count;
      return count;
    };
    if (is_lengths) labels.add_before(first_row, elements(page.leading()));
    for (std::uint64_t row = 0; row < page.rows(); ++row) {
      const ParquetPiece piece = page.row(row);
      if (is_lengths) {
        const bool is_null =
            is_null_parquet_list(page, piece, leaf.max_definition, list_definition);
        labels.set(first_row + row, is_null ? LabelState::missing : LabelState::known,
                   elements(piece));
      } else if (piece.first_value == piece.last_value) {
        labels.set(first_row + row, LabelState::missing);
      } else {
        const auto value = integer_of(leaf, page.values()[piece.first_value]);
        labels.set(first_row + row, value ? LabelState::known : LabelState::unreadable,
                   value.value_or(0));
      }
    }
  }

  FileWindow window_;
  ParquetRead read_;
  const std::string& path_;
  const ParquetFooter& footer_;
  std::span<const WantedLabels> wanted_;
  ScannedChunks found_;
};

// The chunks of all row groups, cut where so many bytes of pages come together.
std::vector<std::vector<ChunkPlace>> cut_chunks(const ParquetFooter& footer, std::uint64_t bytes) {
  std::vector<std::vector<ChunkPlace>> cuts;
  std::uint64_t first_row = 0;
  std::uint64_t in_last = bytes;
  for (std::size_t group = 0; group < footer.row_groups.size(); ++group) {
    for (std::uint32_t leaf = 0; leaf < footer.schema.leaves.size(); ++leaf) {
      if (in_last >= bytes) {
        cuts.emplace_back();
        in_last = 0;
      }
      cuts.back().push_back({group, leaf, first_row});
      in_last += std::min(footer.row_groups[group].chunks[leaf].pages.bytes, bytes);
    }
    first_row += footer.row_groups[group].rows;
  }
  return cuts;
}

// Row by row, and in each column by column.
void merge_values(const ParquetSchema& schema, std::span<const std::vector<RowValue>> values,
                  std::uint64_t rows, ShardContents& contents) {
  std::vector<std::size_t> next(values.size());
  std::vector<std::uint32_t> used;
  for (std::uint32_t leaf = 0; leaf < values.size(); ++leaf)
    if (!values[leaf].empty()) used.push_back(leaf);
  if (used.empty()) return;
  for (const std::uint32_t leaf : used) contents.extensions.push_back(schema.leaves[leaf].path);
  contents.first_member_ends.reserve(static_cast<std::size_t>(rows));
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::vector<RowValue>& of_leaf = values[used[i]];
      std::size_t& at = next[used[i]];
      if (at == of_leaf.size() || of_leaf[at].row != row) continue;
      contents.members.push_back(
          {.begin = of_leaf[at].range.begin, .bytes = of_leaf[at].range.bytes, .extension = i});
      ++at;
    }
    contents.first_member_ends.push_back(contents.members.size());
  }
}

// Puts what was found one behind the other; takes it.
ScannedShard merge_chunks(const ParquetFooter& footer, std::span<const WantedLabels> wanted,
                          std::vector<ScannedChunks> parts) {
  ScannedShard scanned{.records = footer.rows, .contents = {}};
  std::vector<std::size_t> label_rows(wanted.size());
  for (const ScannedChunks& part : parts)
    for (const ScannedChunks::Labels& labels : part.labels)
      if (labels.rows.size() > 0)
        label_rows[labels.wanted] = static_cast<std::size_t>(labels.first_row) + labels.rows.size();
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    ShardContents::Labels& labels = scanned.contents.labels.emplace_back();
    labels.name = wanted[k].name;
    labels.states.reserve(label_rows[k]);
    labels.values.reserve(label_rows[k]);
  }
  std::vector<std::vector<RowValue>> values(footer.schema.leaves.size());
  std::uint64_t rows_with_values = 0;
  for (ScannedChunks& part : parts) {
    const ScannedChunks own = std::move(part);
    scanned.is_complete = scanned.is_complete && own.is_complete;
    rows_with_values = std::max(rows_with_values, own.rows_with_values);
    std::ranges::copy(own.pages, std::back_inserter(scanned.contents.pages));
    for (const ScannedChunks::Values& some : own.values)
      std::ranges::copy(some.values, std::back_inserter(values[some.leaf]));
    for (const ScannedChunks::Labels& labels : own.labels)
      labels.rows.append_to(scanned.contents.labels[labels.wanted], labels.first_row);
  }
  merge_values(footer.schema, values, rows_with_values, scanned.contents);
  return scanned;
}

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
                          std::span<const std::string> labels, std::size_t threads) {
  FileWindow window(file, path);
  const ParquetFooter footer = open_parquet_footer(window, path);
  require_likely_rows(footer.rows, window.file_bytes(), path);
  const std::vector<WantedLabels> wanted = find_wanted(labels, footer);
  // Each begins with a window of its own: of a server what two of them read twice is little.
  const auto cuts = cut_chunks(footer, threads > 1 ? 4 * file.window_bytes() : UINT64_MAX);
  std::vector<ScannedChunks> parts(cuts.size());
  in_parallel(cuts.size(), threads, [&](std::size_t k) {
    parts[k] = ChunksScan(file, path, footer, wanted).run(cuts[k]);
  });
  ScannedShard scanned = merge_chunks(footer, wanted, std::move(parts));
  const std::uint64_t bytes = window.file_bytes();
  const auto tail = window.at(bytes - kParquetTail, kParquetTail);
  const auto needed = parquet_footer_bytes(tail, bytes, path);
  if (!needed) throw_table_error(needed.fault());
  const auto text = window.at(bytes - *needed, static_cast<std::size_t>(*needed));
  scanned.contents.footer.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return scanned;
}

}  // namespace penstock::source
