// What streams of all kinds are made of: a queue, and a record that Python gives.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings.hpp"
#include "host_array.hpp"

namespace penstock::python {

// A record's fields, in the order of the specs, as arrays that stay alive.
class PythonRecord {
 public:
  PythonRecord(nb::handle record, std::span<const FieldSpec> fields) {
    const auto size = static_cast<std::size_t>(nb::len(record));
    if (size != fields.size())
      throw std::invalid_argument("expected a record of " + std::to_string(fields.size()) +
                                  " fields, found " + std::to_string(size));
    const bool by_name = PyMapping_Check(record.ptr()) != 0 && nb::hasattr(record, "keys");
    for (std::size_t i = 0; i < size; ++i) {
      const nb::object name = nb::cast(fields[i].name);
      if (by_name && PySequence_Contains(record.ptr(), name.ptr()) != 1) {
        PyErr_Clear();
        throw std::invalid_argument("the record has no field '" + fields[i].name + "'");
      }
      const nb::object value = by_name ? nb::object(record[name]) : nb::object(record[i]);
      arrays_.emplace_back(value, fields[i]);
    }
  }

  [[nodiscard]] std::vector<ConstTensorView> views() const {
    std::vector<ConstTensorView> views;
    for (const HostArray& array : arrays_) views.push_back(array.view());
    return views;
  }

 private:
  std::vector<HostArray> arrays_;
};

struct PyQueue : PyStream {
  std::shared_ptr<source::Queue> queue;
};

}  // namespace penstock::python
