// penstock-prepare's flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

#include "program_output.hpp"
#include "storage_flags.hpp"

namespace prepare {

struct Options {
  std::string input;
  std::string output;
  penstock::PrepareOptions work;
  programs::StorageFlags storage;
  bool dry_run = false;
  bool verify = false;
  std::string json;
  bool quiet = false;
};

using programs::kUsageError;

/// Fills `options`, or says how to exit.
[[nodiscard]] std::optional<int> parse(std::vector<std::string> flags, Options& options,
                                       const programs::Output& output);

}  // namespace prepare
