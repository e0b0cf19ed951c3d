// device/dlpack: the structures by which frameworks hand each other tensors without copying.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <penstock/core/export.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

/// DLPack 1.0 with names of our own, so that a program may include dlpack.h as well.
///
/// Source  github.com/dmlc/dlpack, include/dlpack/dlpack.h: a stable binary interface, restated
///         here so that nothing has to be installed for it
namespace PENSTOCK_EXPORT penstock {
namespace dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct Place {
  std::int32_t type;
  std::int32_t id;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Place device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

/// DLManagedTensor; in Python in a capsule named "dltensor".
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::uint64_t kIsCopied = 2;

/// DLManagedTensorVersioned; in Python in a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

/// Shape and strides of a dense tensor, which a `Tensor` points at.
struct Extents {
  std::array<std::int64_t, Shape::kMaxRank> shape{};
  std::array<std::int64_t, Shape::kMaxRank> strides{};
};

[[nodiscard]] DataType type_of(DType dtype);
/// All host devices are the one CPU.
[[nodiscard]] Place place_of(const Device& device);
/// `view`, which lies on `device`; its extents are written to `extents`, which must stay.
[[nodiscard]] Tensor describe(const TensorView& view, const Device& device, Extents& extents);
/// numpy's and the CUDA array interface's code, such as "<f4" or "|u1"; bf16 has none: empty.
[[nodiscard]] std::string typestr_of(DType dtype);

}  // namespace dlpack
}  // namespace penstock
