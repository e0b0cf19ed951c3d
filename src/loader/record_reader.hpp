// loader/record_reader: reads one record, with retries.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>

#include <penstock/core/error.hpp>
#include <penstock/plan/options.hpp>
#include <penstock/source/source.hpp>

namespace penstock::loader {

/// Reads a sample's record; `key` is for its random numbers. A transient fault is read again, after a random wait, whose mean doubles each time;
/// when no attempt is left, the fault says how many there were, and why each failed. `stop` ends the waiting. `first` is the first
/// attempt's result, where it was made already.
///
/// `retries` counts the attempts after the first.
[[nodiscard]] Result<void> read_record(const Source& source, const SampleId& sample,
                                       const RandomKey& key, Record& record,
                                       const RetryOptions& retry, const std::stop_token& stop,
                                       std::atomic<std::uint64_t>& retries,
                                       std::optional<Result<void>> first = std::nullopt);

}  // namespace penstock::loader
