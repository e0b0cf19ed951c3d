// sync/gradients/gradient_engine: what packs, reduces and unpacks the buckets of a GradientSync.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/sync/gradient_sync.hpp>

namespace penstock::sync {

/// One round is `micro_steps` passes over all buckets, in their order.
struct GradientExchange {
  std::unique_ptr<Communicator> communicator;
  std::vector<Gradient> gradients;
  GradientSyncOptions options;
  std::vector<GradientBucket> buckets;
  std::vector<char> in_place;  // a bucket's gradients are contiguous, and need no packing
  std::vector<char> direct;    // a gradient travels from where it lies, whatever its bucket does

  [[nodiscard]] bool counts_rows() const noexcept {
    return options.combine == Combine::row_sums || options.combine == Combine::row_means;
  }
  /// The type in which a bucket's values travel.
  [[nodiscard]] DType wire_of(const GradientBucket& bucket) const noexcept;
  /// Where a bucket that is in place begins.
  [[nodiscard]] std::byte* begin_of(const GradientBucket& bucket) const {
    return gradients[bucket.gradients.back()].data.raw();
  }
};

/// What a pass is told.
struct Pass {
  std::uint32_t micro_step = 0;
  std::uint64_t rows = 0;        ///< of this micro-step
  std::uint64_t round_rows = 0;  ///< of all so far
};

/// What a bucket's values are multiplied with and divided by, on their way in, within the
/// reduction, or on their way out.
struct Scaling {
  double factor = 1;            ///< in
  double divisor = 1;           ///< in where `early`, else out
  bool by_rows = false;         ///< and by the rows of all, at the same place
  bool early = false;           ///< a sum of 16-bit floats leaves little room above
  ReduceOp op = ReduceOp::sum;  ///< mean divides within
};
/// `divides`: the reduction's mean is the sum, divided once; then it is the whole division and
/// saves a way through memory. NCCL's rounds in another way.
[[nodiscard]] Scaling scaling_of(const GradientExchange& exchange, const GradientBucket& bucket,
                                 const Pass& pass, bool divides);

class GradientEngine {
 public:
  virtual ~GradientEngine() = default;
  /// All of bucket `index` are ready; buckets come in their order.
  virtual void bucket_ready(std::size_t index, const Pass& pass, StreamHandle stream) = 0;
  /// All buckets were ready: returns when the gradients may be touched again.
  virtual void wait(const Pass& pass, StreamHandle stream) = 0;
  /// Ends work in progress; does not throw.
  virtual void stop() noexcept = 0;

  [[nodiscard]] static std::unique_ptr<GradientEngine> open_host(GradientExchange& exchange);
  [[nodiscard]] static std::unique_ptr<GradientEngine> open_cuda(GradientExchange& exchange);
};

}  // namespace penstock::sync
