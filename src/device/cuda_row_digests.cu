// Hashes of rows on a GPU: a thread for a short row of a field, a warp for a long one.
#include <algorithm>

#include "src/core/row_identity.hpp"
#include "src/device/cuda_launch.hpp"
#include "src/device/cuda_row_digests.hpp"
#include "src/device/xxh3.hpp"

namespace penstock::device {

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr std::uint64_t kMaxBlocks = 1U << 16;
// A warp reads a block in so many goes, four stripes at a time: lane 8 g + i has word i of stripe g.
constexpr unsigned kStripesAtOnce = kWarp / xxh3::kLanes;
constexpr unsigned kGoes = xxh3::kStripesPerBlock / kStripesAtOnce;

__device__ std::uint64_t seed_of(const DigestRow& row) { return core::row_seed(row.low, row.high); }
__device__ void set_hash(DigestRow& row, const xxh3::Hash128& hash) {
  row.low = hash.low;
  row.high = hash.high;
}

template <bool kAligned>
__device__ std::uint64_t load(const std::uint8_t* at) {
  return kAligned ? xxh3::read64_aligned(at) : xxh3::read64(at);
}

/// A long row, by a warp, all of which gets the result. The lanes of XXH3 are those of the warp, and come four times: the
/// stripes of a block only add up, until its end.
template <bool kAligned>
__device__ xxh3::Hash128 hash_by_warp(const std::uint8_t* data, std::uint64_t bytes,
                                      std::uint64_t seed) {
  const unsigned own = threadIdx.x % kWarp;
  const unsigned lane = own % xxh3::kLanes;
  const unsigned group = own / xxh3::kLanes;
  const auto from_neighbour = [](std::uint64_t value) { return __shfl_xor_sync(kAll, value, 1); };
  const auto over_groups = [](std::uint64_t value) {
    value += __shfl_xor_sync(kAll, value, 8);
    return value + __shfl_xor_sync(kAll, value, 16);
  };

  std::uint64_t secret[kGoes];
  for (unsigned go = 0; go < kGoes; ++go)
    secret[go] = xxh3::secret_word(go * kStripesAtOnce + group + lane, seed);
  const std::uint64_t scramble = xxh3::secret_at(xxh3::kScrambleSecret + 8 * lane, seed);

  const xxh3::Blocks blocks(bytes);
  const std::uint8_t* at = data + 8 * own;
  std::uint64_t sum = xxh3::initial(lane);
  for (std::uint64_t block = 0; block < blocks.whole; ++block, at += xxh3::kBlockBytes) {
    std::uint64_t words[kGoes];
#pragma unroll
    for (unsigned go = 0; go < kGoes; ++go)
      words[go] = load<kAligned>(at + go * kStripesAtOnce * xxh3::kStripeBytes);
    std::uint64_t products = 0;
    std::uint64_t total = 0;
#pragma unroll
    for (unsigned go = 0; go < kGoes; ++go) {
      products += xxh3::stripe_product(words[go], secret[go]);
      total += words[go];
    }
    sum = xxh3::scrambled(sum + over_groups(products + from_neighbour(total)), scramble);
  }

  std::uint64_t products = 0;
  std::uint64_t total = 0;
  for (unsigned go = 0; go < kGoes; ++go) {
    if (go * kStripesAtOnce + group >= blocks.stripes_behind) break;
    const std::uint64_t word = load<kAligned>(at + go * kStripesAtOnce * xxh3::kStripeBytes);
    products += xxh3::stripe_product(word, secret[go]);
    total += word;
  }
  if (group == 0) {  // where the last stripe begins depends on the length
    const std::uint64_t word = xxh3::read64(data + bytes - xxh3::kStripeBytes + 8 * lane);
    products +=
        xxh3::stripe_product(word, xxh3::secret_at(xxh3::kLastStripeSecret + 8 * lane, seed));
    total += word;
  }
  sum += over_groups(products + from_neighbour(total));

  const auto merged = [&](std::uint64_t begin, unsigned from) {
    const std::uint64_t keyed = sum ^ xxh3::secret_at(from + 8 * lane, seed);
    std::uint64_t pairs = xxh3::folded_product(keyed, from_neighbour(keyed));
    pairs += __shfl_xor_sync(kAll, pairs, 2);
    pairs += __shfl_xor_sync(kAll, pairs, 4);
    return xxh3::avalanche(begin + pairs);
  };
  const xxh3::Hash128 begin = xxh3::merge_begin(bytes);
  return {merged(begin.low, xxh3::kLowSecret), merged(begin.high, xxh3::kHighSecret)};
}

__global__ void __launch_bounds__(kThreads) hash_identities(DigestRow* rows, std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < count;
       i += gridDim.x * kThreads) {
    DigestRow& row = rows[i];
    const core::RowIdentity identity = core::row_identity(row.step, row.row, row.sample);
    set_hash(row, xxh3::hash_unlaned(reinterpret_cast<const std::uint8_t*>(identity.words),
                                     sizeof identity.words, core::row_seed(0, 0)));
    if (row.sample.draw != 0)
      set_hash(row, xxh3::hash_unlaned(reinterpret_cast<const std::uint8_t*>(&row.sample.draw),
                                       sizeof row.sample.draw, seed_of(row)));
  }
}

