// gpu_jpeg/slice_jpegs: the packed JPEGs of a batch's slice, which become pixels where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/device/slice_work.hpp"
#include "src/gpu_jpeg/placed_jpegs.hpp"

namespace penstock::gpu_jpeg {

/// Of a GPU's memory, for the JPEGs of a slice that are decoded together: enough for crops of 500,000 pixels each, but 1 GiB at the
/// most. Images that need more by themselves are decoded on the host.
[[nodiscard]] std::size_t slice_scratch(std::size_t images) noexcept;

/// Threads  immutable once all rows are added.
class SliceJpegs final : public device::SliceWork {
 public:
  /// `what` names the batch in messages; `scratch` is that of PlacedJpegs.
  SliceJpegs(std::string what, std::size_t scratch) : what_(std::move(what)), placed_(scratch) {}

  /// Adds the JPEG that was packed into `place`, which lies in the slice that begins at `slice`.
  void add(std::span<std::byte> place, const std::byte* slice, std::uint64_t row);
  /// Writes where all of them go to `offset` in the slice, which has room for a PlacedJpeg each.
  void finish(std::byte* slice, std::size_t offset);

  void enqueue(std::byte* slice, std::byte* scratch, StreamHandle stream) const override;
  [[nodiscard]] std::size_t flags() const noexcept override { return rows_.size(); }
  void check(std::span<const std::uint32_t> flags) const override;

 private:
  std::string what_;
  PlacedJpegs placed_;
  std::vector<std::uint64_t> rows_;
  std::size_t offset_ = 0;
};

}  // namespace penstock::gpu_jpeg
