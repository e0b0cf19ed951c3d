#include "tensor.hpp"

#include <cstring>
#include <string>

#include <nanobind/stl/optional.h>

#include <penstock/device/dlpack.hpp>

#include "bindings.hpp"
#include "casters.hpp"
#include "host_array.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;

// The number 1 stands for it, in CUDA, in DLPack and in the CUDA array interface.
StreamHandle legacy_default_stream() { return reinterpret_cast<StreamHandle>(std::uintptr_t{1}); }

// What an exported tensor needs for as long as it lives.
struct Exported {
  Lease lease;                          // null for a copy
  std::unique_ptr<std::byte[]> copied;  // null for a view
  dlpack::Extents extents;
};

// The consumer renames the capsule; one that still has its first name was never consumed.
template <class Managed>
nb::object capsule_of(std::unique_ptr<Managed> managed, const char* name,
                      void (*free_unused)(PyObject*)) {
  PyObject* capsule = PyCapsule_New(managed.get(), name, free_unused);
  if (capsule == nullptr) {
    managed->deleter(managed.release());
    throw nb::python_error();
  }
  (void)managed.release();
  return nb::steal(capsule);
}

template <class Managed>
void free_with_context(Managed* managed) {
  delete static_cast<Exported*>(managed->context);
  delete managed;
}

constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

template <class Managed>
void free_unconsumed(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

std::string text_of(const PyTensor& self) {
  return std::string(name_of(self.view().dtype())) + " " + self.view().shape().to_string() +
         " on " + self.batch().device().to_string();
}

}  // namespace

nb::tuple PyTensor::dlpack_device() const {
  const dlpack::Place place = dlpack::place_of(batch().device());
  return nb::make_tuple(place.type, place.id);
}

nb::object PyTensor::dlpack(nb::handle stream, nb::handle max_version, nb::handle dl_device,
                            nb::handle copy) const {
  const nb::tuple device = dlpack_device();
  if (!dl_device.is_none() && !dl_device.equal(device))
    throw nb::buffer_error(("this tensor is " + text_of(*this) +
                            ": export it there, and copy it with the framework that takes it")
                               .c_str());
  const bool copies = !copy.is_none() && is_true(copy);
  if (copies && !on_host())
    throw nb::buffer_error(
        "penstock does not copy on a GPU: export without copy, and clone with your framework");

  if (!on_host()) {
    // None is the legacy default stream, -1 asks for no ordering at all.
    const std::int64_t number = stream.is_none() ? 1 : nb::cast<std::int64_t>(stream);
    if (number == 0 || number < -1)
      throw std::invalid_argument(
          "__dlpack__: a CUDA stream is 1 (legacy default), 2 (per-thread default), an address, or "
          "-1 for none, found " +
          std::to_string(number));
    if (number != -1) batch().wait_on(reinterpret_cast<StreamHandle>(number));
  } else if (!stream.is_none() && nb::cast<std::int64_t>(stream) != -1) {
    throw std::invalid_argument("__dlpack__: this tensor is on the host, which has no streams");
  }

  auto exported = std::make_unique<Exported>();
  void* data = view_.raw();
  if (copies) {
    exported->copied = std::make_unique<std::byte[]>(view_.byte_size());
    std::memcpy(exported->copied.get(), view_.raw(), view_.byte_size());
    data = exported->copied.get();
  } else {
    exported->lease = lease_;
  }
  dlpack::Tensor tensor = dlpack::describe(view_, batch().device(), exported->extents);
  tensor.data = data;

  using Versioned = dlpack::ManagedTensorVersioned;
  using Legacy = dlpack::ManagedTensor;
  if (!max_version.is_none() && nb::cast<std::int64_t>(max_version[0]) >= 1) {
    std::unique_ptr<Versioned> managed(
        new Versioned{.version = {1, 0},
                      .context = exported.release(),
                      .deleter = [](Versioned* self) { free_with_context(self); },
                      .flags = copies ? dlpack::kIsCopied : 0,
                      .tensor = tensor});
    return capsule_of(std::move(managed), kVersionedName, [](PyObject* capsule) {
      free_unconsumed<Versioned>(capsule, kVersionedName);
    });
  }
  std::unique_ptr<Legacy> managed(
      new Legacy{.tensor = tensor, .context = exported.release(), .deleter = [](Legacy* self) {
                   free_with_context(self);
                 }});
  return capsule_of(std::move(managed), kName,
                    [](PyObject* capsule) { free_unconsumed<Legacy>(capsule, kName); });
}

nb::dict PyTensor::array_interface() const {
  if (!on_host() || view_.dtype() == DType::bf16)
    throw nb::attribute_error(on_host() ? "bf16 has no array interface: take __dlpack__, or numpy()"
                                        : "this tensor is on a GPU: take __dlpack__");
  nb::dict interface;
  interface["shape"] = to_tuple(view_.shape());
  interface["typestr"] = dlpack::typestr_of(view_.dtype());
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(view_.raw()), false);
  interface["version"] = 3;
  return interface;
}

