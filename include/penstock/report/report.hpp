// report: how a run went, for a person and for a program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/core/random.hpp>
#include <penstock/device/device.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/loader/loader.hpp>

namespace PENSTOCK_EXPORT penstock {

struct EpochReport {
  std::uint32_t epoch = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
};

/// What decoded the JPEGs. Images that were decoded ahead and not delivered count, too.
struct JpegReport {
  JpegCounts counts;
  bool has_index = false;
  std::uint64_t index_images = 0;
  std::uint64_t index_bytes = 0;
};

/// Of samples that are rows of tokens.
struct TokenReport {
  double row_tokens = 0;        ///< padding included; on average, where rows differ
  double row_bytes = 0;         ///< of all fields, likewise
  double padding_fraction = 0;  ///< of all rows, before sharding and sampling
};

/// Totals at one moment of a run.
struct Moment {
  double seconds = 0;
  std::uint64_t samples = 0;
  std::array<double, kStages> wait_s{};
};

/// Totals over time, at most kMost of them: when there are more, every other one goes.
class History {
 public:
  static constexpr std::size_t kMost = 500;
  /// Whether the last moment was long enough ago. `seconds` as in Stats.
  [[nodiscard]] bool is_due(double seconds) const noexcept {
    return moments_.empty() || seconds - moments_.back().seconds >= interval_s_;
  }
  /// Adds the moment if it is due.
  void add(const Stats& stats);
  /// Adds the moment, whenever the last one was.
  void end(const Stats& stats);
  [[nodiscard]] const std::vector<Moment>& moments() const noexcept { return moments_; }

 private:
  std::vector<Moment> moments_;
  double interval_s_ = 0.1;
};

/// How a run went.
struct Report {
  /// What a loader knows. Epochs, JPEGs, tokens and history are its caller's to add.
  ///
  /// Errors   as Loader::digest()
  /// Threads  as Loader::stats()
  [[nodiscard]] static Report of(const Loader& loader);

  Stats stats;
  std::vector<EpochReport> epochs;
  std::vector<Device> devices;
  std::vector<std::uint64_t> device_samples;  ///< of each device
  std::vector<Fault> faults;                  ///< the first hundred; stats.faults counts all
  std::vector<std::string> notices;  ///< of the data sets, such as files that were left out
  std::optional<JpegReport> jpeg;
  std::optional<TokenReport> tokens;
  std::vector<Moment> history;
  std::uint64_t seed = 0;
  std::uint32_t world = 1;
  std::uint32_t rank = 0;
  std::optional<Digest> digest;
  double peak_rss_mb = 0;                           ///< of the process
  unsigned cores = 0;                               ///< that this process may use
  std::string cores_limit;                          ///< what limits these: "the CPU affinity (…)"
  std::optional<std::uint64_t> memory_limit_bytes;  ///< of the process's control group

  /// What limits the speed, and what to do about it, with an estimate of what that would give. Names of options are
  /// those of LoaderOptions and of penstock-throughput.
  [[nodiscard]] std::string advice() const;
  /// A page that a person can act on; lines end in \n.
  [[nodiscard]] std::string to_text() const;
  /// One JSON object; its keys are an interface.
  [[nodiscard]] std::string to_json() const;
};

}  // namespace penstock
