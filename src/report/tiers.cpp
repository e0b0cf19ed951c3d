#include "src/report/tiers.hpp"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace penstock::report {

namespace {

constexpr double kMiBytes = 1 << 20;
// What an entry takes beside its bytes: its head, and on average half a block of the disk.
constexpr double kEntryOverhead = 2300;

std::string size_text(double bytes) {
  const double mib = bytes / kMiBytes;
  return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

const StorageTier* find_tier(const Stats& stats, std::string_view name) {
  for (const StorageTier& tier : stats.tiers)
    if (tier.name == name) return &tier;
  return nullptr;
}

}  // namespace

std::vector<std::string> tier_lines(const Stats& stats) {
  std::uint64_t from_storage = 0;  // of what is no longer in memory
  for (const StorageTier& tier : stats.tiers)
    if (tier.name != "memory") from_storage += tier.bytes;
  std::vector<std::string> lines;
  for (const StorageTier& tier : stats.tiers) {
    const bool is_memory = tier.name == "memory";
    if (is_memory && tier.reads == 0 && tier.entries == 0) continue;
    std::string line = tier.name;
    if (!tier.folder.empty()) line += " " + tier.folder;
    line += fmt::format(": {} reads, {}", tier.reads, size_text(static_cast<double>(tier.bytes)));
    if (!is_memory && from_storage > 0)
      line += fmt::format(
          " ({:.1f}%)", 100 * static_cast<double>(tier.bytes) / static_cast<double>(from_storage));
    if (tier.budget_bytes > 0)
      line +=
          fmt::format("; holds {} in {} {}, of {}", size_text(static_cast<double>(tier.held_bytes)),
                      tier.entries, is_memory ? "pages" : "entries",
                      size_text(static_cast<double>(tier.budget_bytes)));
    else if (tier.held_bytes > 0)
      line += fmt::format("; about {} of data", size_text(static_cast<double>(tier.held_bytes)));
    if (tier.requests > 0)
      line += fmt::format("; {} requests, {} failed, {} hedged", tier.requests, tier.failures,
                          tier.hedges);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string advice_on_failures(const Stats& stats) {
  constexpr double kMany = 0.02;
  const StorageTier* const bucket = find_tier(stats, "bucket");
  if (bucket == nullptr || bucket->failures < 10) return {};
  const double share =
      static_cast<double>(bucket->failures) / static_cast<double>(bucket->requests);
  if (share < kMany) return {};
  return fmt::format(
      "{:.0f}% of the requests failed: the storage refuses or breaks off; fewer io_threads ask for "
      "less at once",
      100 * share);
}

std::string advice_on_cache(const Stats& stats) {
  const StorageTier* const bucket = find_tier(stats, "bucket");
  if (bucket == nullptr || bucket->held_bytes == 0) return {};
  const double needed = static_cast<double>(bucket->held_bytes) +
                        kEntryOverhead * static_cast<double>(bucket->entries);
  const auto megabytes = static_cast<std::uint64_t>(std::ceil(needed / kMiBytes));
  const StorageTier* const disk = find_tier(stats, "disk");
  if (disk == nullptr)
    return fmt::format(
        "a cache of about {} on a local disk (PENSTOCK_OBJECT_CACHE) would hold all of the data",
        size_text(needed));
  const double share = static_cast<double>(disk->budget_bytes) / needed;
  if (share >= 1)
    return fmt::format("all of the data, about {}, fit into the cache", size_text(needed));
  return fmt::format(
      "about {:.2g} of the data fit into the cache; with {} (PENSTOCK_OBJECT_CACHE_MB={}) all of "
      "them would",
      share, size_text(needed), megabytes);
}

}  // namespace penstock::report
