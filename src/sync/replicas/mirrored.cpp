#include <stdexcept>

#include <fmt/format.h>

#include <penstock/sync/replicas.hpp>

#include "src/sync/device/device_memory.hpp"

namespace penstock {

namespace {

sync::Move move_of(MirroredBuffer::Change change) {
  return {.factor = change == MirroredBuffer::Change::subtract ? -1.0 : 1.0,
          .add = change != MirroredBuffer::Change::assign};
}

}  // namespace

MirroredBuffer::MirroredBuffer(const Replicas& replicas, DType dtype, std::size_t count,
                               Aggregation aggregation)
    : replicas_(&replicas),
      dtype_(dtype),
      count_(count),
      aggregation_(aggregation),
      scratch_(replicas.local_size()) {
  for (const Device& device : replicas.devices())
    copies_.push_back(sync::allocate_on(device, count * size_of(dtype)));
}

TensorView MirroredBuffer::get(std::size_t local) const {
  return {copies_.at(local).get(), dtype_, Shape{static_cast<std::int64_t>(count_)}};
}

void MirroredBuffer::change(Change change, const std::byte* value) {
  if (replicas_->running())
    throw std::logic_error(
        "a mirrored variable was assigned to from outside while run() is in progress: give the "
        "replica's context, and an aggregation");
  const std::size_t bytes = count_ * size_of(dtype_);
  for (std::size_t local = 0; local < copies_.size(); ++local) {
    const Device& device = replicas_->devices()[local];
    const auto here = sync::allocate_on(device, bytes);
    sync::copy_to(device, here.get(), {value, bytes});
    sync::move_on(device, here.get(), dtype_, copies_[local].get(), dtype_, count_, move_of(change),
                  nullptr);
    sync::synchronize(device, nullptr);
  }
}

void MirroredBuffer::change(ReplicaContext& replica, Change change, const std::byte* value) {
  if (aggregation_ == Aggregation::none)
    throw std::logic_error(fmt::format(
        "replica {} assigned to a mirrored variable whose replicas' values may differ: declare it "
        "with the aggregation mean, sum or first, or assign from outside of run()",
        replica.id()));
  const Device& device = replica.device();
  const std::size_t local = replica.local();
  if (!scratch_[local]) scratch_[local] = sync::allocate_on(device, count_ * size_of(dtype_));
  std::byte* const agreed = scratch_[local].get();
  sync::move_on(device, value, dtype_, agreed, dtype_, count_, {}, replica.stream());
  const TensorView view(agreed, dtype_, Shape{static_cast<std::int64_t>(count_)});
  if (aggregation_ == Aggregation::first)
    replica.communicator().broadcast(view, 0, replica.stream());
  else
    replica.communicator().all_reduce(
        view, aggregation_ == Aggregation::mean ? ReduceOp::mean : ReduceOp::sum, replica.stream());
  sync::move_on(device, agreed, dtype_, copies_[local].get(), dtype_, count_, move_of(change),
                replica.stream());
}

void MirroredBuffer::read(std::size_t local, std::byte* to) const {
  sync::copy_from(replicas_->devices().at(local), {to, count_ * size_of(dtype_)},
                  copies_.at(local).get());
}

}  // namespace penstock
