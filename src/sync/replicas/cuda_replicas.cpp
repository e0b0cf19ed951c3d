// Replicas on CUDA devices: a stream and an NCCL rank each.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <penstock/sync/communicator.hpp>

#include "src/core/start_thread.hpp"
#include "src/sync/device/cuda_kernels.hpp"
#include "src/sync/nccl/nccl_communicator.hpp"
#include "src/sync/replicas/replica_backend.hpp"

namespace penstock {

namespace {

// The processes' own communicator carries the ticket; from then on the rendezvous knows which process died.
std::shared_ptr<Rendezvous> meet(Communicator& processes, double timeout_s) {
  const auto exchange = [&](const std::string& own) {
    std::vector<std::uint8_t> bytes(4096);
    std::copy_n(own.begin(), std::min(own.size(), bytes.size() - 1), bytes.begin());
    processes.broadcast(view_of(bytes), 0);
    return std::string(reinterpret_cast<const char*>(bytes.data()));
  };
  return Rendezvous::via_exchange(exchange, processes.rank(), processes.size(),
                                  {.timeout = Seconds(timeout_s)});
}

// NCCL takes one rank a GPU.
void require_different(const std::vector<Device>& devices) {
  for (const Device& device : devices)
    if (std::ranges::count(devices, device) > 1)
      throw std::invalid_argument(
          fmt::format("{} is named more than once: NCCL needs a GPU for every replica; name each "
                      "once, or take host devices",
                      device.to_string()));
}

class CudaBackend final : public Replicas::Backend {
 public:
  CudaBackend(const std::vector<Device>& devices, const std::shared_ptr<Communicator>& others,
              double timeout)
      : devices_(devices), timeout_s_(timeout) {
    for (const Device& device : devices) sync::require_cuda(device);
    require_different(devices);
    if (others) {
      rendezvous_ = meet(*others, timeout);
      process_ = others->rank();
      world_ = others->size();
    }
    for (const Device& device : devices)
      streams_.push_back(std::make_unique<device::CudaStream>(device.index));
    connect();
  }

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> begin(
      std::shared_ptr<sync::Group> group) override {
    if (failed_) {
      if (rendezvous_)
        throw SyncError(
            "an earlier run() ended with an exception, and the other processes' channels with it: "
            "start all processes "
            "again");
      channels_.clear();
      connect();
      failed_ = false;
    }
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
    failed_ = true;
    for (const auto& channel : channels_)
      channel->abort(std::make_exception_ptr(sync::ReplicaFailed(why)));
  }

 private:
  // All ranks of a group come at the same time, those of this process too.
  void connect() {
    std::string id;
    if (process_ == 0) id = nccl_unique_id();
    if (rendezvous_) {
      if (process_ == 0) rendezvous_->set("nccl id", id);
      id = rendezvous_->get("nccl id");
    }
    const auto count = static_cast<std::uint32_t>(devices_.size());
    channels_.resize(count);
    std::vector<std::exception_ptr> errors(count);
    {
      // NCCL waits for all of them: none begins before it is known that all can.
      std::promise<bool> all_started;
      const std::shared_future<bool> go = all_started.get_future().share();
      std::vector<std::jthread> threads;
      for (std::uint32_t local = 0; local < count; ++local) try {
          threads.push_back(core::start_thread("a replica", [&, go, local] {
            if (!go.get()) return;
            try {
              channels_[local] = std::make_shared<sync::NcclChannel>(
                  sync::NcclChannel::Place{process_ * count + local, world_ * count,
                                           devices_[local].index, timeout_s_, rendezvous_},
                  id);
            } catch (...) {
              errors[local] = std::current_exception();
            }
          }));
        } catch (...) {
          all_started.set_value(false);
          throw;
        }
      all_started.set_value(true);
    }
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
  }

  std::vector<Device> devices_;
  double timeout_s_;
  std::shared_ptr<Rendezvous> rendezvous_;
  std::uint32_t process_ = 0;
  std::uint32_t world_ = 1;
  std::vector<std::unique_ptr<device::CudaStream>> streams_;
  std::vector<std::shared_ptr<sync::NcclChannel>> channels_;
  std::atomic<bool> failed_{false};
};

}  // namespace

std::unique_ptr<Replicas::Backend> Replicas::Backend::open_cuda(
    const std::vector<Device>& devices, const std::shared_ptr<Communicator>& processes,
    double timeout_s) {
  return std::make_unique<CudaBackend>(devices, processes, timeout_s);
}

}  // namespace penstock
