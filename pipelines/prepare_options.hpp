// penstock-prepare's flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

#include "program_output.hpp"
#include "storage_flags.hpp"

namespace prepare {

struct Options {
  std::string input;
  std::filesystem::path output;
  std::string name = "data";
  std::uint64_t shard_samples = 1000;
  int interval = 8;
  int longest_side = 0;  // 0: as it is
  int quality = 90;      // of what is made smaller
  std::vector<std::string> also = {"json", "txt"};
  bool skip_bad = false;
  int threads = 0;
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
