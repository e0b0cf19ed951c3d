#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/tables.hpp>

#include "src/core/parallel_for.hpp"
#include "src/source/arrow/arrow_cell.hpp"
#include "src/source/arrow/arrow_files.hpp"
#include "src/source/arrow/arrow_table.hpp"
#include "src/source/catalog.hpp"
#include "src/source/tables/table_row.hpp"

namespace penstock {

namespace {

using source::ArrowCell;
using source::ArrowColumn;
using source::ArrowOpened;
using source::ArrowTable;
using source::ArrowTableField;
using source::TableRow;

class ArrowRows final : public Source {
 public:
  /// `rows` are those of the tables that are read, if `has_rows`.
  ArrowRows(std::vector<ArrowTable> tables, std::vector<std::uint64_t> rows, bool has_rows,
            ArrowOptions options, std::optional<Description> description,
            std::vector<Notice> notices = {})
      : tables_(std::move(tables)),
        rows_(std::move(rows)),
        has_rows_(has_rows),
        options_(std::move(options)),
        description_(std::move(description)),
        notices_(std::move(notices)),
        batches_(options_.batch_cache_bytes) {
    std::uint64_t all = 0;
    for (const ArrowTable& table : tables_) ends_.push_back(all += table.rows());
    for (const std::uint64_t row : rows_)
      if (row >= all)
        throw Error(fmt::format("{}: row {} was chosen of {}", tables_.front().name(), row, all));
    size_ = has_rows_ ? rows_.size() : all;
    const std::span<const ArrowTableField> fields = tables_.front().fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      source::add_specs(fields[i], specs_);
      if (fields[i].is_label()) label_ = i;
    }
    length_ = source::length_field<ArrowTableField>(fields);
    if (label_) find_class_names();
    make_fingerprint();
  }

  std::uint64_t size() const noexcept override { return size_; }
  std::optional<Description> description() const override { return description_; }
  std::span<const FieldSpec> fields() const noexcept override { return specs_; }
  std::uint64_t files() const noexcept override { return tables_.size(); }
  std::uint64_t file_of(std::uint64_t number) const override { return place(number).table; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(specs_.size());
    const Place at = place(number);
    const ArrowTable& table = tables_[at.table];
    const auto opened = open(at);
    if (!opened) return opened.fault();
    TableRow out(record, options_.max_record_bytes);
    for (std::size_t i = 0; i < table.fields().size(); ++i) {
      const ArrowTableField& field = table.fields()[i];
      if (!out.is_wanted(field)) continue;
      Result<void> result = read_field(field, table.column(**opened, i), **opened, at.row, out);
      if (!result) {
        Fault fault = std::move(result.fault());
        fault.reason = fmt::format("column '{}': {}", field.column.column, fault.reason);
        fault.file = location(number);
        return fault;
      }
    }
    return {};
  }

  std::string location(std::uint64_t number) const override {
    const Place at = place(number);
    return fmt::format("{}:{}", tables_[at.table].name(), at.table_row);
  }

  RecordName name(std::uint64_t number) const override {
    const Place at = place(number);
    const ArrowTable& table = tables_[at.table];
    RecordName name{.key = key(at)};
    if (!table.is_file()) return name;
    name.file = table.name();
    if (const auto opened = open(at)) {
      name.offset = (*opened)->offset;
      with_cell(**opened, at, 0, [&](const ArrowCell& cell) {
        bool is_first = true;
        if (!table.fields()[0].values.is_bytes) return;
        cell.for_each([&](std::span<const std::byte> value, bool) {
          if (std::exchange(is_first, false))
            name.offset = table.offset_of(value).value_or(name.offset);
        });
      });
    }
    return name;
  }

