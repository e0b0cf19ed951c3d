// Stands in for the CUDA model in a build without CUDA, whose replicas are refused before it.
#include "train_classifier_model.hpp"

namespace classifier {

std::unique_ptr<Model> open_cuda_model(const penstock::ReplicaContext& replica, std::size_t) {
  constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
  throw penstock::CudaError(kErrorNoDevice, replica.device().to_string() +
                                                ": this program was built without CUDA; build it "
                                                "with nvcc, or use host devices");
}

}  // namespace classifier
