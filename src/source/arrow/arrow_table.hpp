// source/arrow/arrow_table: the batches of a mapped file, or of a table in memory, opened as rows of them are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/source/arrow/arrow_fields.hpp"
#include "src/source/arrow/c_import.hpp"
#include "src/source/arrow/columns.hpp"
#include "src/source/page_cache.hpp"
#include "src/storage/local/file.hpp"

namespace penstock::source {

/// The columns of a batch that fields lie in, each once: ArrowTable::column() says which is a field's.
struct ArrowOpened {
  std::vector<ArrowColumn> columns;
  std::uint64_t offset = 0;  ///< of the batch's body in its file
  bool stays = true;         ///< whether its memory lives as long as the table
};
using ArrowOpenedPtr = std::shared_ptr<const ArrowOpened>;
using ArrowBatchCache = PageCache<Decoded<ArrowOpened>>;

/// The batches of one file, or of one stream.
///
/// Threads  const, any number at once
class ArrowTable {
 public:
  /// A file of the stream or the file format, which is mapped.
  ///
  /// Errors  Error  it cannot be mapped, is no Arrow data, or is damaged
  explicit ArrowTable(const std::string& path);
  /// All batches of a stream, of which rows are read as the fields that `columns` says. `name` is for messages.
  ///
  /// Errors  Error  the producer fails, or its batches are not valid; and as resolve_arrow_columns()
  ArrowTable(ArrowStream stream, std::string name, std::span<const TableColumn> columns);
  ArrowTable(ArrowTable&&) = default;
  ArrowTable& operator=(ArrowTable&&) = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const ArrowFields& schema() const noexcept;
  [[nodiscard]] std::uint64_t rows() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] bool is_file() const noexcept { return columns_ != nullptr; }
  /// Of a file: whether it ends as a stream or a file does; else it may have lost its end.
  [[nodiscard]] bool has_end() const noexcept { return index_ == nullptr || index_->has_end; }
  /// Of a file: what tells it from others of its name, without its values.
  [[nodiscard]] std::string content() const;

  /// The fields that rows of a file are read as; once, before open().
  void set_fields(std::vector<ArrowTableField> fields);
  [[nodiscard]] std::span<const ArrowTableField> fields() const noexcept { return fields_; }

  struct Place {
    std::size_t batch = 0;
    std::uint64_t row = 0;  ///< in its batch
  };
  [[nodiscard]] Place place(std::uint64_t row) const noexcept;
  [[nodiscard]] std::uint64_t rows_of(std::size_t batch) const noexcept {
    return ends_[batch] - (batch == 0 ? 0 : ends_[batch - 1]);
  }
  /// A batch's columns. Those that are compressed are kept in `cache`, under the number that the table has there; so is what
  /// is wrong with them.
  ///
  /// Errors  a fault  the batch is damaged
  [[nodiscard]] Result<ArrowOpenedPtr> open(std::size_t batch, std::uint64_t table,
                                            ArrowBatchCache& cache) const;
  /// The column that a field lies in.
  [[nodiscard]] const ArrowColumn& column(const ArrowOpened& opened, std::size_t field) const {
    return opened.columns[column_of_[field]];
  }
  /// Where bytes are in the file; nothing for those that are not of it.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(
      std::span<const std::byte> bytes) const noexcept;

 private:
  [[nodiscard]] Result<ArrowOpened> open_columns(std::size_t batch) const;
  [[nodiscard]] ArrowOpenedPtr keep(std::size_t batch, ArrowOpened opened) const;

  std::string name_;
  std::vector<ArrowTableField> fields_;
  std::vector<std::uint32_t> tops_;     // nodes of the columns that fields lie in
  std::vector<std::size_t> column_of_;  // of each field: its place in tops_
  ArrowWanted wanted_;
  std::vector<std::uint64_t> ends_;  // rows up to the end of each batch
  // Of a file.
  storage::MappedFile mapped_;
  std::shared_ptr<const ArrowIndex> index_;
  std::unique_ptr<const ArrowColumns> columns_;
  // Of each batch, once it was opened; not of those that are compressed.
  struct Slot {
    std::atomic<const ArrowOpened*> opened{nullptr};
    Slot() = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { std::unique_ptr<const ArrowOpened>(opened.load()).reset(); }
  };
  std::unique_ptr<Slot[]> slots_;
  std::vector<bool> is_packed_;  // of each batch of a file: compressed
  ArrowFields schema_;           // of a stream
};

}  // namespace penstock::source
