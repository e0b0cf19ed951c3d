// sequence/pack: documents made rows of one length, by cutting their tokens into blocks or by packing them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- all documents one behind the other, cut into blocks of one length ----

/// For Dataset::blocks.
struct BlockOptions {
  static constexpr const char* kName = "blocks";  ///< in plans

  std::int64_t length = 0;  ///< tokens of a block
  /// tokens from the beginning of one block to that of the next, by default `length`; with 1 a block begins at every token,
  /// as nanoGPT draws them
  std::optional<std::int64_t> stride{};
  /// whether there is a second field, of the token that follows each, also across the ends of documents and blocks; Hugging
  /// Face's models shift labels themselves, and take the tokens as labels
  bool labels = true;
  DType dtype =
      DType::i64;  ///< type of the tokens: i32, i64, or the source's, which needs no conversion
  std::string field = "tokens";  ///< the field of the source, integers of shape [?]
};

template <class Visitor>
void visit_fields(Visitor& visit, BlockOptions& options) {
  visit.required("length", options.length);
  visit("stride", options.stride);
  visit("labels", options.labels);
  visit("dtype", options.dtype);
  visit("field", options.field);
}

namespace sequence {

/// A source whose record i is block i. What is left behind the last whole block is in none.
///
/// Memory  one number for every 64 documents.
/// Shapes  tokens [length]; with labels, labels [length].
/// Errors  std::invalid_argument  a length or stride below 1; another type; no such field
///         Error                  a document whose length is not known or damaged
/// A document that cannot be read, and a token that the type does not hold, are Faults of the blocks that they are in.
[[nodiscard]] SourcePtr blocks(SourcePtr documents, const BlockOptions& options);

}  // namespace sequence

// ---- documents of any length in rows of one length, with what attention needs to keep them apart ----

/// Into which row a document goes.
enum class PackMethod : std::uint8_t {
  best_fit,  ///< the longest first, each into the fullest row that has room for it: the least padding
  first_fit,  ///< in their order, each into the first row that has room for it
  wrap,  ///< concatenated and cut at the ends of rows: no padding but at the end of the last row
};
template <>
struct EnumNames<PackMethod> {
  static constexpr std::pair<PackMethod, const char*> kNames[] = {
      {PackMethod::best_fit, "best_fit"},
      {PackMethod::first_fit, "first_fit"},
      {PackMethod::wrap, "wrap"}};
};

/// What becomes of a document that is longer than a row. With PackMethod::wrap, `split` is all there is.
enum class LongDocuments : std::uint8_t {
  split,     ///< it becomes rows that it fills, and a document of the rest: no token is lost
  truncate,  ///< its first tokens fill a row, and the others are lost
  drop,      ///< it is in no row
};
template <>
struct EnumNames<LongDocuments> {
  static constexpr std::pair<LongDocuments, const char*> kNames[] = {
      {LongDocuments::split, "split"},
      {LongDocuments::truncate, "truncate"},
      {LongDocuments::drop, "drop"}};
};

/// A field of a packed row; see PackOptions::outputs.
enum class PackOutput : std::uint8_t {
  tokens,  ///< [length], `pad` after the documents
  labels,  ///< [length]: the token that follows in the document, `ignore` where none does; see `shift_labels`
  positions,    ///< [length]: 0, 1, 2 … from the beginning of each document; 0 in the padding
  segment_ids,  ///< [length]: 1, 2, 3 … for the documents of the row; 0 in the padding
  loss_mask,    ///< bool [length]: whether there is a label
  /// i32 [n + 2]: where each document begins in the row, and the row's length as often as needed; the padding counts as
  /// a document, and n is `max_documents_per_row`, or the most that a row has
  cu_seqlens,
  max_seqlen,  ///< i32 []: the longest of these documents
};
template <>
struct EnumNames<PackOutput> {
  static constexpr std::pair<PackOutput, const char*> kNames[] = {
      {PackOutput::tokens, "tokens"},        {PackOutput::labels, "labels"},
      {PackOutput::positions, "positions"},  {PackOutput::segment_ids, "segment_ids"},
      {PackOutput::loss_mask, "loss_mask"},  {PackOutput::cu_seqlens, "cu_seqlens"},
      {PackOutput::max_seqlen, "max_seqlen"}};
};

