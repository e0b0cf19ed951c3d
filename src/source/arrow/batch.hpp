// source/arrow/batch: where the buffers of a batch's columns are, from its metadata alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/source/arrow/message.hpp"

namespace penstock::source {

/// A field's part of a batch.
struct ArrowNode {
  std::uint64_t length = 0;
  std::uint64_t null_count = 0;
  std::uint32_t first_buffer = 0;
  std::uint32_t buffers = 0;
};

struct ArrowBatch {
  std::uint64_t rows = 0;
  ArrowCompression compression = ArrowCompression::none;
  ArrowRange body;          ///< in the file
  std::uint32_t first = 0;  ///< the field of nodes[0]: 0, or the one with the dictionary
  /// Of each field from `first` to its end. What is in a dictionary's values is in the dictionary's batches only.
  std::vector<std::optional<ArrowNode>> nodes;
  std::vector<ArrowRange> buffers;  ///< within the body

  [[nodiscard]] const ArrowNode* find(std::uint32_t field) const noexcept {
    if (field < first || field - first >= nodes.size() || !nodes[field - first]) return nullptr;
    return &*nodes[field - first];
  }
};

/// Reads the metadata of a record batch; with `dictionary_of`, of a batch of that field's dictionary. `bytes` are those of
/// block.metadata. Each buffer lies within the body; its size is checked when a column is opened.
///
/// Errors  a fault  it is damaged, is not of these fields, or has a type whose number of buffers is not known
[[nodiscard]] Result<ArrowBatch> read_arrow_batch(
    const ArrowFields& fields, const ArrowBlock& block, std::span<const std::byte> bytes,
    const std::string& file, std::optional<std::uint32_t> dictionary_of = std::nullopt);

}  // namespace penstock::source
