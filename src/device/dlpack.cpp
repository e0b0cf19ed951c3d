#include <penstock/device/dlpack.hpp>

namespace penstock::dlpack {

DataType type_of(DType dtype) {
  const char kind = name_of(dtype).front();
  TypeCode code = kFloat;
  if (dtype == DType::bf16) code = kBfloat;
  if (dtype == DType::boolean) code = kBool;
  if (kind == 'u') code = kUInt;
  if (kind == 'i') code = kInt;
  return {code, static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

Place place_of(const Device& device) {
  if (device.kind == Device::Kind::host) return {kCpu, 0};
  return {kCuda, device.index};
}

Tensor describe(const TensorView& view, const Device& device, Extents& extents) {
  const Shape& shape = view.shape();
  std::int64_t stride = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    extents.shape[axis] = shape[axis];
    extents.strides[axis] = stride;
    stride *= shape[axis];
  }
  return {.data = view.raw(),
          .device = place_of(device),
          .ndim = static_cast<std::int32_t>(shape.rank()),
          .dtype = type_of(view.dtype()),
          .shape = extents.shape.data(),
          .strides = extents.strides.data(),
          .byte_offset = 0};
}

std::string typestr_of(DType dtype) {
  if (dtype == DType::bf16) return {};
  const std::size_t size = size_of(dtype);
  return (size == 1 ? "|" : "<") + std::string(1, name_of(dtype).front()) + std::to_string(size);
}

}  // namespace penstock::dlpack
