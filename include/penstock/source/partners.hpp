// source/partners: records that come with others, of which one sample is made.
#pragma once

#include <cstdint>
#include <optional>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

/// For Dataset::partners.
struct PartnersOptions {
  std::uint64_t count = 3;  ///< how many others each sample comes with; a mosaic takes 3
  double probability = 1;   ///< of a sample's having any
  /// the first epoch without partners, such as the last 10 of a training; by default all epochs have them
  std::optional<std::uint32_t> until_epoch{};
};

template <class Visitor>
void visit_fields(Visitor& visit, PartnersOptions& options) {
  visit.required("count", options.count);
  visit("probability", options.probability);
  visit("until_epoch", options.until_epoch);
}

}  // namespace penstock
