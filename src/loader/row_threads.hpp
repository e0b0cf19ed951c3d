// loader/row_threads: the threads that make the rows of open batches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <tbb/task_arena.h>

#include <penstock/plan/options.hpp>

#include "src/loader/in_flight.hpp"
#include "src/loader/open_samples.hpp"
#include "src/loader/read_ahead.hpp"
#include "src/loader/row_worker.hpp"
#include "src/loader/task_counters.hpp"
#include "src/loader/weak_row_threads.hpp"

namespace penstock::loader {

struct RowThreadOptions {
  int threads = 1;     // that decode
  int io_threads = 0;  // that read ahead of them; 0: they read for themselves
  std::size_t record_limit = SIZE_MAX;
  std::shared_ptr<ThreadBudget> budget;  // null: none
};

/// Gets the batches whose rows are made.
///
/// Threads  called on the thread that made the last row, or could not make one
class BatchOwner {
 public:
  /// All rows of a batch are there.
  virtual void complete(const std::shared_ptr<InFlight>& batch) = 0;
  /// Some rows can't be made; `error` says why. May come several times for a batch.
  virtual void give_up(InFlight& batch, std::exception_ptr error) = 0;

 protected:
  ~BatchOwner() = default;
};

/// Threads  start(), stop() and use() from one at a time; the rest from any.
class RowThreads {
 public:
  RowThreads(RowRecipes recipes, RowThreadOptions options, BatchOwner& owner);
  ~RowThreads() { stop(); }
  RowThreads(const RowThreads&) = delete;
  RowThreads& operator=(const RowThreads&) = delete;

  void start();
  /// Begins to stop, without waiting for what is being made.
  void request_stop();
  /// Joins the threads, and drops what was open. At most one sample's work per thread is waited for.
  void stop();
  /// What start() will run in place of the present recipes.
  struct Prepared {
    RowRecipes recipes;
    std::unique_ptr<ReadAhead> read_ahead;
    std::stop_source stop;
  };
  [[nodiscard]] Prepared prepare(RowRecipes recipes);
  /// While no thread runs.
  void use(Prepared prepared) noexcept;
  /// Where tasks find these threads: all the time but from stop() to use().
  [[nodiscard]] const std::shared_ptr<WeakRowThreads>& weak() const noexcept { return weak_; }

  [[nodiscard]] OpenSamples& open() noexcept { return open_; }
  /// So many samples of `batch` are there; also for tasks, whose samples are made elsewhere.
  void finish(const std::shared_ptr<InFlight>& batch, std::uint64_t count);
  /// They won't be.
  void fail(InFlight& batch, std::exception_ptr error) { owner_.give_up(batch, std::move(error)); }
  [[nodiscard]] const RowRecipe& recipe_of(const InFlight& batch) const noexcept {
    return *recipes_[batch.info->bucket];
  }
  [[nodiscard]] TaskCounters& counters() noexcept { return counters_; }
  /// Requested before threads stop.
  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }

  /// How many records such threads hold: each that decodes has one of its own, into which it also reads replacements. With
  /// threads that read ahead: one in the hands of each reader, one in those of each decoder, and one that is ready for it.
  [[nodiscard]] static std::size_t records(int threads, int io_threads) noexcept;
  /// Bytes held by them.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::size_t memory_peak_bytes() const noexcept;

 private:
  void give_up(const std::exception_ptr& error, const std::stop_token& stop);
  void work(const std::stop_token& stop);
  void work_on_read(const std::stop_token& stop);
  void stop_threads();
  [[nodiscard]] std::unique_ptr<ReadAhead> make_read_ahead(const RowRecipes& recipes);
  [[nodiscard]] std::int64_t least_of_grain(std::int64_t sample_ns) const;
  void note_memory(std::int64_t grown);

  RowRecipes recipes_;
  RowThreadOptions options_;
  BatchOwner& owner_;
  OpenSamples open_;
  std::shared_ptr<WeakRowThreads> weak_ = std::make_shared<WeakRowThreads>();
  TaskCounters counters_;
  std::stop_source stop_;
  std::atomic<std::int64_t> record_bytes_ = 0;
  std::atomic<std::int64_t> record_bytes_peak_ = 0;
  std::unique_ptr<ReadAhead> read_ahead_;  // null: decoders read for themselves
  tbb::task_arena arena_;
  std::vector<std::jthread> threads_;
};

}  // namespace penstock::loader
