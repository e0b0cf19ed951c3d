#include "src/order/bucket_sort.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "src/core/parallel_for.hpp"

namespace penstock::order {

namespace {

constexpr std::uint64_t kChunk = 65'536;  // samples that one thread sorts at a time

class Sorting {
 public:
  Sorting(const Order& order, std::span<const std::uint64_t> rows, const FindBuckets& find)
      : order_(order),
        rows_(rows),
        find_(find),
        size_(order.size().value()),
        chunks_((size_ + kChunk - 1) / kChunk),
        bucket_of_(size_),
        found_(chunks_ * rows.size()) {}

  std::shared_ptr<const BucketTable> run(bool drops_last) {
    core::parallel_for("sorting samples into buckets", chunks_,
                       [&](std::size_t chunk) { find_buckets(chunk); });
    std::vector<std::uint64_t> sizes(rows_.size());
    std::uint64_t kept = 0;
    for (std::size_t bucket = 0; bucket < rows_.size(); ++bucket)
      for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
        Found& found = found_[chunk * rows_.size() + bucket];
        sizes[bucket] += found.samples;
        found.place = kept;
        kept += found.samples;
      }
    auto positions = size_ <= std::numeric_limits<std::uint32_t>::max()
                         ? BucketTable::Positions(std::vector<std::uint32_t>(kept))
                         : BucketTable::Positions(std::vector<std::uint64_t>(kept));
    std::visit(
        [&](auto& all) {
          core::parallel_for("sorting samples into buckets", chunks_,
                             [&](std::size_t chunk) { put_positions(chunk, all); });
        },
        positions);
    return std::make_shared<const BucketTable>(std::move(positions), sizes, rows_, drops_last);
  }

 private:
  // What a chunk has of a bucket.
  struct Found {
    std::uint64_t samples = 0;
    std::uint64_t place = 0;  // of the first of them among all positions
  };

  [[nodiscard]] std::uint64_t first_of(std::size_t chunk) const noexcept { return chunk * kChunk; }
  [[nodiscard]] std::uint64_t end_of(std::size_t chunk) const noexcept {
    return std::min(size_, (chunk + 1) * kChunk);
  }

  void find_buckets(std::size_t chunk) {
    std::vector<SampleId> ids(end_of(chunk) - first_of(chunk));
    order_.open()->read(0, first_of(chunk), 1, ids);
    const std::span buckets = std::span(bucket_of_).subspan(first_of(chunk), ids.size());
    find_(first_of(chunk), ids, buckets);
    for (const std::uint16_t bucket : buckets)
      if (bucket != kNoBucket) ++found_[chunk * rows_.size() + bucket].samples;
  }

  template <class Positions>
  void put_positions(std::size_t chunk, Positions& positions) const {
    std::vector<std::uint64_t> at(rows_.size());
    for (std::size_t bucket = 0; bucket < rows_.size(); ++bucket)
      at[bucket] = found_[chunk * rows_.size() + bucket].place;
    for (std::uint64_t position = first_of(chunk); position < end_of(chunk); ++position)
      if (const std::uint16_t bucket = bucket_of_[position]; bucket != kNoBucket)
        positions[at[bucket]++] = static_cast<typename Positions::value_type>(position);
  }

  const Order& order_;
  std::span<const std::uint64_t> rows_;
  const FindBuckets& find_;
  std::uint64_t size_;
  std::size_t chunks_;
  std::vector<std::uint16_t> bucket_of_;
  std::vector<Found> found_;  // of each chunk, of each bucket
};

}  // namespace

std::shared_ptr<const BucketTable> sort_into_buckets(const Order& order,
                                                     std::span<const std::uint64_t> rows,
                                                     bool drops_last, const FindBuckets& find) {
  return Sorting(order, rows, find).run(drops_last);
}

}  // namespace penstock::order
