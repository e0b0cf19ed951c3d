#include "src/sync/gradients/gradient_engine.hpp"

#include "src/sync/collectives/reduction.hpp"

namespace penstock::sync {

DType GradientExchange::wire_of(const GradientBucket& bucket) const noexcept {
  const bool narrowed =
      options.wire && is_float(bucket.dtype) && size_of(bucket.dtype) > size_of(*options.wire);
  return narrowed && communicator->size() > 1 ? *options.wire : bucket.dtype;
}

Scaling scaling_of(const GradientExchange& exchange, const GradientBucket& bucket, const Pass& pass,
                   bool divides) {
  const GradientSyncOptions& options = exchange.options;
  const std::uint32_t ranks = exchange.communicator->size();
  const DType wire = exchange.wire_of(bucket);
  const bool narrow = is_float(wire) && size_of(wire) == 2;
  Scaling scaling{.by_rows = exchange.counts_rows(), .early = narrow};
  if (options.combine == Combine::mean) {
    const bool within = narrow || (divides && options.micro_steps == 1);
    scaling.op = within ? ReduceOp::mean : ReduceOp::sum;
    scaling.divisor = static_cast<double>(options.micro_steps) * (within ? 1 : ranks);
  }
  // Nothing is left of a gradient without rows, whatever it holds.
  if (scaling.by_rows && pass.rows == 0)
    scaling.factor = 0;
  else if (options.combine == Combine::row_means) {
    const bool undone = ranks == 1 && options.micro_steps == 1;  // times and by the same rows
    scaling.factor = undone ? 1 : static_cast<double>(pass.rows);
    scaling.by_rows = !undone;
  }
  return scaling;
}

}  // namespace penstock::sync
