// storage/http/range_reader: reads of parts of objects, from servers that are slow now and then, or break off.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/storage/object_storage.hpp>

#include "src/storage/http/byte_range.hpp"
#include "src/storage/http/client.hpp"
#include "src/storage/http/latency.hpp"
#include "src/storage/http/request_counts.hpp"

namespace penstock::storage {

/// Whether requests are hedged: the option, else $PENSTOCK_HEDGING, else yes.
///
/// Errors  Error  the variable is neither 0 nor 1
[[nodiscard]] bool is_hedged(const ObjectStorageOptions& options);

/// All reads of one store go through one of these. Of a read:
/// - A request that is late is sent again over another connection, and the first complete answer counts. The other request is
///   given up.
/// - An answer that breaks off, and has an ETag, is gone on with where it broke off, if the object still has this ETag.
/// - An answer that says when to come back (Retry-After) is waited for, if that is within the timeout.
/// What fails else is the caller's to repeat.
///
/// Threads  const, any number at once. A read starts no thread.
class RangeReader {
 public:
  /// Makes the request for a part. It has the header If-Match where an ETag is given.
  static constexpr long kChanged = 412;
  using Make = std::function<Result<HttpRequest>(const ByteRange& part, const std::string& etag)>;

  /// The client outlives it.
  RangeReader(const HttpClient& client, bool is_hedged) : client_(&client), is_hedged_(is_hedged) {}

  /// `into` is as large as the range. A good answer may be another one than was asked for, as HttpClient's; the body of one that
  /// came in parts is there as a whole, below the head of the first. The status kChanged says that the object was changed while
  /// it was read.
  ///
  /// `heeds_pauses`: whether Retry-After is waited for here.
  ///
  /// Errors  as HttpClient::send() and `make`
  [[nodiscard]] Result<HttpResponse> read(const ByteRange& range, std::span<std::byte> into,
                                          const Make& make, bool heeds_pauses = true) const;

  [[nodiscard]] RequestCounts counts() const noexcept {
    return {.requests = requests_, .failures = failures_, .hedges = hedges_};
  }

 private:
  class Read;

  const HttpClient* client_;
  bool is_hedged_;
  mutable Hedging hedging_;
  mutable std::atomic<std::uint64_t> requests_ = 0;
  mutable std::atomic<std::uint64_t> failures_ = 0;
  mutable std::atomic<std::uint64_t> hedges_ = 0;
};

}  // namespace penstock::storage
