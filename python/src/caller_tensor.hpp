// The caller's own arrays and tensors, that we write to in place: numpy's, torch's, and whatever
// speaks DLPack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>

namespace penstock::python {

namespace nb = nanobind;

/// Dense, writable memory of the caller's, kept alive, never copied. Needs the GIL.
class CallerTensor {
 public:
  /// A torch tensor that requires a gradient is taken without its history.
  ///
  /// Errors  std::invalid_argument  not such memory, or a dtype that penstock has not; names `what`
  CallerTensor(nb::handle value, const std::string& what);

  /// Flat.
  [[nodiscard]] const TensorView& view() const noexcept { return view_; }
  [[nodiscard]] const std::vector<std::int64_t>& extents() const noexcept { return extents_; }
  /// host:0 for all memory of the host.
  [[nodiscard]] const Device& device() const noexcept { return device_; }
  /// The stream that a call with this tensor is ordered on: `given`, a number as in DLPack, else
  /// torch's current one of the device, else the legacy default stream. Null on the host.
  [[nodiscard]] StreamHandle stream(const std::optional<std::uintptr_t>& given) const;

 private:
  std::shared_ptr<const void> kept_;
  TensorView view_;
  std::vector<std::int64_t> extents_;
  Device device_;
  bool is_torch_ = false;
};

}  // namespace penstock::python
