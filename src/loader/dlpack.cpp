#include <memory>

#include <penstock/device/dlpack.hpp>
#include <penstock/loader/loader.hpp>

namespace penstock {

namespace {

// Lives as long as the managed tensor does.
struct Exported {
  explicit Exported(const DeviceBatch& of) : batch(of.without_names()) {}
  DeviceBatch batch;
  dlpack::Extents extents;
  dlpack::ManagedTensor managed{};
};

}  // namespace

DLManagedTensor* to_dlpack(const DeviceBatch& batch, std::string_view field) {
  const TensorView tensor = batch[field];
  auto exported = std::make_unique<Exported>(batch);
  exported->managed = {
      .tensor = dlpack::describe(tensor, batch.device(), exported->extents),
      .context = exported.get(),
      .deleter = [](dlpack::ManagedTensor* self) { delete static_cast<Exported*>(self->context); }};
  // The same structure as DLPack's own DLManagedTensor.
  return reinterpret_cast<DLManagedTensor*>(&exported.release()->managed);
}

ArrayInterface array_interface(const DeviceBatch& batch, std::string_view field) {
  const TensorView tensor = batch[field];
  const auto extents = tensor.shape().extents();
  const bool empty = tensor.byte_size() == 0;
  return {.data = empty ? 0 : reinterpret_cast<std::uintptr_t>(tensor.raw()),
          .shape = {extents.begin(), extents.end()},
          .typestr = dlpack::typestr_of(tensor.dtype())};
}

}  // namespace penstock
