// source/tokens: tokens of texts, a document a record: flat files, Megatron's, or in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/source/arrays.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>

namespace PENSTOCK_EXPORT penstock {

/// For source::token_files.
struct TokenFileOptions {
  /// any integer type, of raw files; by default u16, as nanoGPT writes them; a .npy file and one with llm.c's header have
  /// theirs, which is compared with it
  std::optional<DType> dtype{};
  /// the token that ends a document, such as 50256 for GPT-2, and belongs to it; the files are read once, by all cores, to
  /// find them; by default each file is one document
  std::optional<std::uint64_t> document_end{};
  std::uint64_t offset = 0;  ///< bytes before the tokens of a raw file
  /// where the ends of documents are kept
  IndexOptions index{};
};

template <class Visitor>
void visit_fields(Visitor& visit, TokenFileOptions& options) {
  visit("dtype", options.dtype);
  visit("document_end", options.document_end);
  visit("offset", options.offset);
  visit.object("index", options.index);
}

namespace source {

/// Documents of token files: raw (nanoGPT's train.bin), .npy of one dimension, or with llm.c's header of 1,024 bytes (both
/// of its versions: u16 and u32); the first bytes of a file decide. A record is a document, and a view into the mapped file.
/// A folder stands for its *.bin and *.npy files. Go on with blocks or pack.
///
/// An index keeps the ends of documents; one that was made with another document_end, dtype or offset is replaced. A file
/// must not become shorter while it is mapped, as in arrays.
///
/// Shapes  tokens, of the files' type, [?].
/// Units   4 bytes a document in the index, or 5 from 2^32 tokens on; 20 more while it is made
/// Errors  std::invalid_argument  no integer type; an offset that is no multiple of its size, or into a file with a header;
///                                a document_end that the type cannot have
///         Error                  a file cannot be opened, is cut short, has another type than `dtype` or the first file,
///                                or a part of a token at its end
[[nodiscard]] SourcePtr token_files(const ShardPaths& files, const TokenFileOptions& options = {});

/// Sequences of Megatron-LM's and NeMo's indexed data sets: for each path, `path.bin` has the tokens, and `path.idx` has
/// the place of each sequence. A record is a sequence, which is a document unless it was preprocessed with
/// --split-sentences, and a view into the mapped file. A path may end in .bin or .idx; a folder stands for its *.idx files.
/// Go on with pack or blocks.
///
/// Source  megatron/core/datasets/indexed_dataset.py, version 1 of the format
/// Shapes  tokens, of the files' type, [?].
/// Errors  std::invalid_argument  no path
///         Error                  a file cannot be opened; an index is of another kind, is cut short, or has a type that is
///                                no integer, or another than the first
/// Faults  its sequence is beyond the end of its file
[[nodiscard]] SourcePtr megatron(const ShardPaths& prefixes);

/// Documents in memory: document i has the elements offsets[i] to offsets[i + 1] of `tokens`, as Arrow stores lists. The
/// rows of `tokens` are single numbers. Nothing is copied, so do not change the tokens meanwhile.
///
/// Shapes  a field with the name of `tokens`, of their type, [?]
/// Errors  std::invalid_argument  no offsets; offsets that fall, do not begin at 0, or end beyond the tokens; rows that are
///                                no single numbers
[[nodiscard]] SourcePtr documents(Column tokens, std::vector<std::uint64_t> offsets);

}  // namespace source
}  // namespace penstock
