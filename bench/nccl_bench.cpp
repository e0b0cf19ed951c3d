// What do this library's collectives on GPUs cost over NCCL's own call for the same bytes?
//
//   penstock_nccl_bench [MIB [ROUNDS]]     the largest size, 256; rounds of every row, 20
//
// One thread for every GPU of this machine. Started by torchrun (its variables are enough) one rank
// for each process instead, so that two processes can share a single GPU, which NCCL allows where
// each has its own NCCL_HOSTID: that shows what calls cost, and no speed of any link.
//
// The rows of one size are taken in turn, so that what the machine does hits all alike. Medians;
// algbw is bytes over time, busbw = algbw * 2 (n - 1) / n, as nccl-tests define it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <penstock/core/process.hpp>
#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>

#include "machine.hpp"
#include "resnet50_gradients.hpp"
#include "src/core/half.hpp"
#include "src/device/cuda_owners.hpp"
#include "src/sync/nccl/nccl_library.hpp"

namespace penstock::bench {
namespace {

using device::check;
using device::CudaStream;
using device::CurrentDevice;
using device::DeviceMemory;

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Settings {
  std::size_t most_bytes = 256 * kMiB;
  int rounds = 20;
};

void check(ncclResult_t status) {
  if (status != ncclSuccess)
    throw std::runtime_error(
        fmt::format("NCCL: {}", sync::NcclLibrary::get().get_error_string(status)));
}

/// One rank: what it takes to make the same call twice, by this library and by NCCL.
class Rank {
 public:
  Rank(std::unique_ptr<Communicator> communicator, const std::string& raw_id,
       const Settings& settings)
      : settings_(settings),
        ours_(std::move(communicator)),
        here_(ours_->device().index),
        stream_(ours_->device().index),
        memory_(ours_->device().index, memory_bytes()),
        raw_memory_(ours_->device().index, settings.most_bytes) {
    check(cudaMemset(memory_.data(), 0, memory_bytes()));
    check(cudaMemset(raw_memory_.data(), 0, settings.most_bytes));
    check(cudaDeviceSynchronize());
    ncclUniqueId id{};
    std::memcpy(&id, raw_id.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    check(nccl_.comm_init_rank_config(&raw_, static_cast<int>(ours_->size()), id,
                                      static_cast<int>(ours_->rank()), &config));
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() { (void)nccl_.comm_destroy(raw_); }

  void measure() {
    if (first())
      fmt::print("{:<34}{:>9}{:>8}{:>11}{:>11}{:>9}{:>9}{:>8}\n", "", "MiB", "rounds", "us",
                 "raw us", "algbw", "busbw", "of raw");
    for (const std::size_t bytes : {kMiB / 16, kMiB, 16 * kMiB, 256 * kMiB}) {
      if (bytes > settings_.most_bytes) continue;
      all_reduce("all_reduce f32", DType::f32, ncclFloat32, bytes);
      all_reduce("all_reduce bf16", DType::bf16, ncclBfloat16, bytes);
    }
    const std::vector<std::size_t> counts = layers();
    gradients("161 gradients of ResNet-50", counts, kApart);
    gradients("the same in one flat buffer", counts, 1);
  }

 private:
  // In elements. Gradients that lie apart cannot be reduced where they are, and are packed.
  static constexpr std::size_t kApart = 64;

  static std::size_t after(std::size_t at, std::size_t count, std::size_t apart) {
    return apart == 1 ? at + count : (at + count) / apart * apart + apart;
  }
  /// ResNet-50's, made narrower where the largest size is smaller than its 102 MB.
  [[nodiscard]] std::vector<std::size_t> layers() const {
    constexpr std::size_t kWhole = 128 * kMiB;
    std::vector<std::size_t> counts = resnet50_gradients();
    for (std::size_t& count : counts)
      count = std::max<std::size_t>(1, count * std::min(settings_.most_bytes, kWhole) / kWhole);
    return counts;
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t end = 0;
    for (const std::size_t count : layers()) end = after(end, count, kApart);
    return std::max(settings_.most_bytes, end * sizeof(float));
  }

  [[nodiscard]] bool first() const { return ours_->rank() == 0; }

  void all_reduce(const std::string& name, DType dtype, ncclDataType_t raw_type,
                  std::size_t bytes) {
    const std::size_t count = bytes / size_of(dtype);
    const TensorView data(memory_.data(), dtype, {static_cast<std::int64_t>(count)});
    const auto reduce = [&] { ours_->all_reduce(data, ReduceOp::sum, stream_.get()); };
    const auto reduce_raw = [&] { raw_all_reduce(count, raw_type); };
    verify(name, memory_.data(), dtype, count, reduce);
    verify(name + ", NCCL's own", raw_memory_.data(), dtype, count, reduce_raw);
    compare(name, bytes, reduce, reduce_raw);
  }

  void gradients(const std::string& name, const std::vector<std::size_t>& counts,
                 std::size_t apart) {
    std::vector<Gradient> list;
    std::size_t at = 0;
    std::size_t total = 0;
    for (const std::size_t count : counts) {
      list.push_back({fmt::format("g{}", list.size()),
                      TensorView(memory_.data() + at * sizeof(float), DType::f32,
                                 {static_cast<std::int64_t>(count)})});
      at = after(at, count, apart);
      total += count;
    }
    GradientSync sync(*ours_, list, {.combine = Combine::sum});
    const auto reduce = [&] {
      for (std::size_t i = list.size(); i-- > 0;) sync.ready(i, stream_.get());
      sync.wait(stream_.get());
    };
    const auto largest =
        static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin());
    verify(name, list[largest].data.raw(), DType::f32, counts[largest], reduce);
    compare(name, total * sizeof(float), reduce, [&] { raw_all_reduce(total, ncclFloat32); });
  }

  void raw_all_reduce(std::size_t count, ncclDataType_t type) {
    check(nccl_.all_reduce(raw_memory_.data(), raw_memory_.data(), count, type, ncclSum, raw_,
                           stream_.get()));
  }

  /// Every rank gives its number plus one, and must get the sum; then zeros, whose sums stay zeros.
  void verify(const std::string& name, std::byte* at, DType dtype, std::size_t count,
              const std::function<void()>& reduce) {
    const auto n = static_cast<float>(ours_->size());
    const std::size_t unit = size_of(dtype);
    const auto put = [&](float value, std::byte* to) {
      const core::Bfloat16 narrow = core::to_bfloat16(value);
      if (dtype == DType::f32)
        std::memcpy(to, &value, sizeof value);
      else
        std::memcpy(to, &narrow, sizeof narrow);
    };
    std::vector<std::byte> host(count * unit);
    std::vector<std::byte> sum(unit);
    for (std::size_t i = 0; i < count; ++i)
      put(static_cast<float>(ours_->rank() + 1), host.data() + i * unit);
    put(n * (n + 1) / 2, sum.data());
    check(cudaMemcpy(at, host.data(), host.size(), cudaMemcpyHostToDevice));
    check(cudaDeviceSynchronize());  // a copy of pageable memory may still be under way
    reduce();
    check(cudaStreamSynchronize(stream_.get()));
    check(cudaMemcpy(host.data(), at, host.size(), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < count; ++i)
      if (std::memcmp(host.data() + i * unit, sum.data(), unit) != 0)
        throw std::runtime_error(fmt::format("{} gives a wrong sum at {}", name, i));
    check(cudaMemset(at, 0, host.size()));
    check(cudaDeviceSynchronize());
  }

  void compare(const std::string& name, std::size_t bytes, const std::function<void()>& reduce,
               const std::function<void()>& reduce_raw) {
    std::vector<double> mine;
    std::vector<double> raw;
    for (int round = 0; round < settings_.rounds; ++round) {
      mine.push_back(seconds_of(reduce));
      raw.push_back(seconds_of(reduce_raw));
    }
    if (!first()) return;
    const double took = median(mine);
    const double algbw = static_cast<double>(bytes) / took * 1e-9;
    const double n = ours_->size();
    fmt::print("{:<34}{:>9.2f}{:>8}{:>11.1f}{:>11.1f}{:>9.2f}{:>9.2f}{:>7.0f}%\n", name,
               static_cast<double>(bytes) / kMiB, settings_.rounds, took * 1e6, median(raw) * 1e6,
               algbw, algbw * 2 * (n - 1) / n, 100 * median(raw) / took);
    std::fflush(stdout);
  }

  /// Of one call among several, so that starting them is part of it and waiting for the host is not.
  double seconds_of(const std::function<void()>& reduce) {
    constexpr int kCalls = 4;
    ours_->barrier();
    const std::int64_t begin = now_ns();
    for (int call = 0; call < kCalls; ++call) reduce();
    check(cudaStreamSynchronize(stream_.get()));
    return static_cast<double>(now_ns() - begin) * 1e-9 / kCalls;
  }

  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  const Settings settings_;
  const sync::NcclLibrary& nccl_ = sync::NcclLibrary::get();
  std::unique_ptr<Communicator> ours_;
  CurrentDevice here_;
  CudaStream stream_;
  // Of everything that is reduced: allocating while other ranks reduce may have to wait for them.
  DeviceMemory memory_;
  DeviceMemory raw_memory_;
  ncclComm_t raw_ = nullptr;
};

void title(std::uint32_t ranks, const char* how) {
  fmt::print("{} ranks, {}; {}; commit {}\n", ranks, how, cpu_model(), PENSTOCK_BENCH_COMMIT);
}

void in_one_process(const Settings& settings) {
  const auto size = static_cast<std::uint32_t>(gpu_count());
  const std::string id = nccl_unique_id();
  const std::string raw_id = nccl_unique_id();
  title(size, "a thread each");
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const Device device{Device::Kind::cuda, static_cast<int>(rank)};
        Rank(nccl_communicator(id, rank, size, device), raw_id, settings).measure();
      } catch (const std::exception& error) {  // the other ranks wait for this one
        fmt::print(stderr, "penstock_nccl_bench: rank {}: {}\n", rank, error.what());
        std::_Exit(1);
      }
    });
}

void one_of_several_processes(const Launch& launch, const Settings& settings) {
  const auto rendezvous = Rendezvous::from_environment();
  const Device device{Device::Kind::cuda, static_cast<int>(launch.local_rank) % gpu_count()};
  if (launch.rank == 0) rendezvous->set("raw id", nccl_unique_id());
  const std::string raw_id = rendezvous->get("raw id");
  if (launch.rank == 0) title(launch.world, "a process each");
  Rank(nccl_communicator(rendezvous, device), raw_id, settings).measure();
}

int run(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.most_bytes = std::strtoull(argv[1], nullptr, 10) * kMiB;
  if (argc > 2) settings.rounds = std::atoi(argv[2]);
  const Launch launch = Launch::from_environment();
  if (settings.most_bytes == 0 || settings.rounds < 1) {
    fmt::print(stderr, "usage: penstock_nccl_bench [MIB [ROUNDS]], both at least 1\n");
    return 2;
  }
  if (gpu_count() < (launch.world > 1 ? 1 : 2))
    throw Error(fmt::format(
        "expected two GPUs or more, found {}: on one, start two processes with torchrun's "
        "variables and an NCCL_HOSTID for each, as scripts/gpu-check does",
        gpu_count()));
  if (launch.world > 1)
    one_of_several_processes(launch, settings);
  else
    in_one_process(settings);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
#ifndef NDEBUG
  fmt::print(
      stderr,
      "{}: expected a build of penstock with NDEBUG, found a debug build, whose numbers mean "
      "nothing: configure with -DCMAKE_BUILD_TYPE=Release\n",
      argv[0]);
  return 2;
#endif
  try {
    return penstock::bench::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock_nccl_bench: {}\n", error.what());
    return 1;
  }
}
