// What penstock-prepare did, for a person, for a program and for a run that goes on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "prepare_options.hpp"

namespace prepare {

inline constexpr std::size_t kListed = 100;

/// What was done to some samples; reports of parts add up.
struct Report {
  std::uint64_t samples = 0;
  std::uint64_t remarked = 0;
  std::uint64_t shrunk = 0;
  std::uint64_t indexed = 0;  // of which it is known where decoding can begin
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::map<std::string, std::uint64_t> kept;  // why, and how many
  std::vector<std::string> listed;            // the first of those, and what was left out
  std::uint64_t left_out = 0;
  std::uint64_t tar_bytes = 0;  // of the shards

  void operator+=(const Report& other) {
    samples += other.samples;
    remarked += other.remarked;
    shrunk += other.shrunk;
    tar_bytes += other.tar_bytes;
    indexed += other.indexed;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
    left_out += other.left_out;
    for (const auto& [why, count] : other.kept) kept[why] += count;
    for (const std::string& line : other.listed)
      if (listed.size() < kListed) listed.push_back(line);
  }
};

void to_json(nlohmann::json& out, const Report& report);
void from_json(const nlohmann::json& in, Report& report);

/// A few lines; they end in \n.
[[nodiscard]] std::string to_text(const Report& report, const Options& options, double seconds);

}  // namespace prepare
