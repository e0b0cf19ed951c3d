#include "src/sync/device/device_memory.hpp"

#include <cstring>

#include "src/sync/device/cuda_support.hpp"

namespace penstock::sync {

namespace {

bool on_host(const Device& device) { return device.kind == Device::Kind::host; }

TensorView bytes_at(std::byte* data, std::size_t count) {
  return {data, DType::u8, Shape{static_cast<std::int64_t>(count)}};
}

}  // namespace

std::shared_ptr<std::byte> allocate_on(const Device& device, std::size_t bytes) {
  if (!on_host(device)) return cuda_allocate(device.index, bytes);
  const std::shared_ptr<std::byte[]> memory(new std::byte[bytes]());
  return {memory, memory.get()};
}

void copy_to(const Device& device, std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  if (on_host(device))
    std::memcpy(to, from.data(), from.size());
  else
    cuda_copy(device.index, to, from.data(), from.size());
}

void copy_from(const Device& device, std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return;
  if (on_host(device))
    std::memcpy(to.data(), from, to.size());
  else
    cuda_copy(device.index, to.data(), from, to.size());
}

void move_on(const Device& device, const std::byte* from, DType from_dtype, std::byte* to,
             DType to_dtype, std::size_t count, const Move& how, StreamHandle stream) {
  if (on_host(device))
    move_elements(from, from_dtype, to, to_dtype, count, how);
  else
    cuda_move_elements(device.index, from, from_dtype, to, to_dtype, count, how, stream);
}

void synchronize(const Device& device, StreamHandle stream) {
  if (!on_host(device)) cuda_synchronize(device.index, stream);
}

void gather_bytes(Communicator& communicator, std::span<const std::byte> in,
                  std::span<std::byte> out) {
  const Device& device = communicator.device();
  const auto mine = allocate_on(device, in.size());
  const auto all = allocate_on(device, out.size());
  copy_to(device, mine.get(), in);
  communicator.all_gather(bytes_at(mine.get(), in.size()), bytes_at(all.get(), out.size()));
  synchronize(device, nullptr);
  communicator.check();  // an aborted collective leaves garbage
  copy_from(device, out, all.get());
}

}  // namespace penstock::sync
