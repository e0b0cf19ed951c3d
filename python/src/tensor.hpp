// One field of a device batch, for every framework that speaks DLPack or an array interface.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include <penstock/core/tensor.hpp>
#include <penstock/loader/loader.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// A batch whose slot stays leased while any copy of this lives.
using Lease = std::shared_ptr<const ForkSafe<DeviceBatch>>;

class PyTensor {
 public:
  PyTensor(Lease lease, TensorView view) : lease_(std::move(lease)), view_(view) {}

  [[nodiscard]] const TensorView& view() const noexcept { return view_; }
  [[nodiscard]] const DeviceBatch& batch() const noexcept { return **lease_; }
  [[nodiscard]] bool on_host() const noexcept {
    return batch().device().kind == Device::Kind::host;
  }

  [[nodiscard]] nb::tuple dlpack_device() const;
  [[nodiscard]] nb::object dlpack(nb::handle stream, nb::handle max_version, nb::handle dl_device,
                                  nb::handle copy) const;
  [[nodiscard]] nb::dict array_interface() const;
  [[nodiscard]] nb::dict cuda_array_interface() const;
  [[nodiscard]] nb::object array(nb::handle dtype, nb::handle copy) const;

 private:
  Lease lease_;
  TensorView view_;
};

}  // namespace penstock::python
