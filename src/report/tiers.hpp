// report/tiers: where the bytes of a run came from, and how much of the data a cache on a disk holds.
#pragma once

#include <string>
#include <vector>

#include <penstock/loader/loader.hpp>

namespace penstock::report {

/// A line for each place that was asked; empty where all was read from local files.
[[nodiscard]] std::vector<std::string> tier_lines(const Stats& stats);
/// How much of the data fits into the cache on a disk, or would, and how large it must be for all of them; empty where nothing
/// came from a bucket, or too little to tell.
[[nodiscard]] std::string advice_on_cache(const Stats& stats);

/// That many requests fail; empty where few do.
[[nodiscard]] std::string advice_on_failures(const Stats& stats);

}  // namespace penstock::report
