// sequence/blocks: all documents one behind the other, cut into blocks of one length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace penstock {

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
}  // namespace penstock
