#include <algorithm>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/tables.hpp>

#include "src/core/storage_tiers.hpp"
#include "src/source/catalog.hpp"
#include "src/source/parquet/cell_reader.hpp"
#include "src/source/parquet/codec.hpp"
#include "src/source/parquet/table_cell.hpp"
#include "src/source/parquet/table_file.hpp"
#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/index_files.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/shards/shard_set.hpp"
#include "src/source/tables/table_row.hpp"

namespace penstock {

namespace {

using source::IndexedPage;
using source::LabelState;
using source::Member;
using source::ParquetCell;
using source::ParquetField;
using source::ParquetTableFile;
using source::ShardIndex;
using source::TableRow;

constexpr std::size_t kLengthPrefix = 4;  // of each value of texts or bytes

class ParquetRows final : public Source {
 public:
  ParquetRows(source::FoundShards found, std::vector<ShardIndex> indexes,
              std::vector<ParquetField> fields, ParquetOptions options, storage::StoragePtr storage,
              Description description)
      : shards_(std::move(found.paths), std::move(indexes), std::move(storage)),
        notices_(std::move(found.notices)),
        options_(std::move(options)),
        fields_(std::move(fields)),
        description_(std::move(description)),
        cells_(shards_, files_, options_) {
    for (const ParquetField& field : fields_) source::add_specs(field, specs_);
    for (std::size_t shard = 0; shard < shards_.shards(); ++shard)
      files_.emplace_back(shards_.index(shard), fields_, shards_.path(shard), shards_.path(0));
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (fields_[i].is_label()) label_ = i;
    length_ = source::length_field<ParquetField>(fields_);
    for (std::size_t shard = 0; shard < shards_.shards(); ++shard)
      lengths_.push_back(length_ ? shards_.index(shard).labels(
                                       source::name_of_lengths(fields_[*length_].column.column))
                                 : nullptr);
    require_readable_chunks();
    if (label_) find_class_names();
    find_range_columns();
  }

  std::uint64_t size() const noexcept override { return shards_.size(); }
  std::optional<Description> description() const override { return description_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return shards_.shards(); }
  std::uint64_t file_of(std::uint64_t number) const override { return shards_.place(number).shard; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(specs_.size());
    const auto [shard, row] = shards_.place(number);
    TableRow out(record, options_.max_record_bytes);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!out.is_wanted(fields_[i])) continue;
      const Reading reading{shard, files_[shard].place(row), i, row, lengths_[shard]};
      Result<void> result = read_field(reading, out);
      if (!result) {
        Fault fault = std::move(result.fault());
        fault.reason = fmt::format("column '{}': {}", fields_[i].column.column, fault.reason);
        fault.file = location(number);
        return fault;
      }
    }
    return {};
  }

  std::string location(std::uint64_t number) const override {
    return shards_.location(shards_.place(number));
  }

  RecordName name(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    return {.key = shards_.key({shard, row}),
            .file = shards_.path(shard),
            .offset = fields_.empty() ? 0 : offset_of(shard, row)};
  }

  RecordInfo info(std::uint64_t number) const override {
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    RecordInfo info{
        .key = shards_.key({shard, row}), .label = label(number), .bytes = std::nullopt};
    const ShardIndex::Range members = index.members(row);
    for (std::uint64_t member = members.first; member < members.last; ++member) {
      const Member found = index.member(member);
      if (range_columns_[shard].is_read(found.extension))
        info.bytes = info.bytes.value_or(0) + found.bytes;
    }
    return info;
  }

