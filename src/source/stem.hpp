// source/stem: parts of a path.
#pragma once

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

}  // namespace penstock::source
