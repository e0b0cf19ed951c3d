// source/field_name: a field of a source under another name.
#pragma once

#include <string>

namespace penstock {

struct FieldName {
  std::string field;  ///< of the source
  std::string name;   ///< what it is called from here on

  friend bool operator==(const FieldName&, const FieldName&) = default;
};

}  // namespace penstock
