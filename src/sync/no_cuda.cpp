// Stands in for the CUDA side in a build without CUDA, or without NCCL's header.
#include <penstock/core/error.hpp>
#include <penstock/sync/communicator.hpp>

#include "src/sync/device/cuda_support.hpp"
#include "src/sync/gradients/gradient_engine.hpp"
#include "src/sync/replicas/replica_backend.hpp"

namespace penstock {

namespace {

[[noreturn]] void refuse() {
  constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
  throw CudaError(kErrorNoDevice,
                  "replicas on CUDA devices cannot be used: penstock was built without CUDA or "
                  "without nccl.h; build it where both are, or use host devices");
}

}  // namespace

std::unique_ptr<Replicas::Backend> Replicas::Backend::open_cuda(
    const std::vector<Device>&, const std::shared_ptr<Communicator>&, double) {
  refuse();
}

std::string nccl_unique_id() { refuse(); }
std::unique_ptr<Communicator> nccl_communicator(const std::string&, std::uint32_t, std::uint32_t,
                                                const Device&, const NcclOptions&) {
  refuse();
}
std::unique_ptr<Communicator> nccl_communicator(std::shared_ptr<Rendezvous>, const Device&,
                                                const NcclOptions&) {
  refuse();
}

namespace sync {

std::unique_ptr<GradientEngine> GradientEngine::open_cuda(GradientExchange&) { refuse(); }
std::shared_ptr<std::byte> cuda_allocate(int, std::size_t) { refuse(); }
void cuda_copy(int, std::byte*, const std::byte*, std::size_t) { refuse(); }
void cuda_move_elements(int, const std::byte*, DType, std::byte*, DType, std::size_t, const Move&,
                        StreamHandle) {
  refuse();
}
void cuda_synchronize(int, StreamHandle) { refuse(); }

}  // namespace sync
}  // namespace penstock
