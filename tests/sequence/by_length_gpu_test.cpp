// Batches by length on GPUs: what lies there, its digests and its shapes are the host's.
#include <random>

#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/device/cuda_support.hpp"
#include "tests/sequence/texts.hpp"

namespace penstock {
namespace {

using testing_support::random_texts;
using testing_support::source_of;

TEST(ByLengthOnGpu, BatchesAndDigestsAreTheHosts) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  std::mt19937_64 random(1);
  for (int round = 0; round < 5; ++round) {
    const auto texts = random_texts(random, 60, 12);
    const Dataset plan =
        Dataset(source_of(texts))
            .seed(random())
            .batch_by_length({.edges = {4, 9, 50}, .tokens = 150}, {.uneven = true})
            .repeat(2);
    const int gpus = gpu_count();
    std::vector<Device> cuda;
    for (int gpu = 0; gpu < gpus; ++gpu) cuda.push_back({Device::Kind::cuda, gpu});
    Loader host = plan.prefetch_to_devices(host_devices(gpus)).loader({.digest = true});
    Loader device = plan.prefetch_to_devices(cuda).loader({.digest = true});
    while (const auto expected = host.next()) {
      const auto step = device.next();
      ASSERT_TRUE(step);
      ASSERT_EQ(step->digest(), expected->digest());
      for (std::size_t part = 0; part < cuda.size(); ++part) {
        (*step)[part].synchronize();
        ASSERT_EQ((*step)[part]["tokens"].shape(), (*expected)[part]["tokens"].shape());
      }
    }
    EXPECT_FALSE(device.next());
    EXPECT_EQ(device.digest(), host.digest());
  }
}

}  // namespace
}  // namespace penstock
