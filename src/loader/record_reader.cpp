#include "src/loader/record_reader.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "src/core/random_wait.hpp"
#include "src/core/reason_counts.hpp"

namespace penstock::loader {

namespace {

// False when stopped before that.
bool sleep_for(std::chrono::nanoseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace

Result<void> read_record(const Source& source, const SampleId& sample, const RandomKey& key,
                         Record& record, const RetryOptions& retry, const std::stop_token& stop,
                         std::atomic<std::uint64_t>& retries, std::optional<Result<void>> first) {
  record.set_sample(sample, key);
  std::chrono::nanoseconds wait = retry.initial_backoff;
  core::ReasonCounts reasons;
  const auto read = [&]() -> Result<void> {
    record.reset(source.fields().size());  // for a source that forgets to
    try {
      return source.read(sample.number, record);
    } catch (...) {
      return Fault::of(std::current_exception());
    }
  };
  for (int attempt = 1;; ++attempt, wait *= 2) {
    Result<void> result = first ? *std::exchange(first, std::nullopt) : read();
    if (!result && record.is_over_limit()) {
      // What its parts keep of earlier records may leave no room for one that fits.
      record.give_memory_back();
      result = read();
    }
    if (!result && record.is_over_limit()) result.fault().out_of_memory = true;
    if (result || !result.fault().transient) return result;
    reasons.add(result.fault().reason);
    if (attempt >= retry.attempts || !sleep_for(core::random_wait(wait), stop)) {
      Fault fault = std::move(result.fault());
      fault.reason = reasons.text(fault.reason);
      return fault;
    }
    ++retries;
  }
}

}  // namespace penstock::loader
