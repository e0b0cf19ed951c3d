// The main of tests that run on the simulated devices: every test with PENSTOCK_SIMULATED_SEEDS seeds (1), beginning with
// PENSTOCK_SIMULATED_SEED. A failure names its seed.
#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"

namespace {

namespace sim = penstock::simulated_cuda;

class Seeds final : public testing::EmptyTestEventListener {
 public:
  void OnTestIterationStart(const testing::UnitTest&, int iteration) override {
    const std::uint64_t seed = first_ + static_cast<std::uint64_t>(iteration);
    sim::set_seed(seed);
    ::setenv("PENSTOCK_SIMULATED_SEED", std::to_string(seed).c_str(),
             1);  // for processes that the test starts
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "with PENSTOCK_SIMULATED_SEED=%llu\n",
                   static_cast<unsigned long long>(sim::seed()));
  }

 private:
  std::uint64_t first_ = sim::seed();
};

}  // namespace

int main(int argc, char** argv) {
  ::setenv("PENSTOCK_SIMULATED_GPUS", "8", 0);
  testing::InitGoogleTest(&argc, argv);
  if (const char* const seeds = std::getenv("PENSTOCK_SIMULATED_SEEDS"); seeds != nullptr) {
    GTEST_FLAG_SET(repeat, std::atoi(seeds));
    GTEST_FLAG_SET(brief, true);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new Seeds);
  const int status = RUN_ALL_TESTS();
  // So that what was to be freed behind it is freed before the process ends: else no leak could be seen.
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess)
    for (int device = 0; device < devices; ++device)
      if (cudaSetDevice(device) == cudaSuccess) (void)cudaDeviceSynchronize();
  return status;
}
