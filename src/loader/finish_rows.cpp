#include "src/loader/finish_rows.hpp"

#include <span>

#include <penstock/core/process.hpp>

#include "src/loader/observed.hpp"

namespace penstock::loader {

std::int64_t finish_rows(InFlight& batch, std::size_t part, std::uint64_t first,
                         std::uint64_t count, StageObserver* observer) {
  const StepInfo& info = *batch.info;
  const PartInfo& own = info.parts[part];
  if (own.device.kind != Device::Kind::host || !info.form || !info.form->transforms_anything())
    return 0;
  const HostPart rows{
      .slice = batch.slice(part).data(),
      .transformed = batch.slices[part]->transformed(),
      .step = info.step,
      .replica = own.replica,
      .samples = std::span(info.samples).subspan(own.first_sample, own.slice.samples),
      .mix_inputs_ready =
          info.form->mixes()
              ? std::span(batch.mix_inputs_ready).subspan(own.first_sample, own.slice.samples)
              : std::span<std::atomic<std::uint8_t>>()};
  const std::int64_t begin = now_ns();
  for (std::uint64_t row = first; row < first + count; ++row) {
    const Observed observed(observer, Stage::device_transform, info.step, own.first_sample + row);
    info.form->transform_row(rows, row);
  }
  const std::int64_t took = now_ns() - begin;
  batch.transform_ns += took;
  return took;
}

}  // namespace penstock::loader
