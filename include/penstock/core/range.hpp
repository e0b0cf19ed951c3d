// core/range: an interval of numbers.
#pragma once

namespace penstock {

/// Both ends included.
struct Range {
  double low = 0;
  double high = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

template <class Visitor>
void visit_elements(Visitor& visit, Range& range) {
  visit("low", range.low);
  visit("high", range.high);
}

}  // namespace penstock
