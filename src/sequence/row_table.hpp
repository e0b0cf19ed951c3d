// sequence/row_table: which parts of which documents make up each row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <penstock/sequence/pack.hpp>

#include "src/sequence/running_lengths.hpp"

namespace penstock::sequence {

/// Tokens [begin, begin + length) of a document, next to each other in a row.
struct Piece {
  std::uint64_t document;
  std::uint64_t begin;
  std::uint64_t length;
};

/// Which document comes at which place, and how long it is.
///
/// Threads  const, any number at once.
class DocumentOrder {
 public:
  /// Errors of length_of and lengths: Error, a document whose length is not known.
  DocumentOrder(SourcePtr source, std::optional<std::uint64_t> seed);
  DocumentOrder(const DocumentOrder&) = delete;
  DocumentOrder& operator=(const DocumentOrder&) = delete;
  ~DocumentOrder();

  [[nodiscard]] std::uint64_t size() const noexcept;
  /// Numbers of the documents at places [first, first + numbers.size()).
  void numbers(std::uint64_t first, std::span<std::uint64_t> numbers) const;
  [[nodiscard]] std::uint64_t length_of(std::uint64_t number) const;
  /// Lengths of the documents at places [first, first + lengths.size()).
  void lengths(std::uint64_t first, std::span<std::uint64_t> lengths) const;

 private:
  struct Shuffled;
  SourcePtr source_;
  std::unique_ptr<const Shuffled> shuffled_;
};

/// Tokens of a document.
///
/// Errors  Error  its length is not known or damaged; names it
[[nodiscard]] std::uint64_t length_of(const Source& source, std::uint64_t number);

/// A hash of the lengths from place `first` on; those of all places are added up.
[[nodiscard]] std::uint64_t hash_lengths(std::uint64_t first,
                                         std::span<const std::uint64_t> lengths) noexcept;

/// Threads  const, any number at once.
class RowTable {
 public:
  RowTable() = default;
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;
  virtual ~RowTable() = default;

  /// The parts of row `row` < summary().rows, in their order.
  virtual void pieces(std::uint64_t row, std::vector<Piece>& pieces) const = 0;
  [[nodiscard]] const PackSummary& summary() const noexcept { return summary_; }
  /// Of the lengths, in the documents' order.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }

 protected:
  PackSummary summary_;
  std::uint64_t hash_ = 0;
};

/// For PackMethod::best_fit and first_fit.
[[nodiscard]] std::unique_ptr<const RowTable> fit_rows(std::shared_ptr<const DocumentOrder> order,
                                                       const PackOptions& options);
/// For PackMethod::wrap. Counts the documents of each row only if asked.
[[nodiscard]] std::unique_ptr<const RowTable> wrap_rows(std::shared_ptr<const DocumentOrder> order,
                                                        const PackOptions& options,
                                                        bool count_documents);

/// Documents that are packed together.
inline constexpr std::uint64_t kPackWindow = 65'536;

}  // namespace penstock::sequence
