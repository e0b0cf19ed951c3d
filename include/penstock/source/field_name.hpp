// source/field_name: a field of a source under another name.
#pragma once

#include <string>

namespace penstock {

struct FieldName {
  std::string field;  ///< of the source
  std::string name;   ///< what it is called from here on

  friend bool operator==(const FieldName&, const FieldName&) = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, FieldName& name) {
  visit.required("field", name.field);
  visit.required("name", name.name);
}

}  // namespace penstock
