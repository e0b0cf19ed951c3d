// What the library leaves alone, and what it says when CUDA fails: contexts, the current device, captures, pending and
// sticky errors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/device/device.hpp>
#include <penstock/device/device_transform.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/device/transfer.hpp"
#include "src/staging/host_memory.hpp"
#include "tests/device/cuda_support.hpp"
#ifdef PENSTOCK_SIMULATED_CUDA
#include "testing/simulated_cuda/simulated_cuda.hpp"
#endif

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kBytes = 4096;

int current_device() {
  int device = -1;
  device::check(cudaGetDevice(&device));
  return device;
}

// The driver's function, which does not make a context to answer.
void* current_context() {
  using GetContext = int (*)(void**);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  device::check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 9020,
                                                 cudaEnableDefault, &found));
#else
  device::check(cudaGetDriverEntryPoint("cuCtxGetCurrent", &function, cudaEnableDefault, &found));
#endif
  void* context = nullptr;
  EXPECT_EQ(reinterpret_cast<GetContext>(function)(&context), 0);
  return context;
}

// One slot through a transfer of its own, read on `stream`.
struct OneSlice {
  explicit OneSlice(int index, std::size_t slots = 1)
      : memory(staging::HostMemory::make(slots * kBytes)),
        ring(staging::StagingRing::make(memory, memory->bytes(), slots, kBytes)),
        transfer(device::open_transfer({Device::Kind::cuda, index},
                                       {.slots = slots, .slice_bytes = kBytes})) {
    device::pin_host_memory(*memory, {Device::Kind::cuda, index});
  }
  std::shared_ptr<device::DeviceSlice> deliver() {
    auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
    std::fill_n(slot->bytes().data(), kBytes, std::byte{7});
    auto slice = transfer->reserve({});
    const auto bytes = slot->bytes();
    transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = bytes});
    return slice;
  }
  std::shared_ptr<staging::HostMemory> memory;
  std::shared_ptr<staging::StagingRing> ring;
  std::unique_ptr<device::Transfer> transfer;
};

class CudaRulesGpu : public testing_support::OnGpu {
 protected:
  void TearDown() override {
    OnGpu::TearDown();
#ifdef PENSTOCK_SIMULATED_CUDA
    simulated_cuda::repair();
#endif
    (void)cudaGetLastError();
  }
};

TEST_F(CudaRulesGpu, TheCallersDeviceIsWhatItWas) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU here";
  const device::CudaStream own(0);
  OneSlice one(1);
  const auto slice = one.deliver();
  EXPECT_EQ(current_device(), 0);
  slice->wait_on(own.get());
  slice->synchronize();
  EXPECT_EQ(current_device(), 0);
}

// A thread's device, once it was another, would be that one again at the next call: cudaGetDevice() is no way to see
// whether a device is current.
TEST_F(CudaRulesGpu, AThreadThatHadNoContextHasNoneAfterwards) {
  for (const int index : {0, static_cast<int>(gpu_count()) - 1}) {
    const device::CudaStream stream(index);
    std::thread([&] {
      for (int k = 0; k < 3; ++k) {
        {
          const device::CurrentDevice current(index);
          device::check(cudaStreamSynchronize(stream.get()));
          EXPECT_EQ(current_device(), index);
        }
        EXPECT_EQ(current_context(), nullptr) << "cuda:" << index << ", time " << k;
        EXPECT_EQ(current_device(), 0);
        EXPECT_TRUE(stream.is_over());
        EXPECT_EQ(current_context(), nullptr) << "cuda:" << index << ", time " << k;
      }
    }).join();
  }
}

TEST_F(CudaRulesGpu, AThreadsContextIsTheSameAfterwards) {
  const int other = static_cast<int>(gpu_count()) - 1;
  void* const before = current_context();
  {
    const device::CurrentDevice current(other);
    const device::CurrentDevice again(0);
    EXPECT_EQ(current_context(), before);
    EXPECT_EQ(current_device(), 0);
  }
  EXPECT_EQ(current_context(), before);
  EXPECT_THROW(const device::CurrentDevice none(other + 1), CudaError);
  EXPECT_THROW(const device::CurrentDevice none(-1), CudaError);
  EXPECT_EQ(current_context(), before);
}

