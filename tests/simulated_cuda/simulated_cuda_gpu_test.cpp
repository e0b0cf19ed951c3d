// What the simulated runtime promises: CUDA's rules, and an end with a sentence for what breaks them.
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "src/device/cuda_owners.hpp"
#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "tests/sanitized.hpp"
#include "tests/simulated_cuda/simulated_kernels.hpp"

namespace penstock::simulation_test {
namespace {

namespace sim = simulated_cuda;
using device::check;
using device::CudaEvent;
using device::CudaStream;
using device::DeviceMemory;

struct Fresh {
  std::size_t count;
};

// Numbers on a device.
class Words {
 public:
  explicit Words(Fresh fresh, int device = 0)
      : count_(fresh.count), memory_(device, fresh.count * 4) {}
  explicit Words(const std::vector<std::uint32_t>& values, int device = 0)
      : Words(Fresh{values.size()}, device) {
    check(cudaMemcpy(get(), values.data(), values.size() * 4, cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());
  }
  [[nodiscard]] std::uint32_t* get() const {
    return reinterpret_cast<std::uint32_t*>(memory_.data());
  }
  [[nodiscard]] std::vector<std::uint32_t> read() const {
    std::vector<std::uint32_t> values(count_);
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(values.data(), get(), count_ * 4, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

class SimulatedCudaGpu : public testing::Test {
 protected:
  void SetUp() override { check(cudaSetDevice(0)); }
  void TearDown() override {
    sim::repair();
    (void)cudaGetLastError();
  }
};

TEST_F(SimulatedCudaGpu, KernelsHaveTheirIndices) {
  const dim3 grid(3, 2, 2);
  const dim3 block(4, 3, 2);
  constexpr std::size_t kThreads = 12 * 24;
  const DeviceMemory out(0, kThreads * 8);
  write_indices(grid, block, reinterpret_cast<std::uint64_t*>(out.data()), nullptr);
  std::vector<std::uint64_t> found(kThreads);
  check(cudaMemcpy(found.data(), out.data(), kThreads * 8, cudaMemcpyDeviceToHost));
  for (std::uint64_t k = 0; k < kThreads; ++k) EXPECT_EQ(found[k], (k / 24) << 32 | k % 24);
}

TEST_F(SimulatedCudaGpu, BlocksHaveSharedMemoryAndBarriers) {
  std::vector<std::uint32_t> values(256 * 5);
  std::iota(values.begin(), values.end(), 7U);
  const Words in(values);
  const Words sums(Fresh{5});
  block_sums(in.get(), 5, sums.get(), nullptr);
  std::vector<std::uint32_t> expected;
  for (int b = 0; b < 5; ++b)
    expected.push_back(
        std::accumulate(values.begin() + b * 256, values.begin() + (b + 1) * 256, 0U));
  EXPECT_EQ(sums.read(), expected);
}

TEST_F(SimulatedCudaGpu, WarpsShuffleAndVote) {
  std::vector<std::uint32_t> values(32 * 11);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<std::uint32_t>(k * k + k / 3);
  const Words in(values);
  const Words sums(Fresh{11});
  const Words ballots(Fresh{11});
  warp_sums(in.get(), 11, sums.get(), ballots.get(), nullptr);
  const auto found_sums = sums.read();
  const auto found_ballots = ballots.read();
  for (std::size_t w = 0; w < 11; ++w) {
    std::uint32_t sum = 0;
    std::uint32_t odd = 0;
    for (std::size_t k = 0; k < 32; ++k) {
      sum += values[w * 32 + k];
      odd |= (values[w * 32 + k] & 1) << k;
    }
    EXPECT_EQ(found_sums[w], sum);
    EXPECT_EQ(found_ballots[w], odd);
  }
}

// Streams that nothing orders run in every order, and beside each other.
TEST_F(SimulatedCudaGpu, WithoutAWaitTheOrderDependsOnTheSeed) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a race on purpose, which ThreadSanitizer reports";
#endif
  int in_order = 0;
  constexpr int kSeeds = 60;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    sim::set_seed(static_cast<std::uint64_t>(seed));
    const Words in(std::vector<std::uint32_t>{41});
    const Words middle(std::vector<std::uint32_t>{0});
    const Words out(std::vector<std::uint32_t>{0});
    const CudaStream first(0);
    const CudaStream second(0);
    slow_increment(middle.get(), in.get(), 10, first.get());
    slow_increment(out.get(), middle.get(), 10, second.get());
    if (out.read()[0] == 43) ++in_order;
  }
  EXPECT_GT(in_order, 0);
  EXPECT_LT(in_order, kSeeds);
}

TEST_F(SimulatedCudaGpu, AnEventOrdersTwoStreams) {
  for (int seed = 1; seed <= 60; ++seed) {
    sim::set_seed(static_cast<std::uint64_t>(seed));
    const Words in(std::vector<std::uint32_t>{41});
    const Words middle(std::vector<std::uint32_t>{0});
    const Words out(std::vector<std::uint32_t>{0});
    const CudaStream first(0);
    const CudaEvent done(0);
    slow_increment(middle.get(), in.get(), 10, first.get());
    check(cudaEventRecord(done.get(), first.get()));
    const CudaStream third(0);
    check(cudaStreamWaitEvent(third.get(), done.get(), 0));
    slow_increment(out.get(), middle.get(), 10, third.get());
    EXPECT_EQ(out.read()[0], 43U);
  }
}

// A blocking stream and the legacy stream wait for each other; a non-blocking one does not.
TEST_F(SimulatedCudaGpu, TheLegacyStreamWaitsForBlockingStreams) {
#ifdef __SANITIZE_THREAD__
  const std::vector<unsigned> kinds{cudaStreamDefault};  // the other is a race on purpose
#else
  const std::vector<unsigned> kinds{cudaStreamDefault, cudaStreamNonBlocking};
#endif
  int wrong = 0;
  for (int seed = 1; seed <= 60; ++seed) {
    sim::set_seed(static_cast<std::uint64_t>(seed));
    for (const unsigned flags : kinds) {
      const Words in(std::vector<std::uint32_t>{41});
      const Words middle(std::vector<std::uint32_t>{0});
      const Words out(std::vector<std::uint32_t>{0});
      cudaStream_t stream = nullptr;
      check(cudaStreamCreateWithFlags(&stream, flags));
      slow_increment(middle.get(), in.get(), 20, stream);
      slow_increment(out.get(), middle.get(), 0, nullptr);
      const bool right = out.read()[0] == 43;
      if (flags == cudaStreamDefault)
        EXPECT_TRUE(right);
      else if (!right)
        ++wrong;
      check(cudaStreamDestroy(stream));
    }
  }
  if (kinds.size() > 1) {
    EXPECT_GT(wrong, 0);
  }
}

TEST_F(SimulatedCudaGpu, CopiesReadPinnedMemoryWhenTheyRun) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a race on purpose, which ThreadSanitizer reports";
#endif
  int late = 0;
  for (int seed = 1; seed <= 60; ++seed) {
    sim::set_seed(static_cast<std::uint64_t>(seed));
    std::vector<std::uint32_t> host(1024, 1);
    check(cudaHostRegister(host.data(), 4096, 0));
    const Words out(Fresh{1024});
    const CudaStream stream(0);
    check(cudaMemcpyAsync(out.get(), host.data(), 4096, cudaMemcpyHostToDevice, stream.get()));
    std::fill(host.begin(), host.end(), 2);
    if (const auto found = out.read(); found.front() == 2 || found.back() == 2) ++late;
    check(cudaHostUnregister(host.data()));
  }
  EXPECT_GT(late, 0);
}

TEST_F(SimulatedCudaGpu, FreshMemoryIsNotZero) {
  const Words words(Fresh{100});
  for (const std::uint32_t word : words.read()) EXPECT_EQ(word, 0xCBCBCBCBU);
}

// In a process of its own: a context stays.
TEST(SimulatedContextGpu, IsMadeByUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        int count = 0;
        int device = -1;
        check(cudaGetDeviceCount(&count));
        check(cudaGetDevice(&device));
        const bool before = sim::has_context(0) || sim::has_context(count - 1);
        check(cudaSetDevice(count - 1));
        const bool after = sim::has_context(count - 1) && (count == 1 || !sim::has_context(0));
        std::_Exit(!before && after ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Python's faulthandler does this, as when pytest ends, or Python: work that is in a stream goes on to its end.
TEST(SimulatedContextGpu, OutlivesASignalHandlerThatIsPutBack) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own handler is never put back";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct sigaction programs = {};
        struct sigaction before = {};
        programs.sa_handler = [](int) { std::_Exit(2); };
        ::sigaction(SIGSEGV, &programs, &before);
        check(cudaSetDevice(0));
        const Words words(Fresh{100});
        const CudaStream stream(0);
        std::atomic<bool> put_back = false;
        check(cudaLaunchHostFunc(
            stream.get(), [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); },
            &put_back));
        check(cudaMemsetAsync(words.get(), 7, 400, stream.get()));
        ::sigaction(SIGSEGV, &before, nullptr);
        put_back = true;
        put_back.notify_one();
        std::_Exit(words.read() == std::vector<std::uint32_t>(100, 0x07070707U) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(SimulatedCudaGpu, ErrorsOfALostDeviceStay) {
  const CudaStream stream(0);
  sim::lose_device(0, cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
  (void)cudaGetLastError();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  check(cudaSetDevice(1));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(SimulatedCudaGpu, AnInjectedFaultComesAtItsCall) {
  void* memory = nullptr;
  sim::fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaMalloc(&memory, 10), cudaSuccess);
  void* none = nullptr;
  EXPECT_EQ(cudaMalloc(&none, 10), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(SimulatedCudaGpu, ACorruptCopyArrivesWithAnotherByte) {
  constexpr std::size_t kBytes = 1000;
  const CudaStream stream(0);
  const DeviceMemory memory(0, kBytes);
  const std::vector<std::byte> sent(kBytes, std::byte{7});
  std::vector<std::byte> expected = sent;
  sim::corrupt_copy(2, 999);
  for (int round = 1; round <= 3; ++round) {
    check(cudaMemcpyAsync(memory.data(), sent.data(), 999, cudaMemcpyDefault, stream.get()));
    check(cudaMemcpyAsync(memory.data(), sent.data(), kBytes, cudaMemcpyDefault, stream.get()));
    std::vector<std::byte> arrived(kBytes);
    check(cudaMemcpyAsync(arrived.data(), memory.data(), kBytes, cudaMemcpyDefault, stream.get()));
    check(cudaStreamSynchronize(stream.get()));
    expected[999] = round == 2 ? std::byte{0x17} : std::byte{7};
    EXPECT_TRUE(arrived == expected) << "round " << round;
  }
}

TEST_F(SimulatedCudaGpu, AGlobalCaptureForbidsUnsafeCallsOnEveryThread) {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                          cudaStreamCaptureModeRelaxed}) {
    const CudaStream captured(0);
    const CudaStream other(0);
    const CudaEvent event(0);
    check(cudaEventRecord(event.get(), other.get()));
    check(cudaStreamSynchronize(other.get()));
    check(cudaStreamBeginCapture(captured.get(), mode));
    cudaError_t elsewhere = cudaSuccess;
    std::thread([&] { elsewhere = cudaEventQuery(event.get()); }).join();
    const cudaError_t here =
        mode == cudaStreamCaptureModeRelaxed ? cudaEventQuery(event.get()) : cudaSuccess;
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(captured.get(), &graph);
    const bool global = mode == cudaStreamCaptureModeGlobal;
    EXPECT_EQ(elsewhere, global ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    EXPECT_EQ(here, cudaSuccess);
    EXPECT_EQ(ended, global ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    if (graph != nullptr) check(cudaGraphDestroy(graph));
  }
}

TEST_F(SimulatedCudaGpu, ACaptureTakesInStreamsThatWaitForItsEvents) {
  const CudaStream origin(0);
  const CudaStream branch(0);
  const CudaEvent fork(0);
  const CudaEvent join(0);
  const Words in(std::vector<std::uint32_t>{1});
  const Words middle(std::vector<std::uint32_t>{0});
  const Words out(std::vector<std::uint32_t>{0});
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(origin.get(), cudaStreamCaptureModeGlobal));
  slow_increment(middle.get(), in.get(), 10, origin.get());
  check(cudaEventRecord(fork.get(), origin.get()));
  check(cudaStreamWaitEvent(branch.get(), fork.get(), 0));
  slow_increment(out.get(), middle.get(), 10, branch.get());
  check(cudaEventRecord(join.get(), branch.get()));
  check(cudaStreamWaitEvent(origin.get(), join.get(), 0));
  check(cudaStreamEndCapture(origin.get(), &graph));
  EXPECT_EQ(out.read()[0], 0U) << "captured, and not run";
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphLaunch(exec, origin.get()));
  EXPECT_EQ(out.read()[0], 3U);
  check(cudaGraphExecDestroy(exec));
  check(cudaGraphDestroy(graph));
}

using SimulatedCudaDeathGpu = SimulatedCudaGpu;

TEST_F(SimulatedCudaDeathGpu, TheHostMayNotTouchDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const Words words(std::vector<std::uint32_t>{1, 2});
        volatile std::uint32_t seen = words.get()[1];
        (void)seen;
      },
      "the host touched .* device memory of cuda:0");
}

TEST_F(SimulatedCudaDeathGpu, AKernelMayNotTouchAnotherDevicesMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const Words other(std::vector<std::uint32_t>{1}, 1);
        const Words own(std::vector<std::uint32_t>{1});
        slow_increment(own.get(), other.get(), 0, nullptr);
        check(cudaDeviceSynchronize());
      },
      "touched .* of cuda:1");
}

TEST_F(SimulatedCudaDeathGpu, AWarpThatDoesNotMeetIsTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        broken_exchange(nullptr);
        check(cudaDeviceSynchronize());
      },
      "threads of a warp wait for others");
}

}  // namespace
}  // namespace penstock::simulation_test
