// What the CUDA driver does where its documentation leaves it open, and where testing/simulated_cuda assumes something.
//
//   penstock_driver_rules   tables in Markdown, in about 10 s; needs one GPU
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_kernels.hpp"

namespace {

using Call = std::function<void()>;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &found, 7000, cudaEnableDefault, &result));
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result));
#endif
  return reinterpret_cast<Function>(found);
}

bool has_context() {
  void* context = nullptr;
  driver_function<int (*)(void**)>("cuCtxGetCurrent")(&context);
  return context != nullptr;
}

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// What the main thread of a new process has after its first call.
void print_first_calls() {
  const std::vector<std::pair<const char*, Call>> calls{
      {"cudaGetDeviceCount",
       [] {
         int count = 0;
         check(cudaGetDeviceCount(&count));
       }},
      {"cudaGetDevice",
       [] {
         int device = 0;
         check(cudaGetDevice(&device));
       }},
      {"cudaSetDevice", [] { check(cudaSetDevice(0)); }},
      {"cudaDeviceGetPCIBusId",
       [] {
         char bus[32];
         check(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
       }},
      {"cudaThreadExchangeStreamCaptureMode",
       [] {
         auto mode = cudaStreamCaptureModeRelaxed;
         check(cudaThreadExchangeStreamCaptureMode(&mode));
       }},
      {"cudaDeviceGetStreamPriorityRange",
       [] {
         int least = 0, most = 0;
         check(cudaDeviceGetStreamPriorityRange(&least, &most));
       }},
      {"cudaMalloc",
       [] {
         void* memory = nullptr;
         check(cudaMalloc(&memory, 1));
       }},
      {"cudaEventCreateWithFlags",
       [] {
         cudaEvent_t event = nullptr;
         check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
       }},
  };
  fmt::print("| first call of a process | it makes a context | ms |\n| --- | --- | --- |\n");
  std::fflush(stdout);
  for (const auto& [name, call] : calls) {
    const pid_t child = fork();
    if (child == 0) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        call();
        const double ms = ms_since(begin);
        fmt::print("| {} | {} | {:.0f} |\n", name, has_context() ? "yes" : "no", ms);
      } catch (const std::exception& error) {
        fmt::print("| {} | {} | |\n", name, error.what());
      }
      std::fflush(stdout);
      std::_Exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  }
}

struct Objects {
  cudaStream_t busy = nullptr;
  cudaStream_t other = nullptr;
  cudaEvent_t event = nullptr;
  void* device = nullptr;
  void* host = nullptr;
  std::size_t bytes = std::size_t{64} << 20;

  Objects() {
    check(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, other));
    check(cudaMalloc(&device, bytes));
    host = std::aligned_alloc(4096, bytes);
    std::fill_n(static_cast<char*>(host), bytes, '\1');
    check(cudaHostRegister(host, bytes, cudaHostRegisterPortable));
    spin(0.01, other);
    check(cudaDeviceSynchronize());
  }
  ~Objects() {
    (void)cudaDeviceSynchronize();
    (void)cudaHostUnregister(host);
    std::free(host);
    (void)cudaFree(device);
    (void)cudaEventDestroy(event);
    (void)cudaStreamDestroy(other);
    (void)cudaStreamDestroy(busy);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
};

// What a new thread has after a call, in a process that has a context.
void print_threads(const Objects& all) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const std::vector<std::pair<const char*, Call>> calls {
    {"cudaEventQuery", [&] { check(cudaEventQuery(all.event)); }},
        {"cudaEventSynchronize", [&] { check(cudaEventSynchronize(all.event)); }},
        {"cudaEventRecord", [&] { check(cudaEventRecord(all.event, all.other)); }},
        {"cudaStreamQuery", [&] { (void)cudaStreamQuery(all.other); }},
        {"cudaStreamWaitEvent", [&] { check(cudaStreamWaitEvent(all.other, all.event, 0)); }},
        {"cudaStreamSynchronize", [&] { check(cudaStreamSynchronize(all.other)); }},
        {"cudaStreamIsCapturing",
         [&] {
           auto status = cudaStreamCaptureStatusNone;
           check(cudaStreamIsCapturing(all.other, &status));
         }},
#if CUDART_VERSION >= 12080
        {"cudaStreamGetDevice",
         [&] {
           int device = 0;
           check(cudaStreamGetDevice(all.other, &device));
         }},
#endif
        {"cudaStreamDestroy", [&] { check(cudaStreamDestroy(stream)); }},
        {"cudaEventDestroy", [&] { check(cudaEventDestroy(event)); }},
  };
  fmt::print("\n| call of a new thread | it gets a context |\n| --- | --- |\n");
  for (const auto& [name, call] : calls)
    std::jthread([&name, &call] {
      try {
        call();
        fmt::print("| {} | {} |\n", name, has_context() ? "yes" : "no");
      } catch (const std::exception& error) {
        fmt::print("| {} | {} |\n", name, error.what());
      }
    });
}

