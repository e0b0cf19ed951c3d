// testing/simulated_nccl/arithmetic: NCCL's element types and operations.
#pragma once

#include <cstddef>

#include <nccl.h>

namespace penstock::simulated_nccl {

/// 0: no such type.
[[nodiscard]] std::size_t size_of(ncclDataType_t type);
[[nodiscard]] const char* name_of(ncclDataType_t type);
/// Null: no such operation.
[[nodiscard]] const char* name_of(ncclRedOp_t op);

/// Ranks' values are put together one after another: begin() with the first, then add() the others, then end(). Every
/// result is rounded to the type. The mean is of values that are divided before they are added up, where the type has
/// fractions, and otherwise the sum divided, as in NCCL.
struct Reduction {
  ncclDataType_t type;
  ncclRedOp_t op;
  int ranks;

  void begin(std::byte* result, std::size_t count) const;
  void add(std::byte* result, const std::byte* next, std::size_t count) const;
  void end(std::byte* result, std::size_t count) const;
};

}  // namespace penstock::simulated_nccl
