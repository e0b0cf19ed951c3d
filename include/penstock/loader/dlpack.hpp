// loader/dlpack: a batch's tensors for other libraries, without a copy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/loader/step.hpp>

/// DLPack's own structure (dlpack.h), which the libraries that take it define.
struct DLManagedTensor;

namespace penstock {

/// A field as DLPack's managed tensor, as torch's at::fromDLPack(), tvm and others take it.
///
/// Owns    the batch's slot until the caller calls its deleter, which may be on any thread
/// Stream  as operator[]: on a CUDA device call wait_on(s) before the tensor is read on s
/// Errors  std::invalid_argument  there is no such field
[[nodiscard]] DLManagedTensor* to_dlpack(const DeviceBatch& batch, std::string_view field);

/// What numpy's __array_interface__ and __cuda_array_interface__ (version 3) say of a tensor; with
/// it a binding can write that dictionary.
struct ArrayInterface {
  std::uintptr_t data = 0;
  std::vector<std::int64_t> shape;
  std::string typestr;  ///< "<f4", "|u1" and so on; bf16 has none, and is empty
  int version = 3;
};
/// Stream  as operator[]
/// Errors  std::invalid_argument  there is no such field
[[nodiscard]] ArrayInterface array_interface(const DeviceBatch& batch, std::string_view field);

}  // namespace penstock
