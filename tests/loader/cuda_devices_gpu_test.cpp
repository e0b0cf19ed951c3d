// The loader on every GPU there is, on the streams that programs use, and when something fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/testing/synthetic.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_reaper.hpp"
#include "tests/device/cuda_support.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/loader/slow_check.hpp"
#ifdef PENSTOCK_SIMULATED_CUDA
#include "testing/simulated_cuda/simulated_cuda.hpp"
#endif

namespace penstock {
namespace {

using testing_support::Counter;
using testing_support::fake;
using testing_support::slow_check;
using testing_support::steps;

constexpr std::uint64_t kChecked = 1'009;
constexpr std::uint64_t kRows = 32;  // of a device

class CudaDevicesGpu : public testing_support::OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    for (int index = 0; index < std::min(gpu_count(), 8); ++index)
      devices_.push_back({Device::Kind::cuda, index});
  }
  [[nodiscard]] Dataset plan(int depth = 2) const {
    return Dataset(fake(kChecked))
        .repeat()
        .batch(kRows * devices_.size())
        .prefetch_to_devices(devices_, {.depth = depth});
  }
  std::vector<Device> devices_;
};

// A stream and a counter on each device.
struct Consumer {
  explicit Consumer(const Device& device) : index(device.index), stream(index), wrong(index) {}
  // On the consumer's device, whatever is current afterwards.
  void check(const DeviceBatch& part, std::uint64_t step, std::uint64_t parts,
             unsigned microseconds, cudaStream_t on) const {
    part.wait_on(on);
    const device::CurrentDevice current(index);
    slow_check(part["number"].data<std::uint64_t>(), part.size(),
               (step * parts + part.replica()) * kRows, kChecked, microseconds, wrong.get(), on);
  }
  int index;
  device::CudaStream stream;
  Counter wrong;
};

TEST_F(CudaDevicesGpu, EveryDeviceReadsItsOwnRowsWithSlowKernels) {
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (const Device& device : devices_) consumers.push_back(std::make_unique<Consumer>(device));
  Loader loader = plan().loader();
  for (std::uint64_t step = 0; step < steps(2'000); ++step) {
    const Step batch = *loader.next();
    for (std::size_t k = 0; k < devices_.size(); ++k)
      consumers[k]->check(batch[k], step, devices_.size(), static_cast<unsigned>(step * 7 + k) % 60,
                          consumers[k]->stream.get());
  }
  for (const auto& consumer : consumers) EXPECT_EQ(consumer->wrong.read(), 0U);
}

TEST_F(CudaDevicesGpu, AThreadPerDeviceTakesItsOwnParts) {
  Loader loader = plan().loader();
  std::vector<DeviceLoader> parts;
  for (std::size_t k = 0; k < devices_.size(); ++k) parts.push_back(loader.device(k));
  std::vector<unsigned long long> wrong(devices_.size(), 1);
  {
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < devices_.size(); ++k)
      threads.emplace_back([&, k] {
        device::check(cudaSetDevice(devices_[k].index));
        const Consumer consumer(devices_[k]);
        for (std::uint64_t step = 0; step < steps(500); ++step) {
          const DeviceBatch part = *parts[k].next();
          // The default streams of this device, and one of the thread's own.
          cudaStream_t on = consumer.stream.get();
          if (step % 3 == 1) on = nullptr;
          if (step % 3 == 2) on = cudaStreamPerThread;
          consumer.check(part, step, devices_.size(), 20, on);
        }
        wrong[k] = consumer.wrong.read();
      });
  }
  for (const unsigned long long count : wrong) EXPECT_EQ(count, 0U);
}

// Batches are handed to a thread that lets them go, while the kernels of this one still read them.
TEST_F(CudaDevicesGpu, BatchesMayBeReleasedOnAnotherThread) {
  const Consumer consumer(devices_[0]);
  Loader loader = plan(1).loader();
  for (std::uint64_t step = 0; step < steps(500); ++step) {
    std::optional<Step> batch = loader.next();
    consumer.check((*batch)[0], step, devices_.size(), 50, consumer.stream.get());
    std::thread([moved = std::move(batch)]() mutable { moved.reset(); }).join();
  }
  EXPECT_EQ(consumer.wrong.read(), 0U);
}

TEST_F(CudaDevicesGpu, TransformsOfEveryDeviceGiveTheHostsBytesToSlowReaders) {
  const Dataset images = synthetic_images({.count = 64})
                             .shuffle({.seed = 3})
                             .repeat(2)
                             .map(decode_image({.crop = random_resized_crop(32), .flip = 0.5}))
                             .batch(4 * devices_.size());
  std::vector<std::unique_ptr<device::CudaStream>> streams;
  for (const Device& device : devices_)
    streams.push_back(std::make_unique<device::CudaStream>(device.index));
  const auto run = [&](const std::vector<Device>& devices, bool on_consumer_stream) {
    Loader loader = images
                        .transform_on_device({.dtype = DType::bf16,
                                              .mean = {0.5F},
                                              .flip = 0.5,
                                              .mixup = 0.4,
                                              .on_consumer_stream = on_consumer_stream})
                        .prefetch_to_devices(devices)
                        .loader();
    std::vector<std::byte> bytes;
    while (auto step = loader.next()) {
      for (std::size_t k = 0; k < devices.size(); ++k) {
        const DeviceBatch& part = (*step)[k];
        std::vector<std::byte> copy(part["image"].byte_size());
        if (part.device().kind == Device::Kind::cuda) {
          const cudaStream_t on = streams[k]->get();
          part.wait_on(on);
          const device::CurrentDevice current(part.device().index);
          slow_check(nullptr, 0, 0, 1, 30, nullptr, on);
          copy = testing_support::to_host(part["image"].bytes(), on);
        } else {
          std::memcpy(copy.data(), part["image"].raw(), copy.size());
        }
        bytes.insert(bytes.end(), copy.begin(), copy.end());
      }
    }
    return bytes;
  };
  const auto expected = run(host_devices(static_cast<int>(devices_.size())), false);
  EXPECT_TRUE(run(devices_, false) == expected);
  EXPECT_TRUE(run(devices_, true) == expected);
}

