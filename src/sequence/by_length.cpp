#include "src/sequence/by_length.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/order/bucket_sort.hpp"
#include "src/sequence/bucket_rows.hpp"
#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

namespace {

constexpr const char* kVerb = "batch_by_length";
constexpr std::int64_t kLongestEdge = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(fmt::format("{}: {}", kVerb, what));
}

void check_edges(std::span<const std::int64_t> edges) {
  if (edges.empty())
    refuse("it needs edges, the longest sample of each bucket, such as 128, 256, 512; found none");
  if (edges.size() > order::kMostBuckets)
    refuse(fmt::format("expected at most {} edges, found {}", order::kMostBuckets, edges.size()));
  if (edges.front() < 1)
    refuse(fmt::format("an edge is a length of 1 or more, found {}", edges.front()));
  for (std::size_t k = 1; k < edges.size(); ++k)
    if (edges[k] <= edges[k - 1])
      refuse(fmt::format("edges rise, found {} behind {}", edges[k], edges[k - 1]));
  if (edges.back() > kLongestEdge)
    refuse(fmt::format("an edge is at most {}, found {}", kLongestEdge, edges.back()));
}

BucketRows rows_asked(const ByLengthOptions& options) {
  return {.verb = kVerb,
          .unit = "tokens",
          .buckets = "edges",
          .most = options.tokens,
          .rows = options.rows,
          .multiple = options.multiple,
          .costs = {options.edges.begin(), options.edges.end()}};
}

void check_fields(const ByLengthOptions& options) {
  if (options.fields.empty()) refuse("name the fields to pad, such as tokens; found none");
  std::set<std::string> names;
  for (const ByLengthOptions::Field& field : options.fields)
    if (field.name.empty() || !names.insert(field.name).second)
      refuse(fmt::format("fields have a name each, found '{}'{}", field.name,
                         field.name.empty() ? "" : " twice"));
  if (names.contains(options.lengths))
    refuse(fmt::format("lengths is another field, found '{}' again", options.lengths));
}

class Buckets {
 public:
  Buckets(const Source& source, const ByLengthOptions& options)
      : source_(source), options_(options) {}

  [[nodiscard]] std::uint16_t bucket_of(std::uint64_t length, std::uint64_t number) const {
    const auto edge = std::ranges::lower_bound(options_.edges, static_cast<std::int64_t>(length));
    if (edge != options_.edges.end())
      return static_cast<std::uint16_t>(edge - options_.edges.begin());
    switch (options_.long_samples) {
      case LongSamples::truncate:
        return static_cast<std::uint16_t>(options_.edges.size() - 1);
      case LongSamples::drop:
        return order::kNoBucket;
      case LongSamples::error:
        break;
    }
    throw Error(fmt::format(
        "{}: {} has a length of {}, and the last edge is {}: add an edge, or let long_samples be "
        "truncate or drop",
        kVerb, source_.location(number), length, options_.edges.back()));
  }

 private:
  const Source& source_;
  const ByLengthOptions& options_;
};

BucketSummary summary_of(const ByLengthOptions& options, const order::BucketTable& table,
                         std::uint64_t all_samples, std::uint64_t tokens) {
  BucketSummary summary{.buckets = {},
                        .batches = table.batches(),
                        .samples = table.samples(),
                        .dropped = all_samples - table.samples()};
  double places = 0;
  for (std::size_t k = 0; k < options.edges.size(); ++k) {
    summary.buckets.push_back(
        {.edge = options.edges[k], .rows = table.rows(k), .samples = table.size(k)});
    places += static_cast<double>(options.edges[k]) * static_cast<double>(table.size(k));
  }
  if (places > 0) summary.padding_fraction = 1 - static_cast<double>(tokens) / places;
  return summary;
}

}  // namespace

void check(const ByLengthOptions& options) {
  check_edges(options.edges);
  check(rows_asked(options));
  check_fields(options);
}

std::vector<std::uint64_t> rows_of(const ByLengthOptions& options) {
  return rows_of(rows_asked(options));
}

Sorted sort_by_length(const Source& source, const order::Order& order,
                      const ByLengthOptions& options, bool drops_last) {
  check(options);
  const Buckets of_lengths(source, options);
  std::atomic<std::uint64_t> all_tokens = 0;
  std::atomic<std::uint64_t> hash = 0;
  const auto find = [&](std::uint64_t first, std::span<const SampleId> samples,
                        std::span<std::uint16_t> buckets) {
    std::vector<std::uint64_t> lengths(samples.size());
    std::uint64_t tokens = 0;
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const std::uint64_t number = samples[k].number;
      lengths[k] = length_of(source, number);
      buckets[k] = of_lengths.bucket_of(lengths[k], number);
      if (buckets[k] != order::kNoBucket)
        tokens += std::min(lengths[k], static_cast<std::uint64_t>(options.edges[buckets[k]]));
    }
    all_tokens += tokens;
    hash += hash_lengths(first, lengths);
  };
  auto table = order::sort_into_buckets(order, rows_of(options), drops_last, find);
  BucketSummary summary = summary_of(options, *table, order.size().value(), all_tokens);
  return {.table = std::move(table), .summary = std::move(summary), .hash = hash};
}

}  // namespace penstock::sequence
