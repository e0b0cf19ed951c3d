#include <array>
#include <memory>

#include <penstock/loader/dlpack.hpp>

extern "C" {
// Source  github.com/dmlc/dlpack, include/dlpack/dlpack.h: a stable binary interface, restated here
//         so that nothing has to be installed for it.
struct DLTensor {
  void* data;
  struct {
    std::int32_t device_type;
    std::int32_t device_id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
}

namespace penstock {

namespace {

constexpr std::int32_t kCpu = 1;
constexpr std::int32_t kCuda = 2;

std::uint8_t type_code(DType dtype) {
  constexpr std::uint8_t kInt = 0;
  constexpr std::uint8_t kUInt = 1;
  constexpr std::uint8_t kFloat = 2;
  constexpr std::uint8_t kBfloat = 4;
  if (dtype == DType::bf16) return kBfloat;
  switch (name_of(dtype).front()) {
    case 'u':
      return kUInt;
    case 'i':
      return kInt;
    default:
      return kFloat;
  }
}

// Lives as long as the managed tensor does.
struct Exported {
  explicit Exported(const DeviceBatch& of) : batch(of) {}
  DeviceBatch batch;
  std::array<std::int64_t, Shape::kMaxRank> shape{};
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  DLManagedTensor managed{};
};

}  // namespace

DLManagedTensor* to_dlpack(const DeviceBatch& batch, std::string_view field) {
  const TensorView tensor = batch[field];
  const Shape& shape = tensor.shape();
  auto exported = std::make_unique<Exported>(batch);
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    exported->shape[axis] = shape[axis];
    exported->strides[axis] = stride;
    stride *= shape[axis];
  }
  const Device& device = batch.device();
  const bool on_host = device.kind == Device::Kind::host;  // all host devices are the one CPU
  DLTensor& described = exported->managed.dl_tensor;
  described.data = tensor.raw();
  described.device = {on_host ? kCpu : kCuda, on_host ? 0 : device.index};
  described.ndim = static_cast<std::int32_t>(shape.rank());
  described.dtype = {type_code(tensor.dtype()),
                     static_cast<std::uint8_t>(8 * size_of(tensor.dtype())), 1};
  described.shape = exported->shape.data();
  described.strides = exported->strides.data();
  exported->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Exported*>(self->manager_ctx);
  };
  exported->managed.manager_ctx = exported.get();
  return &exported.release()->managed;
}

ArrayInterface array_interface(const DeviceBatch& batch, std::string_view field) {
  const TensorView tensor = batch[field];
  const auto extents = tensor.shape().extents();
  ArrayInterface described{.data = reinterpret_cast<std::uintptr_t>(tensor.raw()),
                           .shape = {extents.begin(), extents.end()},
                           .typestr = {}};
  if (tensor.byte_size() == 0) described.data = 0;
  const std::size_t size = size_of(tensor.dtype());
  if (tensor.dtype() != DType::bf16)
    described.typestr = (size == 1 ? "|" : "<") + std::string(1, name_of(tensor.dtype()).front()) +
                        std::to_string(size);
  return described;
}

}  // namespace penstock
