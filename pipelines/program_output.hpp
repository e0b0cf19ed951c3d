// Where a program writes: the standard streams, or what Python gives it.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/progress.hpp>

namespace programs {

/// The exit status of wrong flags.
inline constexpr int kUsageError = 2;

/// What a program says of `error`, which ends it.
inline std::string text_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "out of memory: give this process more, or use fewer threads";
  return error.what();
}

/// `out` throws penstock::Error where the text is lost, as on a full disk.
struct Output {
  std::function<void(std::string_view)> out;
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;  ///< and shows progress
};

/// Calls `work`, which may take long before the program has something to show: a line on the terminal says how far it is.
inline void with_line(const Output& output, bool is_quiet, const std::function<void()>& work) {
  const auto line = is_quiet || !output.err_is_terminal ? penstock::ProgressCallback()
                                                        : penstock::progress_line();
  if (line)
    penstock::with_progress(line, work);
  else
    work();
}

inline Output standard_output() {
  const auto out = [](std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::fflush(stdout) != 0)
      throw penstock::Error(std::string("the standard output cannot be written to: ") +
                            std::strerror(errno));
  };
  const auto err = [](std::string_view text) {
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
  };
  return {.out = out, .err = err, .err_is_terminal = isatty(STDERR_FILENO) != 0};
}

}  // namespace programs
