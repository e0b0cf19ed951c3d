// Replicas on CUDA devices: a stream and an NCCL rank each.
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include <penstock/sync/nccl.hpp>

#include "src/sync/device/cuda_kernels.hpp"
#include "src/sync/nccl/nccl_communicator.hpp"
#include "src/sync/replicas/replica_backend.hpp"

namespace penstock {

namespace {

// The processes' own communicator carries the ticket; from then on the rendezvous knows who died.
std::shared_ptr<Rendezvous> meet(Communicator& processes, double timeout_s) {
  const auto exchange = [&](const std::string& own) {
    std::vector<std::uint8_t> bytes(4096);
    std::copy_n(own.begin(), std::min(own.size(), bytes.size() - 1), bytes.begin());
    processes.broadcast(view_of(bytes), 0);
    return std::string(reinterpret_cast<const char*>(bytes.data()));
  };
  return Rendezvous::through(exchange, processes.rank(), processes.size(),
                             {.timeout_s = timeout_s});
}

class CudaBackend final : public Replicas::Backend {
 public:
  CudaBackend(const std::vector<Device>& devices, const std::shared_ptr<Communicator>& others,
              double timeout) {
    for (const Device& device : devices) sync::require_cuda(device);
    std::shared_ptr<Rendezvous> rendezvous;
    if (others) rendezvous = meet(*others, timeout);
    const std::uint32_t process = others ? others->rank() : 0;
    const std::uint32_t world = others ? others->size() : 1;
    std::string id;
    if (process == 0) id = nccl_unique_id();
    if (rendezvous) {
      if (process == 0) rendezvous->set("nccl id", id);
      id = rendezvous->get("nccl id");
    }
    for (const Device& device : devices)
      streams_.push_back(std::make_unique<device::CudaStream>(device.index));
    // All ranks of a group come at the same time, those of this process too.
    channels_.resize(devices.size());
    std::vector<std::exception_ptr> errors(devices.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t local = 0; local < devices.size(); ++local)
        threads.emplace_back([&, local] {
          try {
            const auto count = static_cast<std::uint32_t>(devices.size());
            channels_[local] = std::make_shared<sync::NcclChannel>(
                sync::NcclChannel::Place{process * count + static_cast<std::uint32_t>(local),
                                         world * count, devices[local].index, timeout, rendezvous},
                id);
          } catch (...) {
            errors[local] = std::current_exception();
          }
        });
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> begin(
      std::shared_ptr<sync::Group> group) override {
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (std::size_t local = 0; local < channels_.size(); ++local)
      communicators.push_back(
          std::make_unique<sync::NcclCommunicator>(channels_[local], group, local));
    return communicators;
  }
  [[nodiscard]] StreamHandle stream(std::size_t local) const noexcept override {
    return streams_[local]->get();
  }
  [[nodiscard]] std::shared_ptr<void> enter(std::size_t local) override {
    return std::make_shared<device::CurrentDevice>(channels_[local]->place().device);
  }
  void finish(std::size_t local) override {
    device::check(cudaStreamSynchronize(streams_[local]->get()));
    channels_[local]->check_health();
  }
  void fail(const std::string& why) noexcept override {
    for (const auto& channel : channels_) channel->abort(why);
  }

 private:
  std::vector<std::unique_ptr<device::CudaStream>> streams_;
  std::vector<std::shared_ptr<sync::NcclChannel>> channels_;
};

}  // namespace

std::unique_ptr<Replicas::Backend> Replicas::Backend::open_cuda(
    const std::vector<Device>& devices, const std::shared_ptr<Communicator>& processes,
    double timeout_s) {
  return std::make_unique<CudaBackend>(devices, processes, timeout_s);
}

}  // namespace penstock
