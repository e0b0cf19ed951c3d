#include "src/storage/http/byte_range.hpp"

#include <utility>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/printable.hpp"

namespace penstock::storage {

std::string ByteRange::header() const {
  return is_whole() ? "" : fmt::format("bytes={}-{}", offset, offset + count - 1);
}

std::optional<Fault> ByteRange::fault_of_head(const HttpResponse& response, std::string_view server,
                                              const std::string& file) const {
  const std::string range = header();
  const std::string_view expected = is_whole() ? "" : std::string_view(range).substr(6);
  const std::string got = response.header("content-range");
  if (!is_whole() &&
      (response.status != 206 || !got.starts_with(fmt::format("bytes {}/", expected))))
    return Fault{
        .reason = fmt::format("{} does not read ranges: asked for bytes {}, it answered with "
                              "status {}{}",
                              server, expected, response.status,
                              got.empty() ? "" : fmt::format(" and {}", core::printable(got, 100))),
        .file = file,
        .offset = offset};
  return std::nullopt;
}

std::optional<Fault> ByteRange::fault_of(const HttpResponse& response, std::string_view server,
                                         const std::string& file) const {
  auto fault = fault_of_head(response, server, file);
  if (!fault && response.received != count)
    fault = Fault{.reason = fmt::format("expected {} bytes, received {}", count, response.received),
                  .file = file,
                  .offset = offset,
                  .transient = true};
  return fault;
}

std::int64_t version_of_etag(std::string_view etag) noexcept {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  while (etag.starts_with('"')) etag.remove_prefix(1);
  while (etag.ends_with('"')) etag.remove_suffix(1);
  return static_cast<std::int64_t>(XXH3_64bits(etag.data(), etag.size()));
}

}  // namespace penstock::storage
