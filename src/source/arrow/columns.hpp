// source/arrow/columns: columns of a file's batches, with their dictionaries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/source/arrow/batch.hpp"
#include "src/source/arrow/column.hpp"
#include "src/source/arrow/index.hpp"

namespace penstock::source {

/// Opens columns of an indexed file. Buffers are not copied: the spans that `read` returns must stay valid as long as the
/// columns do, as those of a mapped file. The last entries of each dictionary are kept. A `batch` must be less than
/// index().batches.size(), a `field` less than index().fields.nodes.size().
///
/// Threads  any number at once, if `read` allows it
class ArrowColumns {
 public:
  ArrowColumns(std::shared_ptr<const ArrowIndex> index, ArrowRead read,
               const ArrowLimits& limits = {});

  [[nodiscard]] const ArrowIndex& index() const noexcept { return *index_; }
  /// Reads where the buffers of a batch are.
  ///
  /// Errors  a fault  the batch's metadata is damaged
  [[nodiscard]] Result<ArrowBatch> locate(std::uint64_t batch) const;
  /// Opens a field of a batch, with all that is in it; 0 is a struct of all columns. Buffers that are compressed are
  /// decompressed, and belong to the column.
  ///
  /// Errors  a fault  the file is damaged, or a type or a codec is not read
  [[nodiscard]] Result<ArrowColumn> open(std::uint64_t batch, std::uint32_t field) const;
  /// The same of several fields of a batch that was located, with what is wanted in them; together they decompress at most
  /// ArrowLimits::unpacked_bytes.
  [[nodiscard]] Result<std::vector<ArrowColumn>> open(std::uint64_t batch,
                                                      const ArrowBatch& located,
                                                      std::span<const std::uint32_t> fields,
                                                      const ArrowWanted* wanted = nullptr) const;

 private:
  class Opening;
  struct Kept {
    std::vector<const ArrowBlock*> blocks;
    std::shared_ptr<const ArrowEntries> entries;
  };
  [[nodiscard]] ArrowBatch locate_block(const ArrowBlock& block,
                                        std::optional<std::uint32_t> dictionary_of) const;

  std::shared_ptr<const ArrowIndex> index_;
  std::shared_ptr<const std::string> file_;
  std::map<std::int64_t, std::uint32_t> fields_of_dictionaries_;  // the first of each id
  ArrowRead read_;
  ArrowLimits limits_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, Kept> dictionaries_;  // by id
};

}  // namespace penstock::source