  std::optional<std::int64_t> label(std::uint64_t number) const override {
    if (!label_) return std::nullopt;
    const auto [shard, row] = shards_.place(number);
    const ShardIndex::Labels* const labels =
        shards_.index(shard).labels(source::name_of_integers(fields_[*label_].column.column));
    if (labels == nullptr) return std::nullopt;
    if (labels->state(row) == LabelState::known) return labels->value(row);
    const TableColumn& column = fields_[*label_].column;
    if (labels->state(row) == LabelState::missing && !column.required)
      return source::default_label(column);
    return std::nullopt;
  }

  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    if (!length_) return std::nullopt;
    const auto [shard, row] = shards_.place(number);
    const ShardIndex& index = shards_.index(shard);
    const ParquetField& field = files_[shard].field(*length_);
    const auto of_null = field.column.required ? std::nullopt : std::optional<std::uint64_t>(0);
    if (field.values.is_list) {
      const ShardIndex::Labels* const lengths = lengths_[shard];
      if (lengths == nullptr || lengths->state(row) == LabelState::unreadable) return std::nullopt;
      return lengths->state(row) == LabelState::known
                 ? static_cast<std::uint64_t>(lengths->value(row))
                 : of_null;
    }
    if (const auto member = find_member(shard, row, *length_)) return member->bytes;
    const auto page = files_[shard].page_of(index, *length_, files_[shard].place(row));
    return page && index.page(*page).kind == IndexedPage::Kind::ranges ? of_null : std::nullopt;
  }

  std::vector<std::uint64_t> chunks() const override {
    std::vector<std::uint64_t> begins;
    std::uint64_t first_row = 0;
    for (std::size_t shard = 0; shard < files_.size(); ++shard) {
      files_[shard].add_chunks(shards_.index(shard), first_row, begins);
      first_row += shards_.index(shard).records();
    }
    return begins;
  }
  [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  [[nodiscard]] int max_concurrent_reads() const noexcept override {
    return shards_.is_remote() ? storage::kObjectReadsAtOnce : Source::max_concurrent_reads();
  }
  std::vector<StorageTier> tiers() const override {
    std::vector<StorageTier> all = shards_.tiers();
    core::add_tiers(all, cells_.tiers());
    return all;
  }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::vector<Notice> notices() const override { return notices_; }
  std::span<const std::string> class_names() const noexcept override { return class_names_; }

  std::string fingerprint() const override {
    std::string fields;
    for (const ParquetField& field : fields_) fields += source::fingerprint_of(field);
    return fmt::format("parquet({} rows in {} files, {})", size(), shards_.shards(),
                       shards_.hash(fields));
  }

 private:
  using Reading = source::ParquetCellPlace;
  // Of a file, whose index calls columns extensions.
  struct RangeColumns {
    std::vector<std::uint64_t> of_fields;  // one behind each field's extension; 0: none
    std::vector<bool> read;                // of extensions: whether it is a field's
    [[nodiscard]] bool is_read(std::uint64_t extension) const {
      return extension < read.size() && read[static_cast<std::size_t>(extension)];
    }
  };

  // What the footers say of the fields' columns: else each row would be a fault.
  void require_readable_chunks() const {
    for (std::size_t shard = 0; shard < files_.size(); ++shard) {
      const ParquetTableFile& file = files_[shard];
      for (std::size_t field = 0; field < fields_.size(); ++field) {
        for (std::size_t group = 0; group < file.footer().row_groups.size(); ++group) {
          const source::ParquetChunk& chunk = file.chunk(field, group);
          const std::string& column = fields_[field].column.column;
          try {
            source::require_parquet_codec(
                chunk.codec, {.file = shards_.path(shard), .offset = chunk.pages.begin});
          } catch (const DataError& error) {
            Fault fault = error.fault();
            fault.reason = fmt::format("column '{}': {}", column, fault.reason);
            source::throw_table_error(fault);
          }
          if (chunk.is_encrypted || !chunk.other_file.empty())
            throw Error(fmt::format(
                "{}: column '{}': its pages are {}", shards_.path(shard), column,
                chunk.is_encrypted ? "encrypted" : "in another file, " + chunk.other_file));
        }
      }
    }
  }

  void find_class_names() {
    for (std::size_t shard = 0; shard < files_.size(); ++shard) {
      const ParquetField& field = files_[shard].field(*label_);
      auto names = source::parquet_class_names(files_[shard].footer(), field.column.column);
      if (shard == 0)
        class_names_ = std::move(names);
      else
        source::require_same_classes(names, class_names_, field.column.column, shards_.path(shard),
                                     shards_.path(0));
    }
  }

  void find_range_columns() {
    for (std::size_t shard = 0; shard < files_.size(); ++shard) {
      const ShardIndex& index = shards_.index(shard);
      std::unordered_map<std::string_view, std::uint64_t> numbers;
      for (std::uint64_t number = 0; number < index.extensions(); ++number)
        numbers.emplace(index.extension(number), number);
      RangeColumns columns{.of_fields = std::vector<std::uint64_t>(fields_.size()),
                           .read = std::vector<bool>(index.extensions())};
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        const auto found = numbers.find(files_[shard].field(i).path);
        if (found == numbers.end()) continue;
        columns.of_fields[i] = found->second + 1;
        columns.read[static_cast<std::size_t>(found->second)] = true;
      }
      range_columns_.push_back(std::move(columns));
    }
  }

  std::optional<Member> find_member(std::size_t shard, std::uint64_t row, std::size_t field) const {
    const std::uint64_t column = range_columns_[shard].of_fields[field];
    if (column == 0) return std::nullopt;
    const ShardIndex& index = shards_.index(shard);
    const ShardIndex::Range members = index.members(row);
    // They are in the order of their columns.
    const auto numbers = std::views::iota(members.first, members.last);
    const auto found = std::ranges::partition_point(
        numbers, [&](std::uint64_t number) { return index.member(number).extension + 1 < column; });
    if (found == numbers.end()) return std::nullopt;
    const Member member = index.member(*found);
    return member.extension + 1 == column ? std::optional(member) : std::nullopt;
  }

  std::uint64_t offset_of(std::size_t shard, std::uint64_t row) const {
    if (const auto member = find_member(shard, row, 0)) return member->begin;
    const ShardIndex& index = shards_.index(shard);
    const auto page = files_[shard].page_of(index, 0, files_[shard].place(row));
    return page ? index.page(*page).begin : 0;
  }

  Result<void> read_field(const Reading& reading, TableRow& out) const {
    const ShardIndex& index = shards_.index(reading.shard);
    const ParquetTableFile& file = files_[reading.shard];
    const auto number = file.page_of(index, reading.field, reading.place);
    if (!number) return cells_.missing_page(reading);
    const IndexedPage page = index.page(*number);
    if (page.kind == IndexedPage::Kind::ranges) {
      const auto member = find_member(reading.shard, reading.row, reading.field);
      if (!member) return set_null(reading, page.begin, out);
      return read_range(reading, *member, out);
    }
    if (const auto rows = cells_.find_in_blocks(reading, *number))
      return read_in_blocks(reading, page, *rows, out);
    Result<ParquetCell> cell = cells_.read(reading, *number, out.record());
    if (!cell) return std::move(cell.fault());
    const ParquetField& field = file.field(reading.field);
    if (cell->is_null(field)) return set_null(reading, page.begin, out);
    const auto for_each = [&](const auto& use) { cell->for_each(field, use); };
    if (field.values.is_bytes && field.values.is_list)
      return out.set_byte_list(field, cell->offset, for_each);
    if (field.values.is_bytes) {
      std::span<const std::byte> value;
      for_each([&](std::span<const std::byte> found, bool) { value = found; });
      return out.set_bytes(field, value, cell->offset);
    }
    return set_numbers(reading, *cell, out);
  }

  // The value lies in blocks of a page that are decompressed alone.
  Result<void> read_in_blocks(const Reading& reading, const IndexedPage& page,
                              const source::SnappyRows& rows, TableRow& out) const {
    const source::ParquetSlice value =
        rows.values[static_cast<std::size_t>(reading.place.row - page.first_row)];
    if (value.begin == source::SnappyRows::kNull) return set_null(reading, page.begin, out);
    const ParquetField& field = fields_[reading.field];
    if (auto result = out.count(value.bytes, page.begin); !result) return result;
    if (auto result = TableRow::require_bytes(field, value.bytes, page.begin); !result)
      return result;
    const std::size_t wanted = wanted_bytes(field, value.bytes, out.record());
    auto found = source::read_snappy_value(
        *rows.blocks, value, wanted,
        [&](std::uint64_t offset, std::span<std::byte> into) {
          return shards_.read(reading.shard, offset, into);
        },
        out.record());
    if (!found) return std::move(found.fault());
    out.record().set(field.at, found->data(), DType::u8,
                     Shape{static_cast<std::int64_t>(found->size())});
    return {};
  }

  // Of a value of texts or bytes: a field of any length may be cut.
  static std::size_t wanted_bytes(const ParquetField& field, std::uint64_t bytes,
                                  const Record& record) {
    return static_cast<std::size_t>(field.spec.shape.is_dynamic()
                                        ? std::min<std::uint64_t>(bytes, record.prefix_limit())
                                        : bytes);
  }

  // The value lies alone in the file, behind its length.
  Result<void> read_range(const Reading& reading, const Member& member, TableRow& out) const {
    if (auto result = out.count(member.bytes, member.begin); !result) return result;
    const ParquetField& field = fields_[reading.field];
    if (auto result = TableRow::require_bytes(field, member.bytes, member.begin); !result)
      return result;
    Record& record = out.record();
    const std::size_t wanted = wanted_bytes(field, member.bytes, record);
    auto block = record.allocate(kLengthPrefix + wanted);
    if (!block) return TableRow::fault(member.begin, std::move(block.fault().reason));
    if (member.begin < kLengthPrefix) return changed(member.begin);
    if (auto result = shards_.read(reading.shard, member.begin - kLengthPrefix, *block); !result)
      return result;
    record.add_bytes_read(block->size());
    if (source::load_little_endian<std::uint32_t>(*block) != member.bytes)
      return changed(member.begin);
    record.set(field.at, block->data() + kLengthPrefix, DType::u8,
               Shape{static_cast<std::int64_t>(wanted)});
    return {};
  }

  static Fault changed(std::uint64_t offset) {
    return TableRow::fault(offset,
                           fmt::format("the value's length is no longer the one that was indexed: "
                                       "the file {}",
                                       source::kDamagedOrChanged));
  }

  Result<void> set_null(const Reading& reading, std::uint64_t offset, TableRow& out) const {
    if (auto result = out.set_null(fields_[reading.field], offset); !result) return result;
    if (auto result = compare_length(reading, offset, std::nullopt); !result) return result;
    return compare_label(reading, offset, nullptr);
  }

  Result<void> set_numbers(const Reading& reading, const ParquetCell& cell, TableRow& out) const {
    const ParquetField& field = files_[reading.shard].field(reading.field);
    if (auto other = cell.find_other_list(field)) return TableRow::fault(cell.offset, *other);
    const auto [elements, has_null] = cell.count_elements(field);
    auto room = out.make_room(field, elements, has_null, cell.offset);
    if (!room) return std::move(room.fault());
    if (!cell.copy_numbers(field, *room))
      return TableRow::fault(
          cell.offset, fmt::format("a value is out of the range of {}", name_of(field.spec.dtype)));
    out.set_numbers(field, *room);
    if (auto result = compare_length(reading, cell.offset, elements); !result) return result;
    return compare_label(reading, cell.offset, room->data());
  }

  // filter() goes by the index, and so does packing. `value` is null where the row's is.
  Result<void> compare_label(const Reading& reading, std::uint64_t offset,
                             const std::byte* value) const {
    if (reading.field != label_) return {};
    const DType dtype = fields_[reading.field].spec.dtype;
    const std::string& column = fields_[reading.field].column.column;
    const ShardIndex::Labels* const labels =
        shards_.index(reading.shard).labels(source::name_of_integers(column));
    if (labels == nullptr) return {};
    const LabelState state = labels->state(reading.row);
    const std::optional<std::int64_t> found =
        value == nullptr ? std::nullopt : source::integer_of(dtype, value);
    const bool is_same =
        state == LabelState::unreadable || (value == nullptr && state == LabelState::missing) ||
        (state == LabelState::known && found && labels->value(reading.row) == *found);
    if (is_same) return {};
    const std::string in_row = value == nullptr ? "null"
                               : found          ? fmt::to_string(*found)
                                                : "above 2^63-1";
    return TableRow::fault(
        offset, fmt::format("the value is {} in the row, and {} in the index of its file: the "
                            "file {}",
                            in_row,
                            state == LabelState::known ? fmt::to_string(labels->value(reading.row))
                                                       : "null",
                            source::kDamagedOrChanged));
  }

  // Of a list; nothing is found of one that is null.
  Result<void> compare_length(const Reading& reading, std::uint64_t offset,
                              std::optional<std::uint64_t> found) const {
    if (reading.field != length_) return {};
    const ParquetField& field = fields_[reading.field];
    const ShardIndex::Labels* const lengths = reading.lengths;
    if (!field.values.is_list || lengths == nullptr) return {};
    const LabelState state = lengths->state(reading.row);
    const bool is_same = state == LabelState::unreadable ||
                         (state == LabelState::missing
                              ? !found
                              : found && std::cmp_equal(lengths->value(reading.row), *found));
    if (is_same) return {};
    return TableRow::fault(
        offset, fmt::format("the list {}, and {} in the index of its file: the file {}",
                            found ? fmt::format("has {} values", *found) : "is null",
                            state == LabelState::known ? fmt::to_string(lengths->value(reading.row))
                                                       : "is null",
                            source::kDamagedOrChanged));
  }

  source::ShardSet shards_;
  std::vector<Notice> notices_;
  ParquetOptions options_;
  std::vector<ParquetField> fields_;
  std::vector<FieldSpec> specs_;
  Description description_;
  std::vector<ParquetTableFile> files_;
  std::vector<RangeColumns> range_columns_;  // of files_
  std::optional<std::size_t> label_;         // fields
  std::optional<std::size_t> length_;
  std::vector<const ShardIndex::Labels*> lengths_;  // of each shard's lists
  std::vector<std::string> class_names_;
  source::ParquetCellReader cells_;  // of shards_ and files_
};

