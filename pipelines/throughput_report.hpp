// What penstock-throughput tells a person, and what it tells a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <penstock/penstock.hpp>

#include "throughput_decoding.hpp"

namespace throughput {

struct EpochReport {
  std::uint32_t epoch = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
};

struct Report {
  penstock::Stats stats;
  std::vector<EpochReport> epochs;
  std::vector<penstock::Device> devices;
  std::vector<std::uint64_t> device_samples;
  std::vector<penstock::Fault> faults;
  JpegReport jpeg;
  std::uint64_t seed = 0;
  std::uint32_t world = 1;
  std::uint32_t rank = 0;
  bool has_digest = false;
  penstock::Digest digest;
  double peak_rss_mb = 0;
};

/// A page that a person can act on.
[[nodiscard]] std::string to_text(const Report& report);
/// One JSON object; its keys are an interface.
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace throughput