  RecordInfo info(std::uint64_t number) const override {
    const Place at = place(number);
    RecordInfo info{.key = key(at), .label = label(number), .bytes = std::nullopt};
    const auto opened = open(at);
    if (!opened) return info;
    const std::span<const ArrowTableField> fields = tables_[at.table].fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].values.is_bytes) continue;
      with_cell(**opened, at, i, [&](const ArrowCell& cell) {
        std::uint64_t bytes = info.bytes.value_or(0);
        cell.for_each([&](std::span<const std::byte> value, bool) { bytes += value.size(); });
        info.bytes = bytes;
      });
    }
    return info;
  }

  std::optional<std::int64_t> label(std::uint64_t number) const override {
    if (!label_) return std::nullopt;
    const Place at = place(number);
    const auto opened = open(at);
    if (!opened) return std::nullopt;
    std::optional<std::int64_t> found;
    const TableColumn& column = tables_[at.table].fields()[*label_].column;
    with_cell(**opened, at, *label_, [&](const ArrowCell& cell) {
      const auto value = cell.numbers();
      if (value)
        found = source::integer_of(specs_of_label().dtype, value->data());
      else if (cell.is_null() && !column.required)
        found = source::default_label(column);
    });
    return found;
  }

  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    if (!length_) return std::nullopt;
    const Place at = place(number);
    const auto opened = open(at);
    if (!opened) return std::nullopt;
    std::optional<std::uint64_t> found;
    const ArrowTableField& field = tables_[at.table].fields()[*length_];
    with_cell(**opened, at, *length_, [&](const ArrowCell& cell) {
      if (cell.is_null()) {
        if (!field.column.required) found = 0;  // else an error of what needs the length
      } else if (field.values.is_list) {
        found = cell.count();
      } else {
        cell.for_each([&](std::span<const std::byte> value, bool) { found = value.size(); });
      }
    });
    return found;
  }

  std::vector<std::uint64_t> chunks() const override {
    std::vector<std::uint64_t> begins;
    std::pair<std::size_t, std::size_t> last;
    for (std::uint64_t number = 0; number < size_;) {
      const Place at = place(number);
      if (number == 0 || last != std::pair(at.table, at.batch)) begins.push_back(number);
      last = {at.table, at.batch};
      number += has_rows_ ? 1 : tables_[at.table].rows_of(at.batch) - at.row;
    }
    return begins;
  }

  std::vector<Notice> notices() const override {
    std::size_t count = 0;
    std::string first;
    for (const ArrowTable& table : tables_) {
      if (table.has_end()) continue;
      if (count++ == 0) first = table.name();
    }
    std::vector<Notice> notices = notices_;
    if (count == 0) return notices;
    const std::string where = count == 1
                                  ? first + " has"
                                  : fmt::format("{} Arrow files, {} the first, have", count, first);
    notices.push_back(
        {.text = where +
                 " no end mark of a stream: the program that wrote it may have ended before it "
                 "had written all rows",
         .is_warning = true});
    return notices;
  }
  std::vector<StorageTier> tiers() const override { return {batches_.tier()}; }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::span<const std::string> class_names() const noexcept override { return class_names_; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  struct Place {
    std::size_t table = 0;
    std::uint64_t table_row = 0;
    std::size_t batch = 0;
    std::uint64_t row = 0;  // in the batch
  };

  [[nodiscard]] Place place(std::uint64_t number) const {
    const std::uint64_t all = has_rows_ ? rows_[number] : number;
    const auto table =
        static_cast<std::size_t>(std::ranges::upper_bound(ends_, all) - ends_.begin());
    const std::uint64_t row = all - (table == 0 ? 0 : ends_[table - 1]);
    const auto [batch, batch_row] = tables_[table].place(row);
    return {table, row, batch, batch_row};
  }

  [[nodiscard]] std::string key(const Place& at) const {
    const std::string& name = tables_[at.table].name();
    return fmt::format("{}:{}", name.substr(name.rfind('/') + 1), at.table_row);
  }

  [[nodiscard]] Result<source::ArrowOpenedPtr> open(const Place& at) const {
    return tables_[at.table].open(at.batch, at.table, batches_);
  }

  // Calls `use` unless the value is damaged: read() says so.
  template <class Use>
  void with_cell(const ArrowOpened& opened, const Place& at, std::size_t field,
                 const Use& use) const {
    try {
      use(ArrowCell(tables_[at.table].fields()[field], tables_[at.table].column(opened, field),
                    at.row));
    } catch (const DataError&) {
      return;
    }
  }

  [[nodiscard]] const FieldSpec& specs_of_label() const {
    return tables_.front().fields()[*label_].spec;
  }

  static Result<void> read_field(const ArrowTableField& field, const ArrowColumn& column,
                                 const ArrowOpened& opened, std::uint64_t row, TableRow& out) {
    try {
      const ArrowCell cell(field, column, row);
      return read_cell(field, cell, opened, out);
    } catch (const DataError& error) {
      return error.fault();
    }
  }

  static Result<void> read_cell(const ArrowTableField& field, const ArrowCell& cell,
                                const ArrowOpened& opened, TableRow& out) {
    if (cell.is_null()) return out.set_null(field, opened.offset);
    const auto for_each = [&](const auto& use) { cell.for_each(use); };
    if (field.values.is_bytes && field.values.is_list)
      return out.set_byte_list(field, opened.offset, for_each);
    if (field.values.is_bytes) {
      std::span<const std::byte> value;
      for_each([&](std::span<const std::byte> found, bool) { value = found; });
      out.record().add_bytes_read(value.size());
      return out.set_bytes(field, value, opened.offset, opened.stays);
    }
    return read_numbers(field, cell, opened, out);
  }

  static Result<void> read_numbers(const ArrowTableField& field, const ArrowCell& cell,
                                   const ArrowOpened& opened, TableRow& out) {
    if (auto other = cell.find_other_list()) return TableRow::fault(opened.offset, *other);
    const auto stored = cell.numbers();
    const std::uint64_t count = cell.count();
    out.record().add_bytes_read(count * field.element_bytes());
    const auto is_aligned = [&](const std::byte* at) {
      return std::bit_cast<std::uintptr_t>(at) % size_of(field.spec.dtype) == 0;
    };
    if (stored && opened.stays && field.spec.shape.is_dynamic() && is_aligned(stored->data()))
      return out.set_view(field, count, stored->data(), opened.offset);
    auto room = out.make_room(field, count, !stored && cell.has_null_element(), opened.offset);
    if (!room) return std::move(room.fault());
    if (stored)
      std::ranges::copy(*stored, room->data());
    else
      cell.copy_numbers(*room);
    out.set_numbers(field, *room);
    return {};
  }

  void find_class_names() {
    for (const ArrowTable& table : tables_) {
      const std::string& column = table.fields()[*label_].column.column;
      auto names = source::arrow_class_names(table.schema(), column);
      if (&table == &tables_.front())
        class_names_ = std::move(names);
      else
        source::require_same_classes(names, class_names_, column, table.name(),
                                     tables_.front().name());
    }
  }

  // Of files by what they are; of other tables by some of their values, however these are divided into batches.
  void make_fingerprint() {
    std::string text;
    for (const ArrowTableField& field : tables_.front().fields())
      text += source::fingerprint_of(field);
    if (has_rows_)
      text +=
          hash_text({reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(rows_[0])});
    const bool is_file = tables_.front().is_file();
    for (const ArrowTable& table : tables_)
      if (is_file) text += table.content();
    if (!is_file) text += some_values();
    fingerprint_ =
        fmt::format("arrow({} rows{}, {})", size_,
                    is_file ? fmt::format(" in {} files", tables_.size()) : "", hash_text(text));
  }

  [[nodiscard]] std::string some_values() const {
    constexpr std::uint64_t kRows = 64;
    constexpr std::size_t kBytes = 4096;  // of each value
    std::string text;
    Record record;
    const std::uint64_t rows = std::min(kRows, size_);
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t number =
          rows == size_ ? i : static_cast<std::uint64_t>((size_ - 1) * i / (rows - 1));
      if (!read(number, record)) {
        text += "fault;";
        continue;
      }
      for (const ConstTensorView& view : record.views()) {
        const std::size_t bytes = std::min(kBytes, view.byte_size());
        text += fmt::format("{}:", view.byte_size());
        if (bytes != 0) text.append(reinterpret_cast<const char*>(view.raw()), bytes);
      }
    }
    return hash_text(text);
  }

  std::vector<ArrowTable> tables_;
  std::vector<std::uint64_t> ends_;  // rows up to the end of each table
  std::vector<std::uint64_t> rows_;
  bool has_rows_;
  ArrowOptions options_;
  std::optional<Description> description_;
  std::vector<Notice> notices_;
  mutable source::ArrowBatchCache batches_;
  std::vector<FieldSpec> specs_;
  std::uint64_t size_ = 0;
  std::optional<std::size_t> label_;  // numbers of fields
  std::optional<std::size_t> length_;
  std::vector<std::string> class_names_;
  std::string fingerprint_;
};