void check(const ParquetOptions& options) {
  if (options.max_record_bytes == 0)
    throw std::invalid_argument("max_record_bytes is 0, which no row fits; the default is 256 MiB");
}

}  // namespace

SourcePtr source::parquet(const ShardPaths& files, ParquetOptions options) {
  check(options);
  Description description = source::describe_parquet(files, options);
  auto storage = std::make_shared<const storage::Storage>(options.storage);
  source::FoundShards found =
      source::find_shards(files, source::is_parquet_name, "*.parquet", *storage);
  const std::string& first = found.paths.front();
  const source::ParquetFooter footer = source::read_first_footer(first, *storage);
  std::vector<ParquetField> fields =
      source::resolve_parquet_columns(footer, options.columns, first);
  const std::size_t threads = source::threads_in_shard(options.index, found.paths.size());
  source::IndexRecipe recipe{.kind = source::ShardKind::parquet,
                             .labels = {},
                             .scan = [&](const storage::StoredFile& file, const std::string& path,
                                         std::span<const std::string> labels) {
                               return source::scan_parquet(file, path, labels, threads);
                             }};
  for (const ParquetField& field : fields)
    if (field.is_label()) recipe.labels.push_back(source::name_of_integers(field.column.column));
  // The lengths of lists are known only once they were counted.
  const auto length = source::length_field<ParquetField>(fields);
  if (length && fields[*length].values.is_list)
    recipe.labels.push_back(source::name_of_lengths(fields[*length].column.column));
  std::vector<ShardIndex> indexes =
      source::open_indexes(found.paths, recipe, options.index, *storage);
  return std::make_shared<ParquetRows>(std::move(found), std::move(indexes), std::move(fields),
                                       std::move(options), std::move(storage),
                                       std::move(description));
}

}  // namespace penstock
