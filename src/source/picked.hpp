// source/picked: some records of a source, in an order of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <penstock/source/source.hpp>

namespace penstock::source {

/// Record i is record (*numbers)[i] of the source, with its name and its random numbers. One may come several times.
///
/// Threads  as the source
/// Errors   std::invalid_argument  the source has no such record
[[nodiscard]] SourcePtr picked(SourcePtr source,
                               std::shared_ptr<const std::vector<std::uint64_t>> numbers);

}  // namespace penstock::source
