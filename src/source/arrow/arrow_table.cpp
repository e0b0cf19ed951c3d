#include "src/source/arrow/arrow_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/source/arrow/compression.hpp"
#include "src/source/hash_ends.hpp"

namespace penstock::source {

namespace {

// What a mapped file has; spans of it stay valid as long as it is mapped.
ArrowRead reader_of(const storage::MappedFile& mapped, const std::string& path) {
  return [mapped, path](std::uint64_t offset,
                        std::uint64_t bytes) -> Result<std::span<const std::byte>> {
    if (offset > mapped.bytes.size() || bytes > mapped.bytes.size() - offset)
      return Fault{.reason = fmt::format("expected {} bytes, and the file ends", bytes),
                   .file = path,
                   .offset = offset};
    return mapped.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes));
  };
}

}  // namespace

ArrowTable::ArrowTable(const std::string& path) : name_(path), mapped_(storage::map_file(path)) {
  ArrowRead read = reader_of(mapped_, path);
  auto index = read_arrow_index(read, mapped_.bytes.size(), path);
  if (!index) throw_table_error(index.fault());
  index_ = std::make_shared<const ArrowIndex>(std::move(*index));
  columns_ = std::make_unique<const ArrowColumns>(index_, std::move(read));
  std::uint64_t rows = 0;
  for (std::size_t batch = 0; batch < index_->batches.size(); ++batch) {
    // A number of rows that lies would move all rows behind it.
    const auto located = columns_->locate(batch);
    if (!located) throw_table_error(located.fault());
    try {
      require_arrow_codec(located->compression, {.file = path, .offset = located->body.begin});
    } catch (const DataError& error) {
      throw_table_error(error.fault());
    }
    is_packed_.push_back(located->compression != ArrowCompression::none);
    ends_.push_back(rows += index_->batches[batch].rows);
  }
  slots_ = std::make_unique<Slot[]>(ends_.size());
}

ArrowTable::ArrowTable(ArrowStream stream, std::string name, std::span<const TableColumn> columns)
    : name_(std::move(name)), schema_(stream.fields()) {
  const ArrowType& type = schema_.nodes.front().type;
  if (type.kind != ArrowKind::structure)
    throw Error(
        fmt::format("{}: expected a table, found an array of type {}; make it the column "
                    "of one, as in pyarrow.table({{\"x\": array}})",
                    name_, name_of(type)));
  set_fields(resolve_arrow_columns(schema_, columns, name_));
  std::vector<ArrowOpened> batches;
  try {
    std::uint64_t rows = 0;
    while (auto batch = stream.next(&wanted_)) {
      if (batch->length() == 0) continue;
      if (batch->may_have_nulls())
        throw Error(
            fmt::format("{}: the rows themselves may be null, and not their values; make "
                        "a table of the columns, as in pyarrow.Table.from_struct_array()",
                        name_));
      ends_.push_back(rows += batch->length());
      ArrowOpened& made = batches.emplace_back();
      const std::vector<std::uint32_t>& all = schema_.nodes.front().children;
      for (const std::uint32_t top : tops_)
        made.columns.push_back(
            batch->child(static_cast<std::size_t>(std::ranges::find(all, top) - all.begin())));
    }
  } catch (const DataError& error) {
    throw_table_error(error.fault());
  }
  slots_ = std::make_unique<Slot[]>(ends_.size());
  for (std::size_t batch = 0; batch < batches.size(); ++batch)
    (void)keep(batch, std::move(batches[batch]));
}

void ArrowTable::set_fields(std::vector<ArrowTableField> fields) {
  fields_ = std::move(fields);
  wanted_ = wanted_arrow_nodes(schema(), fields_);
  for (const ArrowTableField& field : fields_) {
    const auto known = std::ranges::find(tops_, field.top);
    column_of_.push_back(static_cast<std::size_t>(known - tops_.begin()));
    if (known == tops_.end()) tops_.push_back(field.top);
  }
}

const ArrowFields& ArrowTable::schema() const noexcept { return index_ ? index_->fields : schema_; }

std::string ArrowTable::content() const {
  std::string text = name_.substr(name_.rfind('/') + 1);
  text += fmt::format("\n{} bytes", mapped_.bytes.size());
  for (const std::uint64_t end : ends_) text += fmt::format(" {}", end);
  return text + hash_ends(mapped_.bytes);
}

ArrowTable::Place ArrowTable::place(std::uint64_t row) const noexcept {
  const auto end = std::ranges::upper_bound(ends_, row);
  const auto batch = static_cast<std::size_t>(end - ends_.begin());
  return {batch, row - (batch == 0 ? 0 : ends_[batch - 1])};
}

Result<ArrowOpenedPtr> ArrowTable::open(std::size_t batch, std::uint64_t table,
                                        ArrowBatchCache& cache) const {
  if (const ArrowOpened* const found = slots_[batch].opened.load(std::memory_order_acquire))
    return ArrowOpenedPtr(ArrowOpenedPtr(), found);
  if (!is_packed_[batch]) {
    auto made = open_columns(batch);
    if (!made) return std::move(made.fault());
    return keep(batch, std::move(*made));
  }
  const auto found = cache.get(
      {table, batch}, [&] { return decoded(open_columns(batch)); },
      [](const Decoded<ArrowOpened>& opened) -> CachedBytes {
        if (!opened.value) return {bytes_of_fault(opened.fault)};
        std::uint64_t bytes = sizeof(ArrowOpened);
        for (const ArrowColumn& column : opened.value->columns) bytes += column.owned_bytes();
        return {bytes};
      });
  if (!found) return found.fault();
  if (!(*found)->value) return (*found)->fault;
  return ArrowOpenedPtr(*found, &*(*found)->value);
}

// Of several threads that open a batch, the first keeps what it made.
ArrowOpenedPtr ArrowTable::keep(std::size_t batch, ArrowOpened opened) const {
  auto made = std::make_unique<const ArrowOpened>(std::move(opened));
  const ArrowOpened* kept = nullptr;
  if (slots_[batch].opened.compare_exchange_strong(kept, made.get(), std::memory_order_acq_rel))
    kept = made.release();
  return {ArrowOpenedPtr(), kept};
}

Result<ArrowOpened> ArrowTable::open_columns(std::size_t batch) const {
  const auto located = columns_->locate(batch);
  if (!located) return located.fault();
  auto columns = columns_->open(batch, *located, tops_, &wanted_);
  if (!columns) return std::move(columns.fault());
  return ArrowOpened{
      .columns = std::move(*columns), .offset = located->body.begin, .stays = !is_packed_[batch]};
}

std::optional<std::uint64_t> ArrowTable::offset_of(
    std::span<const std::byte> bytes) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped_.bytes.data());
  if (at < begin || at - begin >= mapped_.bytes.size()) return std::nullopt;
  return at - begin;
}

}  // namespace penstock::source
