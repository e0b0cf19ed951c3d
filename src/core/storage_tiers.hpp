// core/storage_tiers: the places that reads are answered from, of several sources together.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/core/description.hpp>

namespace penstock::core {

/// Adds what `more` says, each to the tier of the same name and folder. What a folder holds is not counted twice.
inline void add_tiers(std::vector<StorageTier>& all, std::vector<StorageTier> more) {
  constexpr std::string_view kOrder = "memory disk bucket";
  for (StorageTier& tier : more) {
    const auto found = std::ranges::find_if(all, [&](const StorageTier& other) {
      return other.name == tier.name && other.folder == tier.folder;
    });
    if (found == all.end()) {
      all.push_back(std::move(tier));
      continue;
    }
    found->reads += tier.reads;
    found->bytes += tier.bytes;
    found->requests += tier.requests;
    found->failures += tier.failures;
    found->hedges += tier.hedges;
    if (tier.name != "disk") {  // each source has its own
      found->entries += tier.entries;
      found->held_bytes += tier.held_bytes;
      found->budget_bytes += tier.budget_bytes;
    } else {
      found->entries = std::max(found->entries, tier.entries);
      found->held_bytes = std::max(found->held_bytes, tier.held_bytes);
      found->budget_bytes = std::max(found->budget_bytes, tier.budget_bytes);
    }
    if (found->warning.empty()) found->warning = std::move(tier.warning);
  }
  std::ranges::stable_sort(all, {},
                           [&](const StorageTier& tier) { return kOrder.find(tier.name); });
}

}  // namespace penstock::core