// Which calls wait for a kernel that runs on a stream that they have nothing to do with.
void print_waits(const Objects& all) {
  void* device = nullptr;
  void* host = std::aligned_alloc(4096, all.bytes);
  std::fill_n(static_cast<char*>(host), all.bytes, '\1');
  std::vector<char> pageable(all.bytes);
  const std::vector<std::pair<const char*, Call>> calls{
      {"cudaMalloc", [&] { check(cudaMalloc(&device, all.bytes)); }},
      {"cudaFree", [&] { check(cudaFree(device)); }},
      {"cudaHostRegister",
       [&] { check(cudaHostRegister(host, all.bytes, cudaHostRegisterPortable)); }},
      {"cudaHostUnregister", [&] { check(cudaHostUnregister(host)); }},
      {"cudaMemcpyAsync of registered memory",
       [&] {
         check(cudaMemcpyAsync(all.device, all.host, all.bytes, cudaMemcpyHostToDevice, all.other));
       }},
      {"cudaMemcpyAsync of pageable memory",
       [&] {
         check(cudaMemcpyAsync(all.device, pageable.data(), all.bytes, cudaMemcpyHostToDevice,
                               all.other));
       }},
      {"first launch of a kernel", [&] { launch_nothing(all.other); }},
      {"cudaStreamCreateWithFlags, cudaStreamDestroy",
       [] {
         cudaStream_t stream = nullptr;
         check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
         check(cudaStreamDestroy(stream));
       }},
      {"cudaEventDestroy of a recorded event",
       [&] {
         cudaEvent_t event = nullptr;
         check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
         check(cudaEventRecord(event, all.busy));
         check(cudaEventDestroy(event));
       }},
  };
  constexpr double kMs = 300;
  fmt::print(
      "\n| call, of 64 MiB, beside a kernel of {} ms | ms | it waits for the kernel |\n| --- | --- "
      "| --- |\n",
      kMs);
  for (const auto& [name, call] : calls) {
    check(cudaDeviceSynchronize());
    spin(kMs, all.busy);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto begin = std::chrono::steady_clock::now();
    call();
    const double ms = ms_since(begin);
    fmt::print("| {} | {:.2f} | {} |\n", name, ms, ms > kMs / 2 ? "yes" : "no");
  }
  check(cudaDeviceSynchronize());
}

// How much a stream takes before the caller waits.
void print_depths(const Objects& all) {
  constexpr int kMost = 4000;
  const std::vector<std::pair<const char*, Call>> calls{
      {"kernels", [&] { spin(0.0001, all.busy); }},
      {"copies",
       [&] {
         check(cudaMemcpyAsync(all.device, all.host, 256, cudaMemcpyHostToDevice, all.busy));
       }},
      {"records of events", [&] { check(cudaEventRecord(all.event, all.busy)); }},
      {"waits for events", [&] { check(cudaStreamWaitEvent(all.busy, all.event, 0)); }},
      {"host functions",
       [&] {
         check(cudaLaunchHostFunc(
             all.busy, [](void*) {}, nullptr));
       }},
  };
  fmt::print(
      "\n| queued behind a kernel that runs | how many until the caller waits |\n| --- | --- |\n");
  for (const auto& [name, call] : calls) {
    check(cudaDeviceSynchronize());
    spin(1500, all.busy);
    std::atomic<int> queued = 0;
    const std::jthread caller([&queued, &call] {
      try {
        for (; queued < kMost; ++queued) call();
      } catch (const std::exception& error) {
        fmt::print("{}\n", error.what());
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(750));
    const int count = queued;
    fmt::print("| {} | {} |\n", name,
               count == kMost ? fmt::format("more than {}", kMost) : std::to_string(count));
  }
  check(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  try {
    print_first_calls();
    const Objects all;
    print_threads(all);
    print_waits(all);
    print_depths(all);
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock_driver_rules: {}\n", error.what());
    return 1;
  }
}
