// How fast do sample numbers come, on one core? A loader asks for a batch's worth at a time, and
// nothing here should ever be what it waits for.
#include <array>
#include <cstdint>
#include <memory>

#include <benchmark/benchmark.h>

#include "src/order/operations.hpp"

namespace penstock::order {
namespace {

constexpr std::size_t kBatch = 1'024;
constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 50;

// The ceiling: one plain loop that writes as many SampleIds.
void BM_Ceiling_PlainLoop(benchmark::State& state) {
  std::array<SampleId, kBatch> out;
  std::uint64_t next = 0;
  for (auto _ : state) {
    for (SampleId& sample : out) sample = {next++, 0, 0};
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(BM_Ceiling_PlainLoop);

// In order, batch by batch, iteration after iteration.
void run_through(benchmark::State& state, const order::OrderPtr& order) {
  const auto cursor = order->open();
  std::array<SampleId, kBatch> out;
  std::uint32_t iteration = 0;
  std::uint64_t first = 0;
  std::uint64_t numbers = 0;
  for (auto _ : state) {
    const std::size_t read = cursor->read(iteration, first, 1, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    numbers += read;
    first += read;
    if (read < kBatch) {
      ++iteration;
      first = 0;
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(numbers));
}

void BM_Range(benchmark::State& state) { run_through(state, range(kHuge)); }
BENCHMARK(BM_Range);

void BM_Take(benchmark::State& state) { run_through(state, take(range(kHuge), kHuge / 2)); }
BENCHMARK(BM_Take);

void BM_Shard(benchmark::State& state) { run_through(state, shard(range(kHuge), 8, 3)); }
BENCHMARK(BM_Shard);

void BM_Repeat(benchmark::State& state) {
  run_through(state, repeat(range(static_cast<std::uint64_t>(state.range(0)))));
}
BENCHMARK(BM_Repeat)->Arg(1'000)->Arg(1'000'000);

void BM_Shuffle(benchmark::State& state) {
  run_through(state, shuffle(range(static_cast<std::uint64_t>(state.range(0))), RandomKey(7, 0)));
}
BENCHMARK(BM_Shuffle)->Arg(1'000'000)->Arg(1'000'000'000);

void BM_ShuffleWindow(benchmark::State& state) {
  run_through(state, shuffle_window(repeat(range(kMillion)), RandomKey(7, 0),
                                    static_cast<std::uint64_t>(state.range(0))));
}
BENCHMARK(BM_ShuffleWindow)->Arg(100)->Arg(10'000)->Arg(100'000);

// A case we lose: the shards of a window each compute the whole of it.
void BM_ShardOfShuffleWindow(benchmark::State& state) {
  run_through(state, shard(shuffle_window(repeat(range(kMillion)), RandomKey(7, 0), 10'000), 8, 3));
}
BENCHMARK(BM_ShardOfShuffleWindow);

// Opening a cursor far inside, until its first sample.
void BM_ShuffleWindow_Restore(benchmark::State& state) {
  const order::OrderPtr order = shuffle_window(repeat(range(kMillion)), RandomKey(7, 0),
                                               static_cast<std::uint64_t>(state.range(0)));
  std::array<SampleId, 1> out;
  std::uint64_t first = 100 * kMillion;
  for (auto _ : state) {
    order->open()->read(0, first, 1, out);
    benchmark::DoNotOptimize(out.data());
    first += 12'345;
  }
}
BENCHMARK(BM_ShuffleWindow_Restore)
    ->Arg(100)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace penstock::order
