// loader/row_message: what travels between a loader and the processes that make rows for it: settings, requests, rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/loader/remote_rows.hpp>
#include <penstock/plan/options.hpp>

namespace penstock::loader {

/// What decides a row besides its sample and the plan.
struct RowSettings {
  std::uint64_t seed = 0;
  std::uint32_t processes = 1;
  InputMode mode = InputMode::one;
  ShardPolicy shards = ShardPolicy::data;
  OnFault on_fault = OnFault::raise;
  RetryOptions retry{};
  std::string identity;  // of the plan

  [[nodiscard]] std::string to_json() const;
  /// Errors  Error  no settings, or of another version of the library
  [[nodiscard]] static RowSettings parse(std::string_view text);
};

/// Which rows.
struct RowPlace {
  std::uint64_t step = 0;
  std::uint64_t bucket = 0;     // whose batch it is
  std::uint64_t first_row = 0;  // of the global batch, in the order of the replicas
  std::uint64_t rows = 0;
  std::uint64_t replica = 0;

  friend bool operator==(const RowPlace&, const RowPlace&) = default;
};

[[nodiscard]] std::vector<std::byte> write_request(const RowPlace& place,
                                                   std::span<const SampleId> samples);
struct RowRequest {
  RowPlace place;
  std::vector<SampleId> samples;
};
/// Errors  Error  no request
[[nodiscard]] RowRequest read_request(std::span<const std::byte> bytes);

/// A sample that stands in for another one.
struct Replacement {
  std::uint64_t row = 0;  // from 0, of those asked for
  SampleId sample;
};
/// What was found while rows were made.
struct RowFindings {
  std::uint64_t bytes_read = 0;
  std::uint64_t retries = 0;
  std::int64_t read_ns = 0;    // of all threads
  std::int64_t decode_ns = 0;  // of all threads
  std::int64_t made_ns = 0;    // from the request to the rows
  std::vector<Replacement> replaced;
  std::vector<Fault> faults;
  std::optional<Fault> fatal;
  std::vector<std::byte> learned;  // indices of JPEGs, for JpegIndexStore::load_bytes
};

/// Where the rows lie in an answer; the findings follow them.
inline constexpr std::size_t kRowsOffset = 64;
/// Writes what surrounds the rows, which lie there already. `answer` may grow.
void complete_answer(RowBytes& answer, const RowPlace& place, std::size_t row_bytes,
                     const RowFindings& findings, const ExceptionCodec& causes);
/// Room for an answer of so many bytes of rows, and for findings of the usual size.
[[nodiscard]] RowBytes make_answer(std::size_t row_bytes);

struct RowAnswer {
  std::span<const std::byte> rows;
  RowFindings findings;
};
/// Errors  Error  no answer, or one to another request than for `row_bytes` bytes of `place`
[[nodiscard]] RowAnswer read_answer(std::span<const std::byte> bytes, const RowPlace& place,
                                    std::size_t row_bytes, const ExceptionCodec& causes);

}  // namespace penstock::loader
