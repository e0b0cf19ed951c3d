// source/tokens/documents: records of tokens that lie in memory or in mapped files, with a table of where each lies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/source/source.hpp>

#include "src/source/hash_ends.hpp"
#include "src/source/shards/shard_index.hpp"

namespace penstock::source {

/// Where a document lies in its shard, in elements. No more than what a table says: it may be damaged.
struct DocumentPlace {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

/// Where the documents of a shard lie.
///
/// Threads  const, any number at once.
class DocumentTable {
 public:
  DocumentTable() = default;
  DocumentTable(const DocumentTable&) = delete;
  DocumentTable& operator=(const DocumentTable&) = delete;
  virtual ~DocumentTable() = default;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// None: damaged.
  [[nodiscard]] virtual std::optional<DocumentPlace> place(
      std::uint64_t document) const noexcept = 0;
  /// What tells it from other tables of its size, at no cost.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
};

/// Documents one behind the other: the first begins at 0, and each ends where the next begins.
class EndTable final : public DocumentTable {
 public:
  explicit EndTable(std::vector<std::uint64_t> ends) : ends_(std::move(ends)) {}
  std::uint64_t size() const noexcept override { return ends_.size(); }
  std::optional<DocumentPlace> place(std::uint64_t document) const noexcept override {
    const std::uint64_t begin = document == 0 ? 0 : ends_[document - 1];
    return DocumentPlace{begin, ends_[document] - begin};
  }
  std::string fingerprint() const override { return hash_ends(std::as_bytes(std::span(ends_))); }

 private:
  std::vector<std::uint64_t> ends_;
};

/// The same, of an index of tokens; with the same fingerprint.
class IndexedEnds final : public DocumentTable {
 public:
  explicit IndexedEnds(ShardIndex index) : index_(std::move(index)) {}
  std::uint64_t size() const noexcept override { return index_.records(); }
  std::optional<DocumentPlace> place(std::uint64_t document) const noexcept override;
  std::string fingerprint() const override;

 private:
  ShardIndex index_;
};

struct DocumentShard {
  std::span<const std::byte> tokens;
  std::shared_ptr<const void> owner;
  std::unique_ptr<const DocumentTable> table;
  std::string location;
  std::uint64_t begin = 0;  ///< of the tokens, in their file
  std::optional<std::int64_t>
      document_end{};  ///< the last token of each document, where an index has their ends
};

/// What differs between the kinds of documents.
struct DocumentKind {
  FieldSpec field;
  std::string name;        ///< begins the fingerprint
  bool is_stored = false;  ///< whether tokens count as bytes read
  std::optional<Description> description;
  std::vector<Notice> notices{};
};

[[nodiscard]] SourcePtr make_documents(DocumentKind kind, std::vector<DocumentShard> shards);

/// Errors  std::invalid_argument  a URL: tokens are mapped
void require_local(const std::string& path);

/// Whether it is a type of integers, as tokens have.
[[nodiscard]] bool is_integer(DType dtype) noexcept;

}  // namespace penstock::source
