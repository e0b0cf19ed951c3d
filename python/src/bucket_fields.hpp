// The fields of batch_by_length in Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "python_values.hpp"

namespace penstock::python {

/// The fields that batch_by_length pads: names, or a mapping of names to numbers.
template <>
struct PythonValue<std::vector<ByLengthOptions::Field>> {
  using PaddedFields = std::vector<ByLengthOptions::Field>;
  static std::string type() {
    return "str | collections.abc.Sequence[str] | collections.abc.Mapping[str, float]";
  }
  static std::string text(const PaddedFields& fields) {
    std::vector<std::string> names;
    for (const ByLengthOptions::Field& field : fields) names.push_back(field.name);
    return default_text(names);
  }
  /// Errors  nb::type_error  something else
  static PaddedFields value(nb::handle given, const char* argument) {
    PaddedFields fields;
    try {
      if (PyMapping_Check(given.ptr()) != 0 && nb::hasattr(given, "items")) {
        for (const nb::handle item : given.attr("items")())
          fields.push_back({.name = from_python<std::string>(item[0], argument),
                            .value = from_python<double>(item[1], argument)});
      } else {
        for (std::string& name : from_python<std::vector<std::string>>(given, argument))
          fields.push_back({.name = std::move(name)});
      }
    } catch (const nb::builtin_exception&) {  // of another type
      throw nb::type_error(("fields: expected names such as ['tokens'], or names with numbers to "
                            "pad with such as {'tokens': 0}, found " +
                            repr_of(given))
                               .c_str());
    }
    return fields;
  }
};

}  // namespace penstock::python
