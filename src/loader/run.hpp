// loader/run: what a Loader holds: the plan made concrete, the engine, and the books on what was
// delivered.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <penstock/loader/loader.hpp>

#include "src/loader/engine.hpp"
#include "src/loader/plan.hpp"
#include "src/loader/stall_meter.hpp"

namespace penstock::loader {

class Run {
 public:
  Run(const std::shared_ptr<const Plan>& plan, const LoaderOptions& options);

  std::optional<Step> next();
  void start();
  std::optional<std::uint32_t> next_epoch();
  LoaderState state() const;
  void restore(const LoaderState& state);
  Step batch_at(std::uint64_t step) const;
  Stats stats() const;

  [[nodiscard]] bool has_ended() const noexcept { return ended_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return config_->seed; }
  [[nodiscard]] std::optional<std::uint64_t> steps() const;
  [[nodiscard]] const Plan& plan() const noexcept { return *config_->plan; }
  [[nodiscard]] const BatchLayout& layout() const noexcept { return *config_->layout; }
  [[nodiscard]] std::vector<std::uint64_t> samples_per_device() const;
  [[nodiscard]] std::vector<Fault> faults() const;
  [[nodiscard]] Digest digest() const;

 private:
  /// What was delivered; what a state saves.
  struct Books {
    std::uint64_t step = 0;
    std::uint64_t global_samples = 0;
    std::uint64_t fault_count = 0;
    std::vector<Fault> faults;
    Digest digest;
    // Of this run only.
    std::uint64_t steps = 0;
    std::uint64_t samples = 0;
    std::uint64_t bytes_read = 0;
    std::vector<std::uint64_t> samples_per_device;
  };

  [[nodiscard]] static EngineConfig configure(std::shared_ptr<const Plan> plan,
                                              const LoaderOptions& options, std::uint64_t seed);
  [[nodiscard]] Engine& engine();
  [[nodiscard]] std::shared_ptr<InFlight> wait(bool for_numbers);
  void refuse_untolerated_faults(const InFlight& batch) const;
  void enter_in_books(const InFlight& batch);
  [[nodiscard]] Step deliver(InFlight& batch,
                             const std::shared_ptr<std::atomic<std::size_t>>& held) const;

  LoaderOptions options_;
  std::optional<EngineConfig> config_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<std::atomic<std::size_t>> held_ = std::make_shared<std::atomic<std::size_t>>(0);
  std::exception_ptr error_;  // what next() threw and will throw again
  std::atomic<bool> ended_ = false;

  mutable std::mutex mutex_;  // guards what follows
  Books books_;
  StallMeter meter_;
};

}  // namespace penstock::loader
