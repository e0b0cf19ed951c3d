#include "src/sequence/by_length.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <penstock/core/error.hpp>

#include "src/sequence/row_table.hpp"

namespace penstock::sequence {

namespace {

constexpr std::size_t kMostBuckets = 4096;
constexpr std::int64_t kLongestEdge = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMostRows = std::numeric_limits<std::int32_t>::max();
constexpr std::uint16_t kDropped = 0xFFFF;
constexpr std::uint64_t kChunk = 65'536;  // samples that one thread sorts at a time

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("batch_by_length: " + what);
}

void check_edges(std::span<const std::int64_t> edges) {
  if (edges.empty())
    refuse("it needs edges, the longest sample of each bucket, such as 128, 256, 512; found none");
  if (edges.size() > kMostBuckets)
    refuse(fmt::format("expected at most {} edges, found {}", kMostBuckets, edges.size()));
  if (edges.front() < 1)
    refuse(fmt::format("an edge is a length of 1 or more, found {}", edges.front()));
  for (std::size_t k = 1; k < edges.size(); ++k)
    if (edges[k] <= edges[k - 1])
      refuse(fmt::format("edges rise, found {} behind {}", edges[k], edges[k - 1]));
  if (edges.back() > kLongestEdge)
    refuse(fmt::format("an edge is at most {}, found {}", kLongestEdge, edges.back()));
}

void check_rows(const ByLengthOptions& options) {
  if (options.multiple < 1 || options.multiple > kMostRows)
    refuse(fmt::format("multiple is 1 to {}, found {}", kMostRows, options.multiple));
  if (options.tokens.has_value() == !options.rows.empty())
    refuse(options.tokens ? "it takes tokens or rows, found both"
                          : "how large is a batch? Give tokens, the most of a global batch with "
                            "its padding, or rows for each bucket");
  if (options.tokens) {
    const auto longest = static_cast<std::uint64_t>(options.edges.back());
    if (*options.tokens / longest < options.multiple)
      refuse(
          fmt::format("a batch of at most {} tokens has no room for {} rows of {}: raise tokens to "
                      "{} or more",
                      *options.tokens, options.multiple, longest, options.multiple * longest));
    return;
  }
  if (options.rows.size() != options.edges.size())
    refuse(fmt::format("rows has a number for each of the {} edges, found {}", options.edges.size(),
                       options.rows.size()));
  for (const std::uint64_t rows : options.rows)
    if (rows < 1 || rows % options.multiple != 0)
      refuse(fmt::format("rows are {} or a multiple of it, found {}", options.multiple, rows));
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

// What the threads find.
class Sorting {
 public:
  Sorting(const Source& source, const order::Order& order, const ByLengthOptions& options,
          bool drops_last)
      : source_(source),
        order_(order),
        options_(options),
        drops_last_(drops_last),
        size_(order.size().value()),
        chunks_((size_ + kChunk - 1) / kChunk),
        bucket_of_(size_),
        found_(chunks_ * options.edges.size()) {}

  SortedByLength run() {
    tbb::parallel_for(std::size_t{0}, chunks_, [&](std::size_t chunk) { find_buckets(chunk); });
    std::vector<std::uint64_t> sizes(buckets());
    std::uint64_t kept = 0;
    std::uint64_t tokens = 0;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        Found& found = found_[chunk * buckets() + bucket];
        sizes[bucket] += found.samples;
        tokens += found.tokens;
        found.place = kept;
        kept += found.samples;
      }
    auto positions = size_ <= std::numeric_limits<std::uint32_t>::max()
                         ? order::BucketTable::Positions(std::vector<std::uint32_t>(kept))
                         : order::BucketTable::Positions(std::vector<std::uint64_t>(kept));
    std::visit(
        [&](auto& all) {
          tbb::parallel_for(std::size_t{0}, chunks_,
                            [&](std::size_t chunk) { put_positions(chunk, all); });
        },
        positions);
    auto table = std::make_shared<const order::BucketTable>(std::move(positions), sizes,
                                                            rows_of(options_), drops_last_);
    ByLengthSummary summary = summary_of(*table, tokens);
    return {.table = std::move(table), .summary = std::move(summary), .hash = hash_};
  }

 private:
  // What a chunk has of a bucket.
  struct Found {
    std::uint64_t samples = 0;
    std::uint64_t tokens = 0;
    std::uint64_t place = 0;  // of the first of them among all positions
  };

  [[nodiscard]] ByLengthSummary summary_of(const order::BucketTable& table,
                                           std::uint64_t tokens) const {
    ByLengthSummary summary{.buckets = {},
                            .batches = table.batches(),
                            .samples = table.samples(),
                            .dropped = size_ - table.samples(),
                            .padding_share = 0};
    double places = 0;
    for (std::size_t k = 0; k < buckets(); ++k) {
      summary.buckets.push_back(
          {.edge = options_.edges[k], .rows = table.rows(k), .samples = table.size(k)});
      places += static_cast<double>(options_.edges[k]) * static_cast<double>(table.size(k));
    }
    if (places > 0) summary.padding_share = 1 - static_cast<double>(tokens) / places;
    return summary;
  }

  [[nodiscard]] std::size_t buckets() const noexcept { return options_.edges.size(); }
  [[nodiscard]] std::uint64_t first_of(std::size_t chunk) const noexcept { return chunk * kChunk; }
  [[nodiscard]] std::uint64_t end_of(std::size_t chunk) const noexcept {
    return std::min(size_, (chunk + 1) * kChunk);
  }

  void find_buckets(std::size_t chunk) {
    std::vector<SampleId> ids(end_of(chunk) - first_of(chunk));
    order_.open()->read(0, first_of(chunk), 1, ids);
    std::vector<std::uint64_t> lengths(ids.size());
    Found* const found = found_.data() + chunk * buckets();
    for (std::size_t k = 0; k < ids.size(); ++k) {
      lengths[k] = length_of(source_, ids[k].number);
      const std::uint16_t bucket = bucket_of(lengths[k], ids[k].number);
      bucket_of_[first_of(chunk) + k] = bucket;
      if (bucket == kDropped) continue;
      ++found[bucket].samples;
      found[bucket].tokens +=
          std::min(lengths[k], static_cast<std::uint64_t>(options_.edges[bucket]));
    }
    hash_ += hash_lengths(first_of(chunk), lengths);
  }

  [[nodiscard]] std::uint16_t bucket_of(std::uint64_t length, std::uint64_t number) const {
    const auto edge = std::ranges::lower_bound(options_.edges, static_cast<std::int64_t>(length));
    if (edge != options_.edges.end())
      return static_cast<std::uint16_t>(edge - options_.edges.begin());
    switch (options_.long_samples) {
      case LongSamples::truncate:
        return static_cast<std::uint16_t>(buckets() - 1);
      case LongSamples::drop:
        return kDropped;
      case LongSamples::refuse:
        break;
    }
    throw Error(
        fmt::format("batch_by_length: {} has a length of {}, and the last edge is {}: add an edge, "
                    "or let long_samples be truncate or drop",
                    source_.location(number), length, options_.edges.back()));
  }

  template <class Positions>
  void put_positions(std::size_t chunk, Positions& positions) const {
    std::vector<std::uint64_t> at(buckets());
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket)
      at[bucket] = found_[chunk * buckets() + bucket].place;
    for (std::uint64_t position = first_of(chunk); position < end_of(chunk); ++position)
      if (const std::uint16_t bucket = bucket_of_[position]; bucket != kDropped)
        positions[at[bucket]++] = static_cast<typename Positions::value_type>(position);
  }

  const Source& source_;
  const order::Order& order_;
  const ByLengthOptions& options_;
  bool drops_last_;
  std::uint64_t size_;
  std::size_t chunks_;
  std::vector<std::uint16_t> bucket_of_;
  std::vector<Found> found_;  // of each chunk, of each bucket
  std::atomic<std::uint64_t> hash_ = 0;
};

}  // namespace

void check(const ByLengthOptions& options) {
  check_edges(options.edges);
  check_rows(options);
  check_fields(options);
}

std::vector<std::uint64_t> rows_of(const ByLengthOptions& options) {
  if (!options.tokens) return options.rows;
  std::vector<std::uint64_t> rows;
  for (const std::int64_t edge : options.edges)
    rows.push_back(*options.tokens / static_cast<std::uint64_t>(edge) / options.multiple *
                   options.multiple);
  return rows;
}

SortedByLength sort_by_length(const Source& source, const order::Order& order,
                              const ByLengthOptions& options, bool drops_last) {
  check(options);
  return Sorting(source, order, options, drops_last).run();
}

}  // namespace penstock::sequence
