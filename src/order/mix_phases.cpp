#include "src/order/mix_phases.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/order/positions.hpp"

namespace penstock::order {

namespace {

using Sizes = std::span<const std::optional<std::uint64_t>>;

// What is left of each input, as blocks: so many whole ones, and the share of one more that all can
// fill.
struct Supply {
  std::uint64_t blocks = kEndless;
  std::uint64_t part = 0;  // of `of`
  std::uint64_t of = 1;
};

Supply supply_of(Sizes sizes, const MixPhase& phase) {
  Supply supply;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (!sizes[k] || phase.quotas[k] == 0) continue;
    const std::uint64_t left = *sizes[k] - phase.begin[k];
    const Supply own{left / phase.quotas[k], left % phase.quotas[k], phase.quotas[k]};
    if (own.blocks < supply.blocks ||
        (own.blocks == supply.blocks && own.part * supply.of < supply.part * own.of))
      supply = own;
  }
  return supply;
}

// What the phase takes of each input up to position `end`.
std::vector<std::uint64_t> taken_at(const MixPhase& phase, std::uint64_t end,
                                    const RandomKey& key) {
  std::vector<std::uint64_t> taken = phase.begin;
  const std::uint64_t blocks = std::min((end - phase.start) / phase.block, phase.whole_blocks);
  for (std::size_t k = 0; k < taken.size(); ++k) taken[k] += blocks * phase.quotas[k];
  const std::uint64_t rest = end - phase.start - blocks * phase.block;
  if (rest == 0) return taken;
  MixBlock block;
  block.fill(phase, blocks, key, 0);
  for (std::uint64_t at = 0; at < rest; ++at) ++taken[block.turns[at].input];
  return taken;
}

bool is_spent(const std::optional<std::uint64_t>& size, std::uint64_t taken) {
  return size && *size == taken;
}

}  // namespace

void MixBlock::fill(const MixPhase& phase, std::uint64_t number, const RandomKey& key,
                    std::uint32_t iteration) {
  turns.clear();
  const std::vector<std::uint32_t>& quotas = phase.quotas_of(number);
  for (std::uint32_t input = 0; input < quotas.size(); ++input)
    turns.insert(turns.end(), quotas[input], Turn{input, 0});
  const std::uint64_t first = phase.start + number * phase.block;
  for (std::uint64_t left = turns.size(); left > 1; --left)
    std::swap(turns[left - 1].input,
              turns[scale_to(key.u64(first + left - 1, iteration, 0), left)].input);
  std::vector<std::uint32_t> ranks(quotas.size());
  for (Turn& turn : turns) turn.rank = ranks[turn.input]++;
}

std::vector<std::uint32_t> mix_quotas(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto share = [&](std::size_t k, double block) { return weights[k] / sum * block; };
  const auto is_exact = [&](double block) {
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double places = share(k, block);
      if (std::abs(places - std::round(places)) > 1e-9 * block ||
          (weights[k] > 0 && std::round(places) < 1))
        return false;
    }
    return true;
  };
  std::uint32_t block = kLeastMixBlock;
  while (block < kMostMixBlock && !is_exact(block)) ++block;

  // The largest remainder: rounded down, and the places that are left go where most was cut off.
  std::vector<std::uint32_t> quotas(weights.size());
  std::vector<std::pair<double, std::size_t>> cut;
  std::uint32_t used = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] <= 0) continue;
    const double places = share(k, block);
    quotas[k] = std::max(static_cast<std::uint32_t>(std::floor(places + 1e-9 * block)), 1U);
    used += quotas[k];
    cut.emplace_back(quotas[k] - places, k);
  }
  std::ranges::sort(cut);
  for (std::size_t k = 0; used < block; ++k, ++used) ++quotas[cut[k % cut.size()].second];
  return quotas;
}

std::vector<MixPhase> mix_phases(Sizes sizes, std::span<const MixWeights> weights,
                                 const RandomKey& key, MixUntil until) {
  std::vector<MixPhase> phases;
  std::uint64_t position = 0;
  std::vector<std::uint64_t> taken(sizes.size());
  std::size_t change = 0;
  while (true) {
    while (change + 1 < weights.size() && weights[change + 1].position <= position) ++change;
    std::vector<double> left = weights[change].weights;
    bool any = false;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (left[k] <= 0 || !is_spent(sizes[k], taken[k])) {
        any |= left[k] > 0;
        continue;
      }
      if (until == MixUntil::first_exhausted) return phases;
      left[k] = 0;
    }
    if (!any) return phases;

    MixPhase phase{.start = position, .begin = taken, .quotas = mix_quotas(left)};
    phase.block = std::accumulate(phase.quotas.begin(), phase.quotas.end(), 0U);
    const Supply supply = supply_of(sizes, phase);
    phase.whole_blocks = supply.blocks;
    for (const std::uint32_t quota : phase.quotas)
      phase.tail.push_back(static_cast<std::uint32_t>(quota * supply.part / supply.of));
    const std::uint64_t tail = std::accumulate(phase.tail.begin(), phase.tail.end(), 0ULL);
    const bool endless = supply.blocks > (kEndless - tail - position) / phase.block;
    phase.end = endless ? kEndless : position + supply.blocks * phase.block + tail;
    if (change + 1 < weights.size()) phase.end = std::min(phase.end, weights[change + 1].position);
    phases.push_back(phase);
    if (phase.end == kEndless) return phases;
    taken = taken_at(phase, phase.end, key);
    position = phase.end;
  }
}

}  // namespace penstock::order
