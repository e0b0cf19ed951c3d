// loader/fault_json: a fault as JSON: in states, and in answers of processes that make rows elsewhere.
#pragma once

#include <penstock/core/error.hpp>

namespace penstock {

template <class Visitor>
void visit_fields(Visitor& visit, Fault& fault) {
  visit.required("sample", fault.sample.number);
  visit.required("epoch", fault.sample.epoch);
  visit.required("source", fault.sample.source);
  visit("draw", fault.sample.draw);
  visit.required("step", fault.step);
  visit.required("row", fault.row);
  visit.required("file", fault.file);
  visit.required("offset", fault.offset);
  visit.required("reason", fault.reason);
}

}  // namespace penstock
