// An exchange between processes that Python gives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nanobind/stl/vector.h>

#include <penstock/core/process.hpp>

#include "bindings.hpp"
#include "python_object.hpp"

namespace penstock::python {

/// Calls `function` on whatever thread it is wanted, with the GIL.
///
/// Errors  PythonException  what it raises, or that it returns no texts
[[nodiscard]] inline Exchange exchange_of(nb::handle function) {
  const auto kept = std::make_shared<Kept>(nb::borrow(function));
  return [kept](const std::string& own) {
    const nb::gil_scoped_acquire gil;
    try {
      return nb::cast<std::vector<std::string>>(object_of(kept)(own));
    } catch (nb::python_error& error) {
      rethrow(error);
    } catch (const nb::cast_error&) {
      throw Error("an exchange returns the texts of all processes, a list of str");
    }
  };
}

}  // namespace penstock::python
