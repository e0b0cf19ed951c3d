// loader/row_worker: reads and transforms samples into their places, under the fault policy.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/loader/loader.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/source/source.hpp>

#include "src/batch/layout.hpp"
#include "src/gpu_jpeg/packed_jpeg.hpp"
#include "src/loader/in_flight.hpp"
#include "src/order/bucket_table.hpp"
#include "src/order/order.hpp"
#include "src/transform/chain.hpp"

namespace penstock::loader {

/// How the samples of one source are made, and which may stand in for a bad one.
struct BranchRecipe {
  SourcePtr source;
  transform::TransformChain chain;
  std::vector<order::OrderPtr> candidates;  // of each group, for OnFault::replace
  RandomKey replacement_key;
  RandomKey read_key;  // for sources that make samples
};

/// What functions of other languages have cost so far, in the order of the branches.
[[nodiscard]] std::vector<FunctionTime> functions_of(std::span<const BranchRecipe> branches);
/// Where the bytes of the branches came from so far. A bucket has as many entries as the sources in it have records.
[[nodiscard]] std::vector<StorageTier> tiers_of(std::span<const BranchRecipe> branches);

/// How rows are made, the same for all threads of a run; one for each bucket. Immutable. The recipes of buckets differ in their
/// chains, in `bucket` and in what follows from them; sources, keys and policies are the same, so readers take the first.
struct RowRecipe {
  std::vector<BranchRecipe> branches;      // by SampleId::source; all have the same fields
  std::optional<std::size_t> valid_field;  // behind the chains' fields
  // Where samples are sorted: a bad one is replaced by one of its bucket.
  std::shared_ptr<const order::BucketTable> buckets;
  std::size_t bucket = 0;
  std::size_t reads_together = 1;  // the most that a source is good for; 1 with a byte budget
  OnFault on_fault = OnFault::raise;
  std::uint32_t replicas_per_group = 1;
  RetryOptions retry;
  bool digest = false;                         // of rows for host devices
  std::vector<std::size_t> packable;           // fields that GPUs may decode
  std::size_t jpeg_scratch = 0;                // what they have for an image
  std::shared_ptr<JpegIndexStore> jpeg_index;  // of the plan; what others learn comes there
  StageObserver* observer = nullptr;
};

using RowRecipes = std::vector<std::shared_ptr<const RowRecipe>>;

/// One sample's record on its way from the storage to a decoder.
struct ReadSample {
  std::shared_ptr<InFlight> batch;  // null where the decoder has read it itself
  std::uint64_t sample = 0;         // index in the batch
  Record record;
  Result<void> result;
  std::exception_ptr thrown;  // instead of a result, for which there was no memory
};

/// Threads  one each.
class RowWorker {
 public:
  /// `stop` ends the waiting between two attempts at reading.
  RowWorker(RowRecipes recipes, std::size_t record_limit, std::stop_token stop = {});

  /// Makes samples [first, first + count) of `batch`. Adds what it finds to the batch.
  void work(InFlight& batch, std::uint64_t first, std::uint64_t count);
  /// The same for one sample that was read already.
  void work(ReadSample& sample);
  /// Bytes held by the records.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  using Part = std::vector<PartInfo>::const_iterator;
  struct Place {
    std::uint64_t step;
    std::uint64_t sample;  // index in the batch
    std::size_t part;
    std::uint64_t row;  // of the part
    std::uint64_t global_row;
    std::uint32_t replica;
    bool is_hashed;
    bool may_be_packed;
  };

  void take_recipe_of(const InFlight& batch);
  Result<void> make(InFlight& batch, const SampleId& id, const Place& place, ReadSample* read);
  void work_together(InFlight& batch, std::uint64_t first, std::uint64_t count);
  void read_together(InFlight& batch, std::uint64_t first, std::uint64_t count);
  void fill(InFlight& batch, Part part, std::uint64_t sample, ReadSample* read);
  void make_or_replace(InFlight& batch, const Place& place, ReadSample* read);
  void hand_in(InFlight& batch);
  std::optional<Fault> replace(InFlight& batch, SampleId& id, const Place& place);
  void zero(const InFlight& batch, std::byte* slice, std::uint64_t row);

  RowRecipes recipes_;
  std::vector<std::vector<TensorView>> outs_;  // of each
  std::vector<gpu_jpeg::JpegPacker> packers_;  // likewise
  std::vector<std::uint8_t> packed_;           // of the sample that was made last, by its fields
  const RowRecipe* recipe_ = nullptr;          // of the batch that is worked on
  std::span<TensorView> out_;
  std::stop_token stop_;
  Record record_;
  std::vector<ReadSample> together_;
  std::vector<RecordRead> reads_;
  std::vector<std::span<std::byte>> places_;
  std::vector<Fault> faults_;
  std::optional<Fault> fatal_;  // the first of this grain
  Digest digest_;
  std::uint64_t bytes_read_ = 0;
  std::int64_t read_done_ = 0;     // when the last timed read ended
  std::int64_t transform_ns_ = 0;  // of this grain's host devices
};

}  // namespace penstock::loader
