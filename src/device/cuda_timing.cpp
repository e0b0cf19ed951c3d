#include "src/device/cuda_timing.hpp"

#include <penstock/core/process.hpp>

namespace penstock::device {

CudaTiming::CudaTiming(int device, cudaStream_t stream) : base_(device, CudaEvent::Use::timing) {
  const CurrentDevice current(device);
  check(cudaEventRecord(base_.get(), stream));
  check(cudaEventSynchronize(base_.get()));
  base_ns_ = now_ns();
}

std::int64_t CudaTiming::ns_of(const CudaEvent& event) const {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, base_.get(), event.get()));
  return base_ns_ + static_cast<std::int64_t>(static_cast<double>(ms) * 1e6);
}

void CudaTiming::tell(CudaStamps& stamps,
                      const std::function<void(const DeviceSpan&)>& on_span) const {
  const auto is_over = [](const CudaEvent& event) { return event.is_over(); };
  if (stamps.copied && is_over(stamps.copy_end))
    on_span(
        {DeviceSpan::Work::copy, stamps.step, ns_of(stamps.copy_begin), ns_of(stamps.copy_end)});
  if (stamps.decoded && is_over(stamps.decode_end))
    on_span({DeviceSpan::Work::decode, stamps.step, ns_of(stamps.decode_begin),
             ns_of(stamps.decode_end)});
  if (stamps.transformed && is_over(stamps.transform_end))
    on_span({DeviceSpan::Work::device_transform, stamps.step, ns_of(stamps.transform_begin),
             ns_of(stamps.transform_end)});
  stamps.copied = stamps.decoded = stamps.transformed = false;
}

}  // namespace penstock::device
