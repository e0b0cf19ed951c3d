// penstock-throughput's flags. They are an interface: programs call it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <penstock/penstock.hpp>
#include <penstock/testing/synthetic.hpp>

#include "storage_flags.hpp"
#include "throughput.hpp"
#include "throughput_tokens.hpp"

namespace throughput {

struct Options {
  std::string plan;  // a file, in place of all that describes one
  std::string save_plan;
  std::string data;
  std::uint64_t synthetic = 0;
  std::string labels;
  TokenFlags tokens;
  int crop = 224;
  std::uint64_t batch = 256;
  std::optional<std::uint64_t> epochs;
  std::optional<std::uint64_t> steps;
  std::string devices = "auto";
  penstock::Split split = penstock::Split::scatter;
  int threads = 0;
  std::optional<int> io_threads;
  penstock::JpegDecoder decode = penstock::JpegDecoder::reference;
  std::string index = "auto";  // off, build, a file or a folder; auto until index_beside()
  bool decode_on_gpu = false;
  std::optional<std::uint64_t> seed;
  std::string shuffle = "full";
  penstock::Remainder remainder = penstock::Remainder::keep;
  bool uneven = false;
  penstock::OnFault on_fault = penstock::OnFault::raise;
  int depth = 2;
  std::uint64_t budget_mb = 0;
  double consume_ms = 0;
  std::string state_out;
  std::uint64_t state_every = 0;
  std::string state_in;
  bool digest = false;
  programs::StorageFlags storage;
  std::string record;
  std::string verify;
  std::string timeline;
  std::string json;
  bool quiet = false;

  penstock::Launch launch;  // by torchrun, mpirun or srun; not a flag
};

class Decoding;

/// Exit status for wrong flags.
using programs::kUsageError;

/// Fills `options`, or says how to exit: 0 after --help and --version, kUsageError after a message.
[[nodiscard]] std::optional<int> parse(std::vector<std::string> flags, Options& options,
                                       const Output& output);

/// What --index auto stands for: the folder or bucket with the indices that penstock-prepare wrote
/// beside the data, or "off".
///
/// Errors  penstock::Error  the bucket cannot be listed
[[nodiscard]] std::string index_beside(const Options& options);

/// The plan that the flags describe, or that of --plan; `decoding` makes its samples.
///
/// Errors  std::invalid_argument  flags that do not fit each other; penstock::Error  bad data
[[nodiscard]] penstock::Dataset make_dataset(const Options& options, const Decoding& decoding,
                                             const Output& output);
/// `index_bytes`: what is taken off the budget.
[[nodiscard]] penstock::LoaderOptions loader_options(const Options& options,
                                                     std::uint64_t index_bytes);

}  // namespace throughput
