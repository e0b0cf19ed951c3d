#include "src/order/bucket_table.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

namespace penstock::order {

BucketTable::BucketTable(Positions positions, std::span<const std::uint64_t> sizes,
                         std::span<const std::uint64_t> rows, bool drops_last)
    : positions_(std::move(positions)) {
  std::uint64_t begin = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    buckets_.push_back(
        {.begin = begin, .size = sizes[k], .rows = rows[k], .first_batch = batches_});
    begin += sizes[k];
    const std::uint64_t whole = sizes[k] / rows[k];
    const bool has_short = !drops_last && sizes[k] % rows[k] != 0;
    batches_ += whole + (has_short ? 1 : 0);
    samples_ += drops_last ? whole * rows[k] : sizes[k];
  }
}

BucketTable::Part BucketTable::part(std::uint64_t batch) const noexcept {
  // The last of those that begin there: buckets without a batch come before it.
  const auto next = std::ranges::upper_bound(buckets_, batch, {}, &Bucket::first_batch);
  const auto& bucket = *std::prev(next);
  const std::uint64_t first = (batch - bucket.first_batch) * bucket.rows;
  return {.bucket = static_cast<std::size_t>(std::prev(next) - buckets_.begin()),
          .first = first,
          .size = std::min(bucket.rows, bucket.size - first)};
}

void BucketTable::look_up(std::size_t bucket, std::span<std::uint64_t> places) const noexcept {
  const std::uint64_t begin = buckets_[bucket].begin;
  std::visit(
      [&](const auto& positions) {
        for (std::uint64_t& place : places) place = positions[begin + place];
      },
      positions_);
}

BucketCursor::BucketCursor(const Order& input, std::shared_ptr<const BucketTable> table,
                           BucketOrder order)
    : input_(input.open()),
      table_(std::move(table)),
      order_(std::move(order)),
      of_buckets_(table_->buckets()) {}

const Permutation& BucketCursor::Drawn::of(std::uint64_t size, const RandomKey& key,
                                           std::uint32_t wanted) {
  if (epoch != wanted) permutation = Permutation(size, key, wanted);
  epoch = wanted;
  return permutation;
}

BucketTable::Part BucketCursor::read(std::uint32_t epoch, std::uint64_t batch,
                                     std::vector<SampleId>& ids) {
  const std::uint32_t drawn = order_.reshuffle ? epoch : 0;
  if (order_.shuffle)
    of_batches_.of(table_->batches(), order_.of_batches, drawn).apply({&batch, 1});
  const BucketTable::Part part = table_->part(batch);
  positions_.resize(part.size);
  std::iota(positions_.begin(), positions_.end(), part.first);
  if (order_.shuffle)
    of_buckets_[part.bucket]
        .of(table_->size(part.bucket), order_.of_buckets[part.bucket], drawn)
        .apply(positions_);
  table_->look_up(part.bucket, positions_);
  const std::size_t filled = ids.size();
  ids.resize(filled + part.size);
  input_->read_at(epoch, positions_, std::span(ids).subspan(filled));
  return part;
}

std::size_t BucketCursor::memory_bytes() const noexcept {
  return sizeof(*this) + input_->memory_bytes() + of_buckets_.size() * sizeof(Drawn) +
         positions_.capacity() * sizeof(std::uint64_t);
}

}  // namespace penstock::order
