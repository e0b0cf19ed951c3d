// Where a program writes: the standard streams, or what Python gives it.
#pragma once

#include <cstdio>
#include <functional>
#include <string_view>

#include <unistd.h>

namespace programs {

/// The exit status of wrong flags.
inline constexpr int kUsageError = 2;

struct Output {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;  ///< and shows progress
};

inline Output standard_output() {
  const auto to = [](std::FILE* file) {
    return [file](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), file);
      std::fflush(file);
    };
  };
  return {.out = to(stdout), .err = to(stderr), .err_is_terminal = isatty(STDERR_FILENO) != 0};
}

}  // namespace programs
