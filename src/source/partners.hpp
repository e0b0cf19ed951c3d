// source/partners: the records of a source, each with others of it that are drawn at random.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <penstock/source/partners.hpp>
#include <penstock/source/source.hpp>

namespace penstock::source {

/// The fields of record i; behind them those of each partner, under core::partner_name(); and last core::kPartners, i64 [count], the
/// partners' numbers in the source. The partners are a function of (seed, source, epoch, number, draw): any record of the source
/// may be one, also the same one twice, or the sample's own. A sample without partners has the number -1 for each, and in
/// their fields no bytes, or zeros.
///
/// Faults  as the source, of a record and its partners
/// Errors  std::invalid_argument  a count outside [1, 8], a probability outside [0, 1]; a name that a field has already
[[nodiscard]] SourcePtr partners(SourcePtr source, const PartnersOptions& options);

/// Where the record lies whose number the field kPartners has; empty where `source` has no partners.
[[nodiscard]] std::string location_of_partner(const Source& source, std::uint64_t partner);

/// Whether a field is a partner's, or kPartners: it has other values in each epoch.
[[nodiscard]] bool is_drawn(const Source& source, std::string_view field);

}  // namespace penstock::source
