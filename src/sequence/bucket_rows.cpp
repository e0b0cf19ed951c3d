#include "src/sequence/bucket_rows.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace penstock::sequence {

namespace {
constexpr std::uint64_t kMostRows = std::numeric_limits<std::int32_t>::max();
}

void check(const BucketRows& asked) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", asked.verb, what));
  };
  if (asked.multiple < 1 || asked.multiple > kMostRows)
    refuse(fmt::format("multiple is 1 to {}, found {}", kMostRows, asked.multiple));
  if (asked.most.has_value() == !asked.rows.empty())
    refuse(asked.most ? fmt::format("it takes {} or rows, found both", asked.unit)
                      : fmt::format("how large is a batch? Give {}, the most of a global batch, or "
                                    "rows for each bucket",
                                    asked.unit));
  if (asked.most) {
    const std::uint64_t largest = std::ranges::max(asked.costs);
    if (*asked.most / largest < asked.multiple)
      refuse(fmt::format(
          "a batch of at most {0} {1} has no room for {2} rows of {3}: raise {1} to {4} or more",
          *asked.most, asked.unit, asked.multiple, largest, asked.multiple * largest));
    return;
  }
  if (asked.rows.size() != asked.costs.size())
    refuse(fmt::format("rows has a number for each of the {} {}, found {}", asked.costs.size(),
                       asked.buckets, asked.rows.size()));
  for (const std::uint64_t rows : asked.rows)
    if (rows < 1 || rows % asked.multiple != 0)
      refuse(fmt::format("rows are {} or a multiple of it, found {}", asked.multiple, rows));
}

std::vector<std::uint64_t> rows_of(const BucketRows& asked) {
  if (!asked.most) return {asked.rows.begin(), asked.rows.end()};
  std::vector<std::uint64_t> rows;
  for (const std::uint64_t cost : asked.costs)
    rows.push_back(*asked.most / cost / asked.multiple * asked.multiple);
  return rows;
}

}  // namespace penstock::sequence
