// storage/http/byte_range: requests for a part of an object, and whether an answer is that part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <penstock/core/error.hpp>

#include "src/storage/http/client.hpp"

namespace penstock::storage {

/// `count` bytes, at least one, from `offset` on, of an object of `size` bytes.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::uint64_t size = 0;

  /// Asked for without a range.
  [[nodiscard]] bool is_whole() const noexcept { return offset == 0 && count == size; }
  /// "bytes=0-99", the value of the header Range; empty for a whole object.
  [[nodiscard]] std::string header() const;
  /// The Fault of a good answer whose head does not announce these bytes. `server` is the name of the server.
  [[nodiscard]] std::optional<Fault> fault_of_head(const HttpResponse& response,
                                                   std::string_view server,
                                                   const std::string& file) const;
  /// The Fault of a good answer that is not these bytes, or not all of them. `server` is the name of the server.
  [[nodiscard]] std::optional<Fault> fault_of(const HttpResponse& response, std::string_view server,
                                              const std::string& file) const;
};

/// A stamp's version, from an ETag or another hash of an object.
[[nodiscard]] std::int64_t version_of_etag(std::string_view etag) noexcept;

}  // namespace penstock::storage
