// storage/web_url: files of web servers, "https://host/path?query".
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "src/storage/object_store.hpp"

namespace penstock::storage {

[[nodiscard]] inline bool is_web_url(std::string_view path) noexcept {
  return path.starts_with("https://") || path.starts_with("http://");
}

/// A URL without its query, which may be a signature and is shown nowhere; and "?query", or nothing.
struct WebUrl {
  std::string_view plain;
  std::string_view query;
};
/// Of another path all is plain.
[[nodiscard]] inline WebUrl split_web_url(std::string_view path) noexcept {
  const std::size_t mark = is_web_url(path) ? path.find('?') : path.npos;
  return mark == path.npos ? WebUrl{path, {}} : WebUrl{path.substr(0, mark), path.substr(mark)};
}

/// The bucket is "https://host:port", the key what is behind the next slash, without the query.
///
/// Errors  std::invalid_argument  no host; a user's name in it; a fragment; says what to do, and shows no password or query
[[nodiscard]] ObjectName parse_web_url(std::string_view url);

/// What is behind the question mark of URLs that were given. Files have the names of their URLs without it.
///
/// Threads  any number at once
class WebQueries {
 public:
  /// Errors  std::invalid_argument  another query was given with this URL
  void add(std::string_view plain, std::string_view query);
  /// "?query"; empty where there is none.
  [[nodiscard]] std::string find(const std::string& plain) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::string> queries_;
};

/// Why a path on a web server is not written to.
[[nodiscard]] std::string cannot_write_to_web(std::string_view path);

}  // namespace penstock::storage