__global__ void __launch_bounds__(kThreads)
    hash_short(const std::uint8_t* field, std::uint64_t row_bytes, DigestRow* rows,
               std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads)
    set_hash(rows[i], xxh3::hash_unlaned(field + i * row_bytes, row_bytes, seed_of(rows[i])));
}

__global__ void __launch_bounds__(kThreads)
    hash_long(const std::uint8_t* field, std::uint64_t row_bytes, DigestRow* rows,
              std::uint64_t count) {
  constexpr unsigned kRowsPerBlock = kThreads / kWarp;
  for (std::uint64_t i = blockIdx.x * kRowsPerBlock + threadIdx.x / kWarp; i < count;
       i += gridDim.x * kRowsPerBlock) {
    const std::uint8_t* const data = field + i * row_bytes;
    // Every lane has read it before any lane gets to the end: the shuffles depend on it.
    const std::uint64_t seed = seed_of(rows[i]);
    const xxh3::Hash128 hash = reinterpret_cast<std::uintptr_t>(data) % 8 == 0
                                   ? hash_by_warp<true>(data, row_bytes, seed)
                                   : hash_by_warp<false>(data, row_bytes, seed);
    if (threadIdx.x % kWarp == 0) set_hash(rows[i], hash);
  }
}

// One warp.
__global__ void __launch_bounds__(kWarp)
    sum_rows(const DigestRow* rows, std::uint64_t count, Digest* sum) {
  const auto number = [](std::uint64_t low, std::uint64_t high) {
    return static_cast<unsigned __int128>(high) << 64 | low;
  };
  unsigned __int128 own = 0;
  for (std::uint64_t i = threadIdx.x; i < count; i += kWarp)
    own += number(rows[i].low, rows[i].high);
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const std::uint64_t low = __shfl_xor_sync(kAll, static_cast<std::uint64_t>(own), lanes);
    const std::uint64_t high = __shfl_xor_sync(kAll, static_cast<std::uint64_t>(own >> 64), lanes);
    own += number(low, high);
  }
  if (threadIdx.x == 0) {
    sum->low = static_cast<std::uint64_t>(own);
    sum->high = static_cast<std::uint64_t>(own >> 64);
  }
}

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>(std::min((threads + kThreads - 1) / kThreads, kMaxBlocks));
}

}  // namespace

void enqueue_row_digests(const std::byte* base, std::span<const HashedField> fields,
                         DigestRow* rows, std::uint64_t count, Digest* sum, cudaStream_t stream) {
  if (count > 0) {
    launch(hash_identities, blocks_for(count), kThreads, 0, stream, rows, count);
    for (const HashedField& field : fields) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(base + field.offset);
      if (field.row_bytes <= xxh3::kMostUnlaned)
        launch(hash_short, blocks_for(count), kThreads, 0, stream, bytes, field.row_bytes, rows,
               count);
      else
        launch(hash_long, blocks_for(count * kWarp), kThreads, 0, stream, bytes, field.row_bytes,
               rows, count);
    }
  }
  launch(sum_rows, 1, kWarp, 0, stream, rows, count, sum);
}

}  // namespace penstock::device