#ifdef PENSTOCK_SIMULATED_CUDA

namespace sim = simulated_cuda;

class CudaFaultsGpu : public CudaDevicesGpu {
 protected:
  void TearDown() override {
    OnGpu::TearDown();
    sim::repair();
    (void)cudaGetLastError();
  }
};

// Step 2 is decoded before step 1, and its place has a slow reader, of step 0. In one stream, step 1's copy must not come
// behind step 2's.
TEST_F(CudaFaultsGpu, AStepThatIsDecodedLateIsCopiedBeforeTheNext) {
  auto source = fake(6);
  std::atomic<int> decoded = 0;  // of step 2
  source->on_read = [&](std::uint64_t number) {
    if (number >= 4) ++decoded;
    for (int ms = 0; number == 3 && decoded < 2 && ms < 10'000; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (number == 3) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  const device::CudaStream slow(0);
  std::atomic<bool> open = false;
  Loader loader = Dataset(source)
                      .batch(2)
                      .prefetch_to_devices({devices_[0]}, {.depth = 1})
                      .loader({.threads = 2});
  {
    const Step batch = *loader.next();
    batch[0].wait_on(slow.get());
    ASSERT_TRUE(sim::enqueue_polled(slow.get(), "a slow reader", [&] {
      return open.load() ? sim::Polled::over : sim::Polled::waits;
    }));
  }
  const Step late = *loader.next();
  auto arrived = std::async(std::launch::async, [&] { late[0].synchronize(); });
  EXPECT_EQ(arrived.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(decoded, 2);
  open = true;
  arrived.get();
  device::check(cudaStreamSynchronize(slow.get()));
}

TEST_F(CudaFaultsGpu, MemoryStaysFlatOverManyLoaders) {
  const auto run = [&] {
    Loader loader = plan().loader();
    const Step step = *loader.next();
  };
  run();
  (void)device::wait_until_freed(std::chrono::seconds(10));
  const sim::Usage before = sim::usage();
  for (std::uint64_t k = 0; k < steps(1'000); ++k) run();
  (void)device::wait_until_freed(std::chrono::seconds(10));
  const sim::Usage after = sim::usage();
  EXPECT_EQ(after.device_bytes, before.device_bytes);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.registrations, before.registrations);
}

// Whichever call of CUDA fails, the caller is told by a CudaError, and nothing is left behind.
TEST_F(CudaFaultsGpu, AnyCallMayFail) {
  const sim::Usage before = sim::usage();
  int failures = 0;
  for (const char* function :
       {"cudaMalloc", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaHostRegister",
        "cudaMemcpyAsync", "cudaEventRecord", "cudaStreamWaitEvent", "cudaLaunchHostFunc"}) {
    for (std::uint64_t n = 1; n < 40; n += 1 + n / 4) {
      sim::fail_call(function, n, cudaErrorMemoryAllocation);
      try {
        Loader loader = plan().loader();
        for (int step = 0; step < 4; ++step) {
          const Step batch = *loader.next();
          batch[0].wait_on(stream());
        }
      } catch (const CudaError& error) {
        EXPECT_EQ(error.code(), cudaErrorMemoryAllocation);
        ++failures;
      }
      sim::repair();
      device::check(cudaDeviceSynchronize());
      (void)device::wait_until_freed(std::chrono::seconds(10));
      const sim::Usage after = sim::usage();
      ASSERT_EQ(after.device_bytes, before.device_bytes) << function << ' ' << n;
      ASSERT_EQ(after.streams, before.streams) << function << ' ' << n;
      ASSERT_EQ(after.events, before.events) << function << ' ' << n;
      ASSERT_EQ(after.registrations, before.registrations) << function << ' ' << n;
    }
  }
  EXPECT_GT(failures, 25);  // one device makes fewer calls
}

TEST_F(CudaFaultsGpu, ALostDeviceEndsTheRunAtOnce) {
  for (const bool takes_batches : {true, false}) {
    const auto begin = std::chrono::steady_clock::now();
    {
      Loader loader = plan(3).loader();
      std::vector<Step> held;
      held.push_back(*loader.next());
      sim::lose_device(devices_.back().index, cudaErrorIllegalAddress);
      EXPECT_THROW(
          {
            for (int step = 0; step < 100; ++step) {
              auto next = loader.next();
              if (!takes_batches && held.size() < 3) held.push_back(std::move(*next));
            }
          },
          CudaError);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    sim::repair();
  }
}

TEST_F(CudaFaultsGpu, AConsumersFaultingKernelEndsTheRun) {
  const Consumer consumer(devices_[0]);
  sim::fail_call("kernel", 5, cudaErrorIllegalAddress);
  Loader loader = plan().loader();
  EXPECT_THROW(
      {
        for (std::uint64_t step = 0; step < 1000; ++step) {
          const Step batch = *loader.next();
          consumer.check(batch[0], step, devices_.size(), 5, consumer.stream.get());
        }
      },
      CudaError);
}

#endif

}  // namespace
}  // namespace penstock
