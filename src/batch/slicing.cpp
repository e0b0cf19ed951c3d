#include "src/batch/slicing.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace penstock::batch {

Slicing::Slicing(std::uint64_t global_batch, std::uint64_t replicas, Remainder remainder,
                 bool uneven, Split split)
    : global_batch_(global_batch), replicas_(replicas), remainder_(remainder), split_(split) {
  if (global_batch == 0)
    throw std::invalid_argument("batch: the global batch must have at least 1 row");
  if (replicas == 0) throw std::invalid_argument("batch: there must be at least 1 replica");
  if (global_batch % replicas == 0) return;
  const std::uint64_t next = (global_batch / replicas + 1) * replicas;
  if (!uneven)
    throw std::invalid_argument(
        fmt::format("a global batch of {} does not divide over {} replicas: take a multiple of {}, "
                    "such as {}, or "
                    "allow uneven replicas (the batch's option uneven)",
                    global_batch, replicas, replicas, next));
  if (split != Split::scatter)
    throw std::invalid_argument(
        fmt::format("a global batch of {} does not divide over {} replicas, and only the split "
                    "'scatter' can be "
                    "uneven: take a multiple of {}, such as {}",
                    global_batch, replicas, replicas, next));
}

std::vector<Slice> Slicing::slices(std::uint64_t step, std::uint64_t samples) const {
  const bool from_the_front = remainder_ == Remainder::pad || split_ == Split::round_robin;
  const std::uint64_t rows = from_the_front ? global_batch_ : samples;
  const std::uint64_t extra = rows % replicas_;
  // Both factors are reduced first, so that the product cannot wrap at any step.
  const std::uint64_t turn = (step % replicas_) * (global_batch_ % replicas_) % replicas_;

  std::vector<Slice> slices(replicas_);
  std::uint64_t first = 0;
  for (std::uint64_t replica = 0; replica < replicas_; ++replica) {
    const bool gets_extra = (replica + replicas_ - turn) % replicas_ < extra;
    const std::uint64_t room = rows / replicas_ + (gets_extra ? 1 : 0);
    Slice& slice = slices[replica];
    slice.first = first;
    slice.samples = std::min(room, samples - std::min(samples, first));
    slice.rows = remainder_ == Remainder::pad ? room : slice.samples;
    first += slice.rows;
  }
  return slices;
}

}  // namespace penstock::batch
