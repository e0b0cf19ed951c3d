// What does the pipeline itself cost? 16-byte samples that need no work, one thread, nanoseconds a
// sample.
#include <cstdint>
#include <cstring>
#include <vector>

#include <benchmark/benchmark.h>

#include <penstock/penstock.hpp>

namespace penstock {
namespace {

constexpr std::uint64_t kSamples = std::uint64_t{1} << 20;
constexpr std::size_t kBytes = 16;

void count(benchmark::State& state, std::uint64_t samples) {
  state.SetItemsProcessed(static_cast<std::int64_t>(samples));
  state.counters["ns/sample"] =
      benchmark::Counter(static_cast<double>(samples) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The ceiling: the same records from the same source, copied into a batch by one plain loop.
void BM_Ceiling_PlainLoop(benchmark::State& state) {
  const auto batch = static_cast<std::uint64_t>(state.range(0));
  const SourcePtr source = source::numbers(kSamples, kBytes);
  std::vector<std::byte> slot(batch * kBytes);
  Record record;
  std::uint64_t number = 0;
  std::uint64_t samples = 0;
  for (auto _ : state) {
    for (std::uint64_t row = 0; row < batch; ++row) {
      (void)source->read(number++ % kSamples, record);
      std::memcpy(slot.data() + row * kBytes, record[0].raw(), kBytes);
    }
    benchmark::DoNotOptimize(slot.data());
    samples += batch;
  }
  count(state, samples);
}
BENCHMARK(BM_Ceiling_PlainLoop)->Arg(256)->Arg(4096)->UseRealTime();

void deliver(benchmark::State& state, const Dataset& dataset) {
  Loader loader = dataset.batch(static_cast<std::uint64_t>(state.range(0))).loader({.threads = 1});
  (void)loader.next();
  std::uint64_t samples = 0;
  for (auto _ : state) samples += (*loader.next())[0].size();
  count(state, samples);
}

void BM_Loader_InOrder(benchmark::State& state) {
  deliver(state, numbers(kSamples, kBytes).repeat());
}
BENCHMARK(BM_Loader_InOrder)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096)->UseRealTime();

void BM_Loader_Shuffle(benchmark::State& state) {
  deliver(state, numbers(kSamples, kBytes).shuffle({.seed = 7}).repeat());
}
BENCHMARK(BM_Loader_Shuffle)->Arg(256)->Arg(4096)->UseRealTime();

void BM_Loader_ShuffleWindow(benchmark::State& state) {
  deliver(state, numbers(kSamples, kBytes).shuffle({.seed = 7, .buffer = 10'000}).repeat());
}
BENCHMARK(BM_Loader_ShuffleWindow)->Arg(256)->Arg(4096)->UseRealTime();

void BM_Loader_UserFunction(benchmark::State& state) {
  const auto copy = map_function(
      {.name = "copy", .inputs = {"number"}, .outputs = {{"number", DType::u64, {kBytes / 8}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
        std::memcpy(out[0].raw(), in[0].raw(), kBytes);
      });
  deliver(state, numbers(kSamples, kBytes).repeat().map(copy));
}
BENCHMARK(BM_Loader_UserFunction)->Arg(256)->Arg(4096)->UseRealTime();

}  // namespace
}  // namespace penstock
