// How a program's flags end it: --help, --version and mistakes.
#pragma once

#include <sstream>
#include <string>

#include <CLI/CLI.hpp>

#include "program_output.hpp"

namespace programs {

/// Says what there is to say; the exit status.
inline int end_of(const CLI::App& app, const CLI::ParseError& error, const Output& output) {
  std::ostringstream out, err;
  const int status = app.exit(error, out, err);
  if (const std::string text = out.str(); !text.empty()) output.out(text);
  if (const std::string text = err.str(); !text.empty()) output.err(text);
  return status == 0 ? 0 : kUsageError;
}

}  // namespace programs
