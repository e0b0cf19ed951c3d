// source/tokens: texts as numbers, a document a record: flat files, Megatron's, or in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/source/arrays.hpp>
#include <penstock/source/shards.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

/// For source::token_files.
struct TokenFileOptions {
  /// Of a raw file: any integer type. None: u16, as nanoGPT writes them. A .npy file and one with llm.c's header say
  /// theirs; if given, it is checked.
  std::optional<DType> dtype{};
  /// The token that ends a document, such as 50256 for GPT-2; it belongs to the document. The files are read once, by all
  /// cores, to find them. None: each file is one document.
  std::optional<std::uint64_t> document_end{};
  std::uint64_t offset = 0;  ///< where the tokens of a raw file begin, in bytes
  /// Where it is kept where the documents of a file end: 4 bytes a document, or 5 from 2^32 tokens on; while it is made,
  /// 20 more. One that was made with another document_end, type or offset is replaced.
  IndexOptions index{};
};

template <class Visitor>
void visit_fields(Visitor& visit, TokenFileOptions& options) {
  visit("dtype", options.dtype);
  visit("document_end", options.document_end);
  visit("offset", options.offset);
}

namespace source {

/// Files of tokens that lie one behind the other: raw (nanoGPT's train.bin), .npy of one dimension, or with llm.c's
/// header of 1,024 bytes (both its versions: u16 and u32); each file is known by its first bytes. A record is a document,
/// and a view into the mapped file. A folder stands for its *.bin and *.npy files.
///
/// A file must not shrink while it is mapped, as with source::arrays.
///
/// Shapes  tokens, of the files' type, [?].
/// Errors  std::invalid_argument  no integer type; an offset that is no multiple of its size, or into a file with a
///                                header; a document_end that the type cannot hold
///         Error                  a file cannot be opened, is cut short, holds another type than given or than the first
///                                file, or part of a token at its end
[[nodiscard]] SourcePtr token_files(const ShardPaths& files, const TokenFileOptions& options = {});

/// Indexed data sets of Megatron-LM and NeMo: for each path, `path.bin` has the tokens and `path.idx` says where each
/// sequence lies. A record is a sequence (a document, unless it was preprocessed with --split-sentences), and a view into
/// the mapped file. The path may end in .bin or .idx; a folder stands for its *.idx files.
///
/// Source  megatron/core/datasets/indexed_dataset.py, version 1 of the format.
/// Shapes  tokens, of the files' type, [?].
/// Errors  std::invalid_argument  no path
///         Error                  a file cannot be opened; an index that is none, is cut short, or has a type that is no
///                                integer, or another than the first
/// A sequence that lies beyond its file is a Fault of that record.
[[nodiscard]] SourcePtr megatron(const ShardPaths& prefixes);

/// Documents in memory; nothing is copied. Document i has the elements offsets[i] to offsets[i+1] of `values`, whose rows
/// are single numbers; its field has their name.
///
/// Shapes  of the values' type, [?].
/// Errors  std::invalid_argument  no offsets, offsets that fall or do not begin at 0, or end beyond the values; values
///                                that are no single numbers
[[nodiscard]] SourcePtr documents(Column values, std::vector<std::uint64_t> offsets);

}  // namespace source
}  // namespace penstock
