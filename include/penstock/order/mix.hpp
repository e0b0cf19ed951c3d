// order/mix: when a mix of several datasets ends.
#pragma once

#include <cstdint>
#include <utility>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>

namespace PENSTOCK_EXPORT penstock {

/// When a mix ends.
enum class MixUntil : std::uint8_t {
  first_exhausted,  ///< when the first data set that has a weight has ended
  all_exhausted,  ///< when all of them have; the data sets that are left are mixed by their own weights
};
template <>
struct EnumNames<MixUntil> {
  static constexpr std::pair<MixUntil, const char*> kNames[] = {
      {MixUntil::first_exhausted, "first_exhausted"}, {MixUntil::all_exhausted, "all_exhausted"}};
};

}  // namespace penstock