/// For Dataset::pack.
struct PackOptions {
  static constexpr const char* kName = "pack";  ///< in plans

  std::int64_t length = 0;                   ///< tokens of a row
  PackMethod method = PackMethod::best_fit;  ///< the row into which each document goes
  LongDocuments long_documents =
      LongDocuments::split;  ///< what happens to a document that is longer than a row
  /// the fields of a row, in this order
  std::vector<PackOutput> outputs = {PackOutput::tokens, PackOutput::labels, PackOutput::positions,
                                     PackOutput::segment_ids};
  DType dtype = DType::i64;    ///< type of tokens, labels, positions and segment_ids: i32 or i64
  std::int64_t pad = 0;        ///< the token of the padding
  std::int64_t ignore = -100;  ///< the label of tokens that have none, which losses ignore
  /// whether a token's label is the token that follows it; otherwise each token is its own label, and the first one of a
  /// document has none: for models that shift labels themselves, as Hugging Face's do
  bool shift_labels = true;
  /// whether the last token of a document has the first one of the next document in the row as its label
  bool labels_across_documents = false;
  /// a field of the source with an integer for each token, 0 where the token is no label (a prompt, what the user says in a
  /// chat): its label is then `ignore`, and its loss_mask false; without a name all tokens are labels
  std::string label_mask{};
  /// documents of a row that cu_seqlens has room for, by default as many as the fullest row has; data sets that are mixed
  /// need the same number
  std::optional<std::int64_t> max_documents_per_row{};
  /// seed of a random order in which documents are packed, by default their own; epochs shuffle the rows, and each row
  /// keeps its documents
  std::optional<std::uint64_t> seed{};
  std::string field = "tokens";  ///< the field of the source, integers of shape [?]
};

template <class Visitor>
void visit_fields(Visitor& visit, PackOptions& options) {
  visit.required("length", options.length);
  visit("method", options.method);
  visit("long_documents", options.long_documents);
  visit("outputs", options.outputs);
  visit("dtype", options.dtype);
  visit("pad", options.pad);
  visit("ignore", options.ignore);
  visit("shift_labels", options.shift_labels);
  visit("labels_across_documents", options.labels_across_documents);
  visit("label_mask", options.label_mask);
  visit("max_documents_per_row", options.max_documents_per_row);
  visit("seed", options.seed);
  visit("field", options.field);
}

/// The result of pack.
struct PackSummary {
  std::uint64_t rows = 0;       ///< number of rows
  std::uint64_t documents = 0;  ///< documents of the source
  std::uint64_t tokens = 0;     ///< tokens in rows
  std::uint64_t dropped =
      0;  ///< tokens that are in no row, since long_documents is truncate or drop
  /// the largest number of documents in a row, where each part of a split one counts; 0 for wrap without cu_seqlens
  std::uint64_t max_documents_per_row = 0;
  double padding_fraction = 0;  ///< the fraction of all tokens that is padding
};

namespace sequence {

/// A source whose record i is row i. Rows are computed here once, from the lengths alone, by all cores; with best_fit
/// and first_fit in windows of 65,536 documents, so the last row of a window may hold more padding.
///
/// Memory  best_fit, first_fit: two bytes a document that shares a row, two for each such row, 16 for each document that
///         fills rows alone; wrap: one number for every 64 documents.
/// Errors  std::invalid_argument  a length below 1 or above 2^31 - 1, a type other than i32 and i64, no outputs or one
///                                twice, no such field, `wrap` with documents that are not to be split
///         Error                  a document whose length is not known or damaged; a row with more documents than
///                                max_documents_per_row
/// A document that cannot be read, and a token that the type does not hold, are Faults of the rows that they are in.
/// Source  best-fit decreasing: Ding et al., Fewer Truncations Improve Language Modeling (2024), algorithm 1, with one
///         list of rows for each free length instead of a tree.
[[nodiscard]] SourcePtr pack(SourcePtr documents, const PackOptions& options);

/// Of a source that pack() made; none for another.
[[nodiscard]] std::optional<PackSummary> pack_summary(const Source& source);

}  // namespace sequence

}  // namespace penstock
