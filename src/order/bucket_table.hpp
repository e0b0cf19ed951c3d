// order/bucket_table: the positions of an order sorted into buckets, and the batches that each bucket makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "src/order/order.hpp"
#include "src/order/permutation.hpp"

namespace penstock::order {

/// Threads  immutable; any number of threads.
class BucketTable {
 public:
  /// Positions in the order of their buckets; four bytes each suffice for most.
  using Positions = std::variant<std::vector<std::uint32_t>, std::vector<std::uint64_t>>;

  /// Bucket k has sizes[k] of the positions, and its batches have rows[k] of them; the last one may have fewer, or is left
  /// out.
  BucketTable(Positions positions, std::span<const std::uint64_t> sizes,
              std::span<const std::uint64_t> rows, bool drops_last);

  [[nodiscard]] std::size_t buckets() const noexcept { return buckets_.size(); }
  /// Batches of one pass, and the most samples in them.
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  [[nodiscard]] std::uint64_t size(std::size_t bucket) const noexcept {
    return buckets_[bucket].size;
  }
  [[nodiscard]] std::uint64_t rows(std::size_t bucket) const noexcept {
    return buckets_[bucket].rows;
  }

  /// Some of the positions of one bucket.
  struct Part {
    std::size_t bucket = 0;
    std::uint64_t first = 0;  ///< in the bucket
    std::uint64_t size = 0;
  };
  /// What batch `batch` < batches() has, those of bucket 0 first.
  [[nodiscard]] Part part(std::uint64_t batch) const noexcept;
  /// Replaces places in a bucket by the positions that are there.
  void look_up(std::size_t bucket, std::span<std::uint64_t> places) const noexcept;

 private:
  struct Bucket {
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t rows = 1;
    std::uint64_t first_batch = 0;
  };

  Positions positions_;
  std::vector<Bucket> buckets_;
  std::uint64_t batches_ = 0;
  std::uint64_t samples_ = 0;
};

/// How the batches of a table come in an epoch.
struct BucketOrder {
  RandomKey of_batches;
  std::vector<RandomKey> of_buckets;  ///< one a bucket
  bool shuffle = true;
  bool reshuffle = true;
};

/// Reads the batches of a table in a random order that differs from epoch to epoch: a permutation of each bucket's
/// positions, cut into batches, and a permutation of all batches. All is computed, so any batch can be read at once.
///
/// Threads  one caller at a time.
class BucketCursor {
 public:
  BucketCursor(const Order& input, std::shared_ptr<const BucketTable> table, BucketOrder order);

  /// Puts the samples of batch `batch` of an epoch behind those in `ids`; says what it was made of.
  BucketTable::Part read(std::uint32_t epoch, std::uint64_t batch, std::vector<SampleId>& ids);
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  // A permutation, and the epoch that it is of.
  struct Drawn {
    Permutation permutation;
    std::optional<std::uint32_t> epoch;

    const Permutation& of(std::uint64_t size, const RandomKey& key, std::uint32_t wanted);
  };

  std::unique_ptr<OrderCursor> input_;
  std::shared_ptr<const BucketTable> table_;
  BucketOrder order_;
  Drawn of_batches_;
  std::vector<Drawn> of_buckets_;
  std::vector<std::uint64_t> positions_;
};

}  // namespace penstock::order