// The kernel's flags of the mapping that holds the address.
std::string flags_of(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      here = begin <= place && place < end;
    else if (here && line.starts_with("VmFlags:"))
      return line + ' ';
  }
  return {};
}

// A child's pages would be copies, at once or when the parent writes next: then it is the parent that has others than
// those that the GPU reads.
TEST_F(CudaRulesGpu, AForkedProcessHasNoPinnedMemory) {
  OneSlice one(0, 3);
  const auto bytes = one.memory->bytes();
  EXPECT_THAT(flags_of(bytes.data()), HasSubstr(" dc "));
  EXPECT_THAT(flags_of(&bytes.back()), HasSubstr(" dc "));
  const auto plain = staging::HostMemory::make(kBytes);
  std::ranges::fill(plain->bytes(), std::byte{7});
  EXPECT_THAT(flags_of(plain->bytes().data()), testing::Not(HasSubstr(" dc ")));
}

// Whoever is captured in torch's default mode must not notice a loader on another thread: what is made, used and
// destroyed there.
TEST_F(CudaRulesGpu, AGlobalCaptureGoesOnWhileATransferIsMadeUsedAndDestroyed) {
  device::CudaStream captured(0);
  cudaGraph_t graph = nullptr;
  device::check(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
  std::thread([] {
    OneSlice one(0, 2);
    for (int k = 0; k < 10; ++k) one.deliver()->synchronize();
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  if (graph != nullptr) device::check(cudaGraphDestroy(graph));
}

TEST_F(CudaRulesGpu, ABatchIsNotReadInACaptureAndTheCaptureLives) {
  OneSlice one(0);
  const auto slice = one.deliver();
  device::CudaStream captured(0);
  cudaGraph_t graph = nullptr;
  device::check(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeThreadLocal));
  EXPECT_THAT([&] { slice->wait_on(captured.get()); },
              ThrowsMessage<CudaError>(HasSubstr("copy_to()")));
  EXPECT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  if (graph != nullptr) device::check(cudaGraphDestroy(graph));
}

TEST_F(CudaRulesGpu, ABatchThatIsReleasedInACaptureKeepsItsPlaceUntilTheCaptureHasEnded) {
  OneSlice one(0);
  device::CudaStream reader(0);
  auto slice = one.deliver();
  slice->wait_on(reader.get());
  cudaGraph_t graph = nullptr;
  device::check(cudaStreamBeginCapture(reader.get(), cudaStreamCaptureModeThreadLocal));
  slice.reset();
  std::jthread next([&] { one.deliver()->synchronize(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaStreamEndCapture(reader.get(), &graph), cudaSuccess);
  if (graph != nullptr) device::check(cudaGraphDestroy(graph));
}

TEST_F(CudaRulesGpu, AStreamOfAnotherDeviceMayReadABatch) {
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU here";
  device::CudaStream other(1);
  OneSlice one(0, 2);
  for (int k = 0; k < 20; ++k) {
    const auto slice = one.deliver();
    slice->wait_on(other.get());
  }
}

TEST_F(CudaRulesGpu, AnErrorThatTheCallerLeftBehindIsNotTheTransforms) {
  const DeviceTransform transform({.mean = {0.5F}},
                                  {.name = "image", .dtype = DType::u8, .shape = {8, 8, 3}});
  const device::DeviceMemory in(0, 8 * 8 * 3);
  const device::DeviceMemory rows(0, sizeof(DeviceTransformRow));
  const device::DeviceMemory out(0, 8 * 8 * 3 * 4);
  device::check(cudaMemset(rows.data(), 0, sizeof(DeviceTransformRow)));
  device::check(cudaDeviceSynchronize());
  void* none = nullptr;
  EXPECT_NE(cudaMalloc(&none, std::size_t{1} << 50), cudaSuccess);  // and nobody asks
  EXPECT_NO_THROW(transform.enqueue(in.data(),
                                    reinterpret_cast<const DeviceTransformRow*>(rows.data()), 1,
                                    out.data(), stream()));
  (void)cudaGetLastError();
  device::check(cudaStreamSynchronize(stream()));
}

#ifdef PENSTOCK_SIMULATED_CUDA

TEST_F(CudaRulesGpu, ADriverThatDoesNotWorkIsNoReasonToTakeTheHost) {
  simulated_cuda::fail_every_call("cudaGetDeviceCount", cudaErrorSystemNotReady);
  EXPECT_THAT([] { (void)gpu_count(); }, ThrowsMessage<CudaError>(HasSubstr("fabricmanager")));
  EXPECT_THAT([] { (void)all_gpus_or_host(); },
              ThrowsMessage<CudaError>(HasSubstr("cannot be used")));
  EXPECT_THAT([] { (void)parse_devices("auto"); },
              ThrowsMessage<CudaError>(HasSubstr("system not yet initialized")));
  simulated_cuda::fail_every_call("cudaGetDeviceCount", cudaErrorNoDevice);
  EXPECT_EQ(gpu_count(), 0);
  EXPECT_EQ(all_gpus_or_host(), host_devices(1));
}

// cudaStreamGetDevice is of CUDA 12.8, and programs that were built with it run on earlier drivers of CUDA 12.
TEST_F(CudaRulesGpu, AnOlderDriverDoesNotSayAStreamsDeviceToTheRuntime) {
  simulated_cuda::fail_every_call("cudaStreamGetDevice", cudaErrorCallRequiresNewerDriver);
  const int other = static_cast<int>(gpu_count()) - 1;
  const device::CudaStream reader(other);
  const device::CudaStream next(0);
  OneSlice one(0);
  auto slice = one.deliver();
  slice->wait_on(reader.get());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  std::atomic<bool> is_read = false;
  ASSERT_TRUE(simulated_cuda::enqueue_polled(reader.get(), "a long kernel", [&] {
    return is_read ? simulated_cuda::Polled::over : simulated_cuda::Polled::waits;
  }));
  slice.reset();
  slice = one.deliver();
  slice->wait_on(next.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(next.is_over()) << "the place is overwritten while it is read";
  is_read = true;
  slice->synchronize();
}

TEST_F(CudaRulesGpu, ALostDeviceEndsTheWaitForItsPlaces) {
  OneSlice one(0, 2);
  std::vector<std::shared_ptr<device::DeviceSlice>> held{one.deliver(), one.deliver()};
  simulated_cuda::lose_device(0, cudaErrorECCUncorrectable);
  EXPECT_THAT([&] { (void)one.transfer->reserve({}); }, ThrowsMessage<CudaError>(HasSubstr("ECC")));
}

// In a process of its own: a context stays.
TEST(CudaContextGpu, NothingIsMadeOnADeviceThatNobodyAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int other = static_cast<int>(gpu_count()) - 1;
  if (other == 0) GTEST_SKIP() << "one GPU here";
  EXPECT_EXIT(
      {
        device::CudaStream reader(other);
        std::thread([&] {
          // Its device is 0, because it has said nothing.
          {
            OneSlice one(other, 2);
            for (int k = 0; k < 5; ++k) {
              const auto slice = one.deliver();
              slice->wait_on(reader.get());
              slice->synchronize();
            }
          }
          const bool well = current_device() == 0 && !simulated_cuda::has_context(0);
          std::fprintf(stderr, "device %d, context on 0: %d\n", current_device(),
                       simulated_cuda::has_context(0));
          if (!well) std::_Exit(1);
        }).join();
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "device 0");
}

#endif

}  // namespace
}  // namespace penstock
