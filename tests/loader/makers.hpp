// Threads that make rows for a loader as other processes would: what travels is bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <penstock/penstock.hpp>

namespace penstock::testing_support {

class Makers {
 public:
  /// Each has a plan of its own.
  Makers(Loader& loader, const std::vector<Dataset>& plans, std::uint64_t max_rows,
         const RowMakerOptions& options = {.threads = 1})
      : loader_(&loader), max_rows_(max_rows) {
    const std::string settings = loader.row_settings();
    for (const Dataset& plan : plans) makers_.emplace_back(plan, settings, options);
    for (RowMaker& maker : makers_)
      threads_.emplace_back([this, &maker](const std::stop_token& stop) { work(maker, stop); });
  }
  ~Makers() { stop(); }
  void stop() { threads_.clear(); }

  [[nodiscard]] std::uint64_t rows() const { return rows_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  /// Says which tasks are dropped.
  std::function<bool(const RowTask&)> drops;

 private:
  void work(RowMaker& maker, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto task = loader_->take_task(max_rows_, std::chrono::milliseconds(5));
      if (!task || (drops && drops(*task))) continue;
      const RowBytes made = maker.make(task->request());
      (task->finish(made.bytes()) ? rows_ : refused_) += task->rows();
    }
  }

  Loader* loader_;
  std::uint64_t max_rows_;
  std::atomic<std::uint64_t> rows_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::vector<RowMaker> makers_;
  std::vector<std::jthread> threads_;
};

}  // namespace penstock::testing_support