nb::dict PyTensor::cuda_array_interface() const {
  if (on_host() || view_.dtype() == DType::bf16)
    throw nb::attribute_error(on_host() ? "this tensor is on the host: take __array_interface__"
                                        : "bf16 has no array interface: take __dlpack__");
  // The legacy stream's readers are waited for when the batch is released. The bytes are there for others too, such as
  // torch on a side stream: it does not look at 'stream'.
  batch().wait_on(legacy_default_stream());
  without_gil([&] {
    batch().synchronize();
    return 0;
  });
  nb::dict interface;
  interface["shape"] = to_tuple(view_.shape());
  interface["typestr"] = dlpack::typestr_of(view_.dtype());
  interface["data"] = nb::make_tuple(
      view_.byte_size() == 0 ? 0 : reinterpret_cast<std::uintptr_t>(view_.raw()), false);
  interface["version"] = 3;
  interface["strides"] = nb::none();
  interface["stream"] = nb::none();
  return interface;
}

// What numpy calls where there is no array interface.
nb::object PyTensor::array(nb::handle dtype, nb::handle copy) const {
  if (!on_host())
    throw nb::type_error(
        "this tensor is on a GPU: take it with torch.from_dlpack or its like, and copy it from "
        "there");
  nb::object array;
  if (view_.dtype() == DType::bf16) {
    if (!copy.is_none() && !is_true(copy))
      throw std::invalid_argument("numpy takes bf16 as a copy only; or take __dlpack__");
    array = copy_to_numpy(view_);
  } else {
    array = numpy().attr("asarray")(nb::cast(*this));
  }
  if (!dtype.is_none()) array = array.attr("astype")(dtype, "copy"_a = false);
  return !copy.is_none() && is_true(copy) ? array.attr("copy")() : array;
}

void bind_tensors(nb::module_& module) {
  nb::class_<PyTensor>(module, "Tensor", R"(One field of all rows of a batch, in device memory.

For frameworks: torch.from_dlpack(t), jax.dlpack.from_dlpack(t), numpy.asarray(t),
cupy.from_dlpack(t). Nothing is copied, and the batch's slot stays leased while anything
made from it lives. The memory may be written to.

Shapes  [rows, ...]
Stream  __dlpack__(stream=s) makes s wait until the batch has arrived; the host does not wait.
        The memory is not reused before what s was given until the last tensor of the batch is
        dropped has finished. For other streams call DeviceBatch.wait_on.)")
      .def_prop_ro(
          "shape", [](const PyTensor& self) { return to_tuple(self.view().shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const PyTensor& self) { return std::string(name_of(self.view().dtype())); },
          R"("u8", "f32" and so on.)")
      .def_prop_ro("ndim", [](const PyTensor& self) { return self.view().shape().rank(); })
      .def_prop_ro("nbytes", [](const PyTensor& self) { return self.view().byte_size(); })
      .def_prop_ro("device", [](const PyTensor& self) { return self.batch().device(); })
      .def_prop_ro(
          "address",
          [](const PyTensor& self) { return reinterpret_cast<std::uintptr_t>(self.view().raw()); },
          "Of the first element, in host or device memory.")
      .def(
          "numpy", [](const nb::object& self) { return numpy().attr("asarray")(self); },
          nb::sig("def numpy(self) -> typing.Any"),
          R"(numpy.asarray(self): a view of the memory, of a host device.

Errors  TypeError  the tensor is on a GPU)")
      .def(
          "copy",
          [](const PyTensor& self) {
            if (!self.on_host())
              throw nb::type_error(
                  "this tensor is on a GPU: torch.from_dlpack(tensor).clone() copies it there, and "
                  ".cpu() to the host");
            return copy_to_numpy(self.view());
          },
          nb::sig("def copy(self) -> typing.Any"),
          R"(A numpy array of its own, for what is kept: it does not hold the batch's slot.

Errors  TypeError  the tensor is on a GPU)")
      .def("__len__",
           [](const PyTensor& self) {
             if (self.view().shape().rank() == 0) throw nb::type_error("this tensor has no rows");
             return self.view().shape()[0];
           })
      .def(
          "__dlpack__", &PyTensor::dlpack, nb::kw_only(), "stream"_a.none() = nb::none(),
          "max_version"_a.none() = nb::none(), "dl_device"_a.none() = nb::none(),
          "copy"_a.none() = nb::none(),
          nb::sig("def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] "
                  "| None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = "
                  "None) -> typing.Any"),
          R"(A DLPack capsule, versioned where max_version allows.

Stream  on cuda:i, `stream` is made to wait until the batch has arrived; None is the legacy
        default stream, -1 asks for no ordering.
Errors  BufferError  another device, or a copy on a GPU, was asked for)")
      .def("__dlpack_device__", &PyTensor::dlpack_device,
           nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__array_interface__", &PyTensor::array_interface,
                   nb::sig("def __array_interface__(self) -> dict[str, typing.Any]"))
      .def_prop_ro("__cuda_array_interface__", &PyTensor::cuda_array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"),
                   "Version 3; waits until the bytes are there. What other streams than the legacy "
                   "one still read when the batch is released is "
                   "not waited for: take __dlpack__ for those.")
      .def("__array__", &PyTensor::array, "dtype"_a.none() = nb::none(),
           "copy"_a.none() = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                   "typing.Any"))
      .def("__repr__",
           [](const PyTensor& self) { return "<penstock.Tensor " + text_of(self) + ">"; });
}

}  // namespace penstock::python
