// Needs a GPU, and says so where there is none: batches that slow kernels read, and every byte of
// them.
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <penstock/testing/synthetic.hpp>

#include "src/device/cuda_owners.hpp"
#include "tests/device/cuda_support.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/loader/slow_check.hpp"

namespace penstock {
namespace {

using testing_support::Counter;
using testing_support::fake;
using testing_support::slow_check;
using testing_support::steps;

constexpr std::uint64_t kSamples = 10'007;
constexpr std::uint64_t kBatch = 512;

const std::vector<Device> kGpu{{Device::Kind::cuda, 0}};

class CudaLoaderGpu : public testing_support::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    wrong_.emplace();
  }
  void TearDown() override {
    wrong_.reset();
    OnGpu::TearDown();
  }
  void check(const DeviceBatch& part, std::uint64_t first, unsigned microseconds,
             cudaStream_t on) const {
    part.wait_on(on);
    slow_check(part["number"].data<std::uint64_t>(), part.size(), first, kSamples, microseconds,
               wrong_->get(), on);
  }
  [[nodiscard]] unsigned long long wrong() const {
    device::check(cudaDeviceSynchronize());
    return wrong_->read();
  }

 private:
  std::optional<Counter> wrong_;
};

Dataset plan(std::vector<Device> devices, int depth) {
  return Dataset(fake(kSamples))
      .repeat()
      .batch(kBatch)
      .prefetch_to_devices(std::move(devices), {.depth = depth});
}

// The batch is released as soon as the kernel is queued, so its place is in use again long before
// the kernel has read it: only the events keep the bytes.
TEST_F(CudaLoaderGpu, SlowKernelsFindTheirBytesInTenThousandBatches) {
  Loader loader = plan(kGpu, 2).loader();
  std::mt19937 random(1);
  for (std::uint64_t step = 0; step < steps(10'000); ++step) {
    const Step batch = *loader.next();
    check(batch[0], step * kBatch, random() % 100, stream());
  }
  EXPECT_EQ(wrong(), 0U);
}

TEST_F(CudaLoaderGpu, ACheckThatIsGivenTheWrongRowsSaysSo) {
  Loader loader = plan(kGpu, 2).loader();
  const Step batch = *loader.next();
  check(batch[0], 1, 10, stream());
  EXPECT_EQ(wrong(), 2 * kBatch);
}

TEST_F(CudaLoaderGpu, SeveralReplicasOnOneGpu) {
  Loader loader = plan({kGpu[0], kGpu[0]}, 2).loader();
  device::CudaStream other(0);
  for (std::uint64_t step = 0; step < steps(1'000); ++step) {
    const Step batch = *loader.next();
    check(batch[0], step * kBatch, 40, stream());
    check(batch[1], step * kBatch + kBatch / 2, 80, other.get());
  }
  EXPECT_EQ(wrong(), 0U);
}

TEST_F(CudaLoaderGpu, TwoStreamsReadOneBatch) {
  Loader loader = plan(kGpu, 1).loader();
  device::CudaStream other(0);
  for (std::uint64_t step = 0; step < steps(1'000); ++step) {
    const Step batch = *loader.next();
    check(batch[0], step * kBatch, 10, stream());
    check(batch[0], step * kBatch, 120, other.get());
  }
  EXPECT_EQ(wrong(), 0U);
}

TEST_F(CudaLoaderGpu, TwoLoadersOnTwoStreams) {
  device::CudaStream other(0);
  std::jthread second([&] {
    device::check(cudaSetDevice(0));
    Loader loader = plan(kGpu, 3).loader();
    for (std::uint64_t step = 0; step < steps(1'000); ++step) {
      const Step batch = *loader.next();
      check(batch[0], step * kBatch, 60, other.get());
    }
    device::check(cudaDeviceSynchronize());
  });
  Loader loader = plan(kGpu, 2).loader();
  for (std::uint64_t step = 0; step < steps(1'000); ++step) {
    const Step batch = *loader.next();
    check(batch[0], step * kBatch, 30, stream());
  }
  second.join();
  EXPECT_EQ(wrong(), 0U);
}

TEST_F(CudaLoaderGpu, MayBeDestroyedWhileKernelsStillReadItsBatches) {
  for (int round = 0; round < static_cast<int>(steps(50)); ++round) {
    std::optional<Loader> loader(plan(kGpu, 2).loader());
    const Step first = *loader->next();
    const Step second = *loader->next();
    check(first[0], 0, 2'000, stream());
    check(second[0], kBatch, 2'000, stream());
    loader.reset();
  }
  EXPECT_EQ(wrong(), 0U);
}

// A training step that was captured as a graph reads fixed addresses.
TEST_F(CudaLoaderGpu, FeedsACapturedGraphThroughItsStaticInput) {
  constexpr std::size_t kBytes = kBatch * 2 * sizeof(std::uint64_t);
  const device::DeviceMemory input(0, kBytes);
  const Counter total;
  slow_check(reinterpret_cast<const std::uint64_t*>(input.data()), 0, 0, 1, 1, total.get(),
             stream());  // loads the kernel, which a capture may not
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step_graph = nullptr;
  device::check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
  slow_check(reinterpret_cast<const std::uint64_t*>(input.data()), kBatch, 0, kBatch, 20,
             total.get(), stream());
  device::check(cudaStreamEndCapture(stream(), &graph));
  device::check(cudaGraphInstantiate(&step_graph, graph, 0));

  // Every batch is the same, 0 … kBatch - 1, as the graph expects.
  Loader loader = Dataset(fake(kBatch)).repeat().batch(kBatch).prefetch_to_devices(kGpu).loader();
  for (std::uint64_t step = 0; step < steps(500); ++step) {
    const Step batch = *loader.next();
    batch[0].copy_to("number", input.data(), kBytes, stream());
    device::check(cudaGraphLaunch(step_graph, stream()));
  }
  device::check(cudaStreamSynchronize(stream()));
  EXPECT_EQ(total.read(), 0U);
  (void)cudaGraphExecDestroy(step_graph);
  (void)cudaGraphDestroy(graph);
}

TEST_F(CudaLoaderGpu, DeliversTheBytesAndTheDigestOfTheHost) {
  const Dataset images = synthetic_images({.count = 64})
                             .shuffle({.seed = 7})
                             .map(decode_image({.crop = random_resized_crop(64), .flip = 0.5}));
  const auto run = [&](std::vector<Device> devices, bool transformed) {
    Dataset batches = images.batch(16);
    if (transformed)
      batches = batches.transform_on_device(
          {.dtype = DType::f16, .mean = {0.5F}, .flip = 0.5, .mixup = 0.4});
    Loader loader = batches.prefetch_to_devices(std::move(devices)).loader({.digest = true});
    std::vector<std::byte> bytes;
    while (auto step = loader.next()) {
      const DeviceBatch& part = (*step)[0];
      std::vector<std::byte> copy(part["image"].byte_size());
      if (part.device().kind == Device::Kind::cuda) {
        part.wait_on(stream());
        copy = testing_support::to_host(part["image"].bytes(), stream());
      } else {
        std::memcpy(copy.data(), part["image"].raw(), copy.size());
      }
      bytes.insert(bytes.end(), copy.begin(), copy.end());
    }
    return std::pair(loader.digest(), bytes);
  };
  for (const bool transformed : {false, true})
    EXPECT_TRUE(run(kGpu, transformed) == run(host_devices(1), transformed));
}

}  // namespace
}  // namespace penstock
