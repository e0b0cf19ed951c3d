// Texts between Python and C++, in place of nanobind's <nanobind/stl/string.h>, which refuses names of files that are not UTF-8.
//
// Python has a byte of such a name as half of a pair, U+DC80 to U+DCFF, as os.fsdecode() makes it; C++ has the byte itself.
#pragma once

#include <string>

#include <nanobind/nanobind.h>

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  // False for other halves of pairs, which stand for no byte.
  template <class Flags>
  bool from_python(handle source, Flags, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* const text = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(text, static_cast<std::size_t>(size));
      return true;
    }
    PyErr_Clear();
    PyObject* const bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
    char* text = nullptr;
    if (bytes == nullptr || PyBytes_AsStringAndSize(bytes, &text, &size) != 0) {
      PyErr_Clear();
      Py_XDECREF(bytes);
      return false;
    }
    value.assign(text, static_cast<std::size_t>(size));
    Py_DECREF(bytes);
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                "surrogateescape");
  }
};

}  // namespace nanobind::detail
