#include "src/storage/object_store.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "src/storage/hub_url.hpp"
#include "src/storage/web_url.hpp"

namespace penstock::storage {

ObjectName parse_object_url(std::string_view url) {
  if (is_hub_url(url)) return parse_hub_url(url);
  if (is_web_url(url)) return parse_web_url(url);
  constexpr std::string_view kScheme = "s3://";
  if (!url.starts_with(kScheme)) {
    throw std::invalid_argument(fmt::format("expected s3://bucket/key, found '{}'", url));
  }
  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  ObjectName name{std::string(rest.substr(0, slash)),
                  slash == rest.npos ? std::string() : std::string(rest.substr(slash + 1))};
  const bool good =
      !name.bucket.empty() &&
      name.bucket.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == std::string::npos;
  if (!good) {
    throw std::invalid_argument(fmt::format(
        "expected s3://bucket/key with a bucket of letters, digits, dots and dashes, found '{}'",
        url));
  }
  return name;
}

}  // namespace penstock::storage
