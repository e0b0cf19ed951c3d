// The structures of DLPack 1.0, by which frameworks hand each other tensors without copying.
//
// Source  github.com/dmlc/dlpack, include/dlpack/dlpack.h: a stable binary interface, restated here
//         so that nothing has to be installed for it.
#pragma once

#include <cstdint>

namespace penstock::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2 };
enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4 };

struct Device {
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
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

/// In a capsule named "dltensor".
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

/// In a capsule named "dltensor_versioned".
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace penstock::python::dlpack
