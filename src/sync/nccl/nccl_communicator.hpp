// sync/nccl/nccl_communicator: collectives between CUDA devices.
#pragma once

#include <cstddef>
#include <memory>

#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/group.hpp"
#include "src/sync/nccl/nccl_channel.hpp"

namespace penstock::sync {

/// With a group, the replicas of this process compare their calls before NCCL sees them.
class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<NcclChannel> channel,
                            std::shared_ptr<Group> group = nullptr, std::size_t member = 0);
  ~NcclCommunicator() override;

  [[nodiscard]] std::unique_ptr<Communicator> duplicate() override;
  void check() override;
  void leave(const std::string& why) noexcept override;

 private:
  void perform(const Collective& call, const std::byte* in, std::byte* out,
               StreamHandle stream) override;
  void queue(const Collective& call, const std::byte* in, std::byte* out, StreamHandle stream);
  ncclResult_t start(const Collective& call, ncclComm_t comm, const std::byte* in, std::byte* out,
                     cudaStream_t stream);
  void all_reduce_halves(const Collective& call, std::byte* data, cudaStream_t stream);
  [[nodiscard]] std::byte* scratch(std::size_t bytes, cudaStream_t stream);
  void used_scratch(cudaStream_t stream);
  void wait_for_scratch();

  std::shared_ptr<NcclChannel> channel_;
  std::shared_ptr<Group> group_;
  std::size_t member_;
  int exceptions_;
  std::unique_ptr<device::CudaEvent> scratch_used_;
  std::unique_ptr<device::DeviceMemory> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace penstock::sync
