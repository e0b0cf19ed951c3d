// source/tokens/megatron_index: the .idx files of Megatron-LM.
//
// Source  megatron/core/datasets/indexed_dataset.py, version 1 of the format.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <penstock/core/tensor.hpp>

#include "src/source/tokens/documents.hpp"

namespace penstock::source {

struct MegatronIndex {
  DType dtype;
  std::unique_ptr<const DocumentTable> table;  ///< into the bytes
};

/// `owner` keeps the bytes, which need not be aligned.
///
/// Errors  Error  they are no index, are cut short, or say a type that is no integer; messages begin with `path`
[[nodiscard]] MegatronIndex parse_megatron_index(std::span<const std::byte> bytes,
                                                 std::shared_ptr<const void> owner,
                                                 const std::string& path);

}  // namespace penstock::source
