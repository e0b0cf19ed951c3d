// source/read_each: many records, read by several threads, for what needs something of each before a loader runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/source/source.hpp>

namespace penstock::source {

/// What is wrong at one of the places.
struct FaultAt {
  std::uint64_t place;
  Fault fault;
};

/// Calls see(place, record) for each place below `count`, on as many threads as this process has cores, or `reads` if that
/// is more: while one thread waits for a server, others may ask it. A thread takes `grain` places one after another, in their
/// order, and has one record. Returns the fault of the first place that has one: those before it have been seen. with_progress()
/// is told of `what`, in samples.
///
/// Errors  Error  it is wanted no longer (core::Interruption); what `see` throws
[[nodiscard]] std::optional<FaultAt> read_each(
    const std::string& what, std::uint64_t count, std::uint64_t grain, int reads,
    const std::function<Result<void>(std::uint64_t place, Record& record)>& see);

}  // namespace penstock::source
