// source/stem: parts of a path.
#pragma once

#include <string>
#include <string_view>

namespace penstock::source {

/// "a/b" of "a/b.jpg".
[[nodiscard]] constexpr std::string_view without_ending(std::string_view path) noexcept {
  const std::size_t point = path.rfind('.');
  const bool has_ending = point != path.npos && path.find('/', point) == path.npos;
  return has_ending ? path.substr(0, point) : path;
}

/// "b.jpg" of "a/b.jpg".
[[nodiscard]] constexpr std::string_view without_folder(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

/// "a/b.jpg" of "a" or "a/", a folder or s3://bucket/prefix, and "b.jpg".
[[nodiscard]] inline std::string path_below(std::string_view folder, std::string_view relative) {
  std::string path(folder);
  if (!path.ends_with('/')) path += '/';
  return path += relative;
}

}  // namespace penstock::source
