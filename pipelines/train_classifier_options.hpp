// penstock-train-classifier's flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "program_output.hpp"

namespace classifier {

struct Options {
  std::string data;
  std::string held_out;
  std::uint64_t synthetic = 1000;
  int classes = 10;
  std::uint64_t batch = 64;
  std::uint32_t micro_steps = 1;
  std::uint64_t epochs = 15;
  std::optional<std::uint64_t> steps;
  std::string devices = "host:1";
  std::string transport = "auto";
  double timeout_s = 60;
  double join_timeout_s = 60;
  std::string wire = "none";
  double rate = 0.05;
  std::uint64_t seed = 7;
  int threads = 0;
  double target = 0;
  std::string checkpoint;
  std::uint64_t checkpoint_every = 50;
  bool resume = false;
  std::string losses;
  std::string json;
  bool quiet = false;

  penstock::Launch launch;  // by torchrun, mpirun or srun; not a flag
};

using programs::kUsageError;

/// Fills `options`, or says how to exit: 0 after --help, kUsageError after a message.
[[nodiscard]] std::optional<int> parse(int argc, char** argv, Options& options,
                                       const programs::Output& output);

}  // namespace classifier
