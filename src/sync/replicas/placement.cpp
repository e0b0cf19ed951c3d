#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/sync/gradient_sync.hpp>

#include "src/sync/device/device_memory.hpp"
#include "src/sync/gradients/buckets.hpp"
#include "src/sync/gradients/gradient_list.hpp"

namespace penstock {

namespace {

// Tensors of one type that travel together through one buffer.
class Packet {
 public:
  Packet(const Device& device, DType dtype) : device_(device), dtype_(dtype) {}

  void add(const TensorView& tensor) {
    tensors_.push_back(tensor);
    elements_ += static_cast<std::size_t>(tensor.shape().elements());
  }
  /// One tensor alone travels where it is.
  [[nodiscard]] TensorView pack(StreamHandle stream) {
    if (tensors_.size() == 1) return tensors_[0];
    if (!memory_) memory_ = sync::allocate_on(device_, elements_ * size_of(dtype_));
    for_each([&](const TensorView& tensor, std::byte* place, std::size_t count) {
      sync::move_on(device_, tensor.raw(), dtype_, place, dtype_, count, {}, stream);
    });
    return {memory_.get(), dtype_, Shape{static_cast<std::int64_t>(elements_)}};
  }
  void unpack(StreamHandle stream) {
    if (tensors_.size() == 1) return;
    for_each([&](const TensorView& tensor, std::byte* place, std::size_t count) {
      sync::move_on(device_, place, dtype_, tensor.raw(), dtype_, count, {}, stream);
    });
  }

 private:
  template <class F>
  void for_each(const F& body) {
    std::size_t at = 0;
    for (const TensorView& tensor : tensors_) {
      const auto count = static_cast<std::size_t>(tensor.shape().elements());
      body(tensor, memory_.get() + at * size_of(dtype_), count);
      at += count;
    }
  }

  Device device_;
  DType dtype_;
  std::vector<TensorView> tensors_;
  std::size_t elements_ = 0;
  std::shared_ptr<std::byte> memory_;
};

// A packet with a root.
struct Parcel {
  std::uint32_t root;
  DType dtype;
  Packet packet;
};

void add_to(std::vector<Parcel>& parcels, const Device& device, std::uint32_t root,
            const TensorView& tensor) {
  for (Parcel& parcel : parcels)
    if (parcel.root == root && parcel.dtype == tensor.dtype()) return parcel.packet.add(tensor);
  parcels.push_back({root, tensor.dtype(), Packet(device, tensor.dtype())});
  parcels.back().packet.add(tensor);
}

void require_pairs(const std::vector<Gradient>& variables, const std::vector<Gradient>& gradients) {
  if (variables.size() != gradients.size())
    throw std::invalid_argument(fmt::format("one gradient for each variable, found {} and {}",
                                            gradients.size(), variables.size()));
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (variables[i].data.dtype() != gradients[i].data.dtype() ||
        variables[i].data.shape().elements() != gradients[i].data.shape().elements())
      throw std::invalid_argument(
          fmt::format("variable {}, '{}', is {} [{}], its gradient {} [{}]", i, variables[i].name,
                      name_of(variables[i].data.dtype()), variables[i].data.shape().elements(),
                      name_of(gradients[i].data.dtype()), gradients[i].data.shape().elements()));
}

}  // namespace

class ShardedVariables::Impl {
 public:
  Impl(Communicator& communicator, const std::vector<Gradient>& variables,
       const std::vector<Gradient>& gradients)
      : communicator_(communicator.duplicate()) {
    require_pairs(variables, gradients);
    sync::require_equal_lists(*communicator_, sync::lines_of(variables), "variable");
    std::vector<std::size_t> bytes;
    for (const Gradient& variable : variables) bytes.push_back(variable.data.byte_size());
    owners = sync::owners_by_bytes(bytes, communicator_->size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (owners[i] == communicator_->rank()) owned.push_back(i);
      add_to(gradients_, communicator_->device(), owners[i], gradients[i].data);
      add_to(variables_, communicator_->device(), owners[i], variables[i].data);
    }
  }

  void reduce(ReduceOp op, StreamHandle stream) {
    for (Parcel& parcel : gradients_) {
      communicator_->reduce(parcel.packet.pack(stream), parcel.root, op, stream);
      if (parcel.root == communicator_->rank()) parcel.packet.unpack(stream);
    }
  }

  void broadcast(StreamHandle stream) {
    for (Parcel& parcel : variables_) {
      communicator_->broadcast(parcel.packet.pack(stream), parcel.root, stream);
      if (parcel.root != communicator_->rank()) parcel.packet.unpack(stream);
    }
  }

  std::vector<std::uint32_t> owners;
  std::vector<std::size_t> owned;

 private:
  std::unique_ptr<Communicator> communicator_;
  std::vector<Parcel> gradients_;
  std::vector<Parcel> variables_;
};

ShardedVariables::ShardedVariables(Communicator& communicator, std::vector<Gradient> variables,
                                   std::vector<Gradient> gradients)
    : impl_(std::make_unique<Impl>(communicator, variables, gradients)) {}
ShardedVariables::~ShardedVariables() = default;

const std::vector<std::uint32_t>& ShardedVariables::owners() const noexcept {
  return impl_->owners;
}
const std::vector<std::size_t>& ShardedVariables::owned() const noexcept { return impl_->owned; }
void ShardedVariables::reduce(ReduceOp op, StreamHandle stream) { impl_->reduce(op, stream); }
void ShardedVariables::broadcast(StreamHandle stream) { impl_->broadcast(stream); }

void broadcast_state(Communicator& communicator, const std::vector<Gradient>& state,
                     StreamHandle stream) {
  std::vector<Parcel> parcels;
  for (const Gradient& tensor : state) add_to(parcels, communicator.device(), 0, tensor.data);
  for (Parcel& parcel : parcels) {
    communicator.broadcast(parcel.packet.pack(stream), 0, stream);
    if (communicator.rank() != 0) parcel.packet.unpack(stream);
    // The packet's memory goes with this call.
    sync::synchronize(communicator.device(), stream);
    communicator.check();
  }
}

}  // namespace penstock
