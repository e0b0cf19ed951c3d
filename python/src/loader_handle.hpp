// A running Loader as Python objects hold it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <nanobind/nanobind.h>

#include <penstock/loader/loader.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// Several threads may share one: they take turns, and each gets other steps.
class RunningLoader {
 public:
  explicit RunningLoader(Loader loader) : loader_(std::move(loader)) {}

  /// All of these need the GIL, give it up while they wait, and end with Ctrl-C.
  [[nodiscard]] std::optional<Step> next();
  [[nodiscard]] std::optional<std::uint32_t> next_epoch();
  /// Whether next() can return at once; waits for it, at most so many seconds if there is a limit.
  [[nodiscard]] bool wait_for(std::optional<double> timeout_s);
  /// Python is warned of what Loader::notices() adds for the state.
  void restore(const LoaderState& state, const RestoreOptions& options = {});
  void rewind();
  void set_weights(std::uint64_t step, std::vector<double> weights);

  /// Where the time went since a call that was made `window` seconds ago, or up to twice that; in the whole run where
  /// it is younger. Needs the GIL.
  [[nodiscard]] Stats recent(double window);

  /// Ends the data for all threads that wait. Any thread.
  void stop() noexcept;

  /// For what may be called meanwhile, without the GIL.
  [[nodiscard]] Loader& loader() noexcept { return loader_; }
  [[nodiscard]] const Loader& loader() const noexcept { return loader_; }

 private:
  Loader loader_;
  std::timed_mutex turn_;
  Stats before_{};       // where the time that recent() looks at begins
  Stats next_before_{};  // where that of later calls will
};

/// What a Python object owns of a RunningLoader. Dropped without the GIL: the last one joins
/// threads that may need it. In the child of a fork every use is refused, and nothing is dropped.
class LoaderHandle {
 public:
  explicit LoaderHandle(Loader loader);
  LoaderHandle(const LoaderHandle&) = default;
  LoaderHandle(LoaderHandle&&) noexcept = default;
  LoaderHandle& operator=(const LoaderHandle&) = delete;
  LoaderHandle& operator=(LoaderHandle&&) = delete;
  ~LoaderHandle();

  /// Errors  Error  this process was forked from the one that made the loader
  [[nodiscard]] RunningLoader& get() const;
  RunningLoader* operator->() const { return &get(); }
  /// For callers that do not keep it.
  [[nodiscard]] std::weak_ptr<RunningLoader> weak() const noexcept { return loader_; }
  /// Expired once no handle is left, whichever threads may still hold the loader for a moment.
  [[nodiscard]] std::weak_ptr<void> wanted() const noexcept { return wanted_; }

 private:
  std::shared_ptr<RunningLoader> loader_;
  std::shared_ptr<void> wanted_ = std::make_shared<int>();
  int generation_ = fork_generation();
};

/// Stops every loader there is and refuses new threads: before the interpreter ends.
void stop_all_loaders();

}  // namespace penstock::python
