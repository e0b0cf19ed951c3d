// device/cuda_timing: times of a GPU's work, on the host's clock.
#pragma once

#include <cstdint>
#include <optional>

#include "src/device/cuda_owners.hpp"
#include "src/device/transfer.hpp"

namespace penstock::device {

/// The events around the copy of one slice, its decoding and its device transforms.
struct CudaStamps {
  explicit CudaStamps(int device)
      : copy_begin(device, CudaEvent::Use::timing),
        copy_end(device, CudaEvent::Use::timing),
        decode_begin(device, CudaEvent::Use::timing),
        decode_end(device, CudaEvent::Use::timing),
        transform_begin(device, CudaEvent::Use::timing),
        transform_end(device, CudaEvent::Use::timing) {}

  CudaEvent copy_begin, copy_end, decode_begin, decode_end, transform_begin, transform_end;
  std::uint64_t step = 0;
  bool copied = false;       // recorded, and not told of yet
  bool decoded = false;      // likewise
  bool transformed = false;  // likewise
};

/// Relates events of one device to now_ns(). Costs one synchronisation, at the start.
class CudaTiming {
 public:
  explicit CudaTiming(int device, cudaStream_t stream);
  /// Tells of what the stamps hold, as far as it is over by now, and forgets it.
  void tell(CudaStamps& stamps, const std::function<void(const DeviceSpan&)>& on_span) const;

 private:
  [[nodiscard]] std::int64_t ns_of(const CudaEvent& event) const;

  CudaEvent base_;
  std::int64_t base_ns_;
};

}  // namespace penstock::device