void check(const ArrowOptions& options) {
  if (options.max_record_bytes == 0)
    throw std::invalid_argument("max_record_bytes is 0, which no row fits; the default is 256 MiB");
}

}  // namespace

SourcePtr source::arrow(const ShardPaths& files, ArrowOptions options) {
  check(options);
  Description description = source::describe_arrow(files, options);
  source::ArrowFiles found = source::find_arrow_files(files);
  std::vector<std::optional<ArrowTable>> opened(found.paths.size());
  core::parallel_for("opening Arrow files", opened.size(),
                     [&](std::size_t i) { opened[i].emplace(found.paths[i]); });
  std::vector<ArrowTable> tables;
  for (std::optional<ArrowTable>& table : opened) tables.push_back(std::move(*table));
  const std::string& first = tables.front().name();
  tables.front().set_fields(
      source::resolve_arrow_columns(tables.front().schema(), options.columns, first));
  for (std::size_t i = 1; i < tables.size(); ++i)
    tables[i].set_fields(source::find_arrow_fields(tables[i].schema(), tables.front().fields(),
                                                   tables[i].name(), first));
  return std::make_shared<ArrowRows>(std::move(tables), std::move(found.rows), found.has_rows,
                                     std::move(options), std::move(description),
                                     std::move(found.notices));
}

SourcePtr source::arrow_table(::ArrowArrayStream* stream, ArrowOptions options,
                              std::optional<std::vector<std::uint64_t>> rows) {
  check(options);
  if (stream == nullptr) throw std::invalid_argument("arrow_table: there is no stream");
  constexpr const char* kName = "Arrow table";
  std::vector<ArrowTable> tables;
  try {
    tables.emplace_back(source::ArrowStream(stream, kName), kName, options.columns);
  } catch (const DataError& error) {
    source::throw_table_error(error.fault());
  }
  const bool has_rows = rows.has_value();
  return std::make_shared<ArrowRows>(std::move(tables),
                                     std::move(rows).value_or(std::vector<std::uint64_t>()),
                                     has_rows, std::move(options), std::nullopt);
}

}  // namespace penstock
