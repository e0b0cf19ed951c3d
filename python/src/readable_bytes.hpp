// Bytes that Python objects hold: bytes, memoryviews, arrays.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <nanobind/nanobind.h>

namespace penstock::python {

namespace nb = nanobind;

/// Bytes of any object that has them, which stay there. Needs the GIL, but for bytes().
class ReadableBytes {
 public:
  ReadableBytes(nb::handle object, const std::string& what) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) == 0) return;
    PyErr_Clear();
    throw nb::type_error(
        (what + ": expected bytes, or an array of them that lie beside each other, found " +
         nb::cast<std::string>(nb::str(nb::type_name(object.type()))))
            .c_str());
  }
  ReadableBytes(const ReadableBytes&) = delete;
  ReadableBytes& operator=(const ReadableBytes&) = delete;
  ~ReadableBytes() { PyBuffer_Release(&view_); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace penstock::python
