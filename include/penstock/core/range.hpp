// core/range: an interval of numbers.
#pragma once

namespace penstock {

/// Both ends included.
struct Range {
  double low = 0;
  double high = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

}  // namespace penstock
