// loader/read_ahead: threads that fetch records before the decoders ask for them, in the order in
// which they will be needed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/loader/in_flight.hpp"
#include "src/loader/open_samples.hpp"
#include "src/loader/row_worker.hpp"

namespace penstock::loader {

/// Claims open samples and reads them, one after the other, with its own threads, and hands them on as they come. There are
/// as many records as `samples`: readers wait for one that was given back.
///
/// Threads  any number pop and give back.
class ReadAhead {
 public:
  /// `note_memory` is told how many bytes its records grew by.
  ReadAhead(std::shared_ptr<const RowRecipe> recipe, OpenSamples& open, int threads,
            std::size_t samples, std::size_t record_limit,
            std::function<void(std::int64_t)> note_memory);
  ~ReadAhead() { stop(); }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  void start();
  /// Joins the threads, and discards what was read. start() starts again.
  void stop();
  /// Begins to stop, without waiting for what is being read.
  void request_stop();

  /// The next sample that was read; null when `stop` was requested first.
  [[nodiscard]] std::unique_ptr<ReadSample> pop(const std::stop_token& stop);
  void give_back(std::unique_ptr<ReadSample> sample);

 private:
  void read(const std::stop_token& stop);
  void read_one(ReadSample& sample, const std::stop_token& stop) const;

  std::shared_ptr<const RowRecipe> recipe_;
  OpenSamples* open_;
  int count_;
  std::size_t samples_;
  std::size_t record_limit_;
  std::function<void(std::int64_t)> note_memory_;

  std::mutex mutex_;
  std::condition_variable_any wanted_;  // by readers: a record to read into
  std::condition_variable_any ready_;   // for decoders
  std::vector<std::unique_ptr<ReadSample>> free_;
  std::vector<std::unique_ptr<ReadSample>> read_;  // few: one each record; takes no memory later
  std::vector<std::jthread> threads_;
};

}  // namespace penstock::loader
