#include "caller_tensor.hpp"

#include <stdexcept>
#include <utility>

#include <nanobind/ndarray.h>

#include <penstock/device/dlpack.hpp>

namespace penstock::python {

namespace {

// The top-level package of an object's type: "torch", "numpy".
std::string package_of(nb::handle value) {
  const auto module = nb::cast<std::string>(nb::str(value.type().attr("__module__")));
  return module.substr(0, module.find('.'));
}

std::optional<DType> to_dtype(const nb::dlpack::dtype& given) {
  if (given.lanes != 1) return std::nullopt;
  for (const DType dtype : kDTypes) {
    const dlpack::DataType ours = dlpack::type_of(dtype);
    if (ours.code == given.code && ours.bits == given.bits) return dtype;
  }
  return std::nullopt;
}

bool is_dense(const nb::ndarray<>& array) {
  if (array.size() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    const auto extent = static_cast<std::int64_t>(array.shape(axis));
    if (extent != 1 && array.stride(axis) != expected) return false;
    expected *= extent;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& what, const std::string& found) {
  throw std::invalid_argument(
      what +
      ": expected a dense, writable array or tensor (numpy, torch, or one with __dlpack__), "
      "which is changed in place; found " +
      found);
}

}  // namespace

CallerTensor::CallerTensor(nb::handle value, const std::string& what) {
  const std::string package = package_of(value);
  const auto type = nb::cast<std::string>(nb::str(value.type().attr("__qualname__")));
  if (package == "jax" || package == "jaxlib")
    refuse(what, "a JAX array, which cannot be changed: jax.lax.pmean is what JAX has for this");
  is_torch_ = nb::hasattr(value, "requires_grad") && nb::hasattr(value, "detach");
  nb::object source = is_torch_ ? nb::object(value.attr("detach")()) : nb::borrow(value);
  // numpy knows no bfloat16; ml_dtypes' is 16 bits to it.
  const bool bf16 = package == "numpy" &&
                    nb::cast<std::string>(nb::str(value.attr("dtype").attr("name"))) == "bfloat16";
  if (bf16) source = source.attr("view")(nb::module_::import_("numpy").attr("uint16"));

  nb::ndarray<> array;
  if (!nb::try_cast(source, array, false)) {
    PyErr_Clear();
    nb::ndarray<nb::ro> read_only;
    if (nb::try_cast(source, read_only, false))
      refuse(what, "a " + type + " that cannot be written to");
    PyErr_Clear();
    refuse(what, "a " + type);
  }
  if (!is_dense(array))
    refuse(what, "a " + type + " that is not contiguous: give a contiguous one");
  const nb::dlpack::dtype given = array.dtype();
  const std::optional<DType> dtype = bf16 ? DType::bf16 : to_dtype(given);
  if (!dtype)
    throw std::invalid_argument(
        what + ": penstock has no dtype for " +
        nb::cast<std::string>(nb::str(nb::handle(nb::object(value.attr("dtype"))))));
  if (array.device_type() == dlpack::kCuda)
    device_ = {Device::Kind::cuda, array.device_id()};
  else if (array.device_type() != dlpack::kCpu && array.device_type() != dlpack::kCudaHost)
    refuse(what, "a " + type + " on a device that is neither the host nor a CUDA device");
  view_ = TensorView(static_cast<std::byte*>(array.data()), *dtype,
                     Shape{static_cast<std::int64_t>(array.size())});
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    extents_.push_back(static_cast<std::int64_t>(array.shape(axis)));
  kept_ = std::make_shared<const nb::ndarray<>>(std::move(array));
}

StreamHandle CallerTensor::stream(const std::optional<std::uintptr_t>& given) const {
  if (device_.kind == Device::Kind::host) return nullptr;
  if (given) return reinterpret_cast<StreamHandle>(*given);
  if (!is_torch_) return nullptr;
  const nb::object current =
      nb::module_::import_("torch").attr("cuda").attr("current_stream")(device_.index);
  return reinterpret_cast<StreamHandle>(nb::cast<std::uintptr_t>(current.attr("cuda_stream")));
}

}  // namespace penstock::python
