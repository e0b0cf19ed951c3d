// Tokens in blocks and packed rows: what does a loader deliver beside a bare memcpy of the same rows, and how fast are rows
// computed from lengths? One thread.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <penstock/penstock.hpp>

namespace penstock {
namespace {

constexpr std::uint64_t kTokens = std::uint64_t{1} << 27;
constexpr std::int64_t kLength = 4096;
constexpr std::uint64_t kBatch = 128;
constexpr std::size_t kSlots = 3;  // as the loader has

const std::vector<std::uint16_t>& tokens() {
  static const std::vector<std::uint16_t> all = [] {
    std::vector<std::uint16_t> made(kTokens);
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::uint16_t>(i * 2654435761U >> 7);
    return made;
  }();
  return all;
}

// Lengths as texts have them: exponential, 500 in the mean.
std::vector<std::uint64_t> random_offsets(std::uint64_t all) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> length(1.0 / 500);
  std::vector<std::uint64_t> offsets{0};
  while (offsets.back() < all)
    offsets.push_back(
        std::min(all, offsets.back() + 1 + static_cast<std::uint64_t>(length(random))));
  return offsets;
}

void count(benchmark::State& state, std::uint64_t rows, std::size_t row_bytes) {
  state.SetItemsProcessed(static_cast<std::int64_t>(rows * kLength));
  state.SetBytesProcessed(static_cast<std::int64_t>(rows * row_bytes));
}

void deliver(benchmark::State& state, const Dataset& rows, std::size_t row_bytes) {
  Loader loader = rows.shuffle({.seed = 7})
                      .repeat()
                      .batch(kBatch, {.remainder = Remainder::drop})
                      .loader({.threads = 1});
  (void)loader.next();
  std::uint64_t samples = 0;
  for (auto _ : state) samples += (*loader.next())[0].size();
  count(state, samples, row_bytes);
}

// `copy(row, to)` writes row `row` of `rows` into a slot.
template <class Copy>
void copy_rows(benchmark::State& state, std::uint64_t rows, std::size_t row_bytes, Copy&& copy) {
  std::vector<std::vector<std::byte>> slots(kSlots, std::vector<std::byte>(kBatch * row_bytes));
  std::mt19937_64 random(7);
  std::uint64_t samples = 0;
  for (auto _ : state) {
    auto& slot = slots[samples / kBatch % kSlots];
    for (std::uint64_t k = 0; k < kBatch; ++k) copy(random() % rows, slot.data() + k * row_bytes);
    benchmark::DoNotOptimize(slot.data());
    benchmark::ClobberMemory();
    samples += kBatch;
  }
  count(state, samples, row_bytes);
}

constexpr std::size_t kBlockBytes = 2 * kLength * sizeof(std::uint16_t);

void BM_Blocks_Ceiling_Memcpy(benchmark::State& state) {
  const std::uint16_t* const data = tokens().data();
  copy_rows(state, (kTokens - 1) / kLength, kBlockBytes, [data](std::uint64_t row, std::byte* to) {
    std::memcpy(to, data + row * kLength, kBlockBytes / 2);
    std::memcpy(to + kBlockBytes / 2, data + row * kLength + 1, kBlockBytes / 2);
  });
}
BENCHMARK(BM_Blocks_Ceiling_Memcpy)->UseRealTime();

void BM_Blocks_Loader(benchmark::State& state) {
  const SourcePtr all =
      source::documents(source::column("tokens", std::span(tokens())), {0, kTokens});
  deliver(state, Dataset(all).blocks({.length = kLength, .dtype = DType::u16}), kBlockBytes);
}
BENCHMARK(BM_Blocks_Loader)->UseRealTime();

// Rows of four fields i64, of a part of the documents, so that all of them fit into memory for the ceiling.
constexpr std::uint64_t kPackedTokens = std::uint64_t{1} << 24;
constexpr std::size_t kRowBytes = 4 * kLength * sizeof(std::int64_t);

Dataset packed() {
  const SourcePtr all =
      source::documents(source::column("tokens", std::span(tokens()).first(kPackedTokens)),
                        random_offsets(kPackedTokens));
  return Dataset(all).pack({.length = kLength});
}

void BM_Packed_Ceiling_Memcpy(benchmark::State& state) {
  const Dataset rows = packed();
  const std::uint64_t count = rows.source().size();
  std::vector<std::byte> made(count * kRowBytes);
  Record record;
  for (std::uint64_t row = 0; row < count; ++row) {
    (void)rows.source().read(row, record);
    std::byte* to = made.data() + row * kRowBytes;
    for (const ConstTensorView& field : record.views()) {
      std::memcpy(to, field.raw(), field.byte_size());
      to += field.byte_size();
    }
  }
  copy_rows(state, count, kRowBytes, [&](std::uint64_t row, std::byte* to) {
    std::memcpy(to, made.data() + row * kRowBytes, kRowBytes);
  });
}
BENCHMARK(BM_Packed_Ceiling_Memcpy)->UseRealTime();

void BM_Packed_Loader(benchmark::State& state) { deliver(state, packed(), kRowBytes); }
BENCHMARK(BM_Packed_Loader)->UseRealTime();

void make_rows(benchmark::State& state, PackMethod method) {
  const SourcePtr all =
      source::documents(source::column("tokens", std::span(tokens())), random_offsets(kTokens));
  for (auto _ : state)
    benchmark::DoNotOptimize(sequence::pack(all, {.length = kLength, .method = method}));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(all->size()));
}
BENCHMARK_CAPTURE(make_rows, best_fit, PackMethod::best_fit)->UseRealTime();
BENCHMARK_CAPTURE(make_rows, first_fit, PackMethod::first_fit)->UseRealTime();
BENCHMARK_CAPTURE(make_rows, wrap, PackMethod::wrap)->UseRealTime();

}  // namespace
}  // namespace penstock
