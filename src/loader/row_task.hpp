// loader/row_task: what a RowTask holds, and how its rows reach their place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/batch/layout.hpp"
#include "src/loader/open_samples.hpp"
#include "src/loader/row_message.hpp"
#include "src/loader/row_threads.hpp"
#include "src/loader/weak_row_threads.hpp"

namespace penstock::loader {

/// What rows have, and how they lie where they are made elsewhere.
[[nodiscard]] batch::BatchLayout layout_of_rows(const RowRecipe& recipe, std::uint64_t rows);

struct TaskState {
  std::shared_ptr<WeakRowThreads> row_threads;
  std::weak_ptr<InFlight> batch;   // gone with what the loader drops
  std::uint64_t first_sample = 0;  // in the batch
  std::size_t part = 0;
  RowPlace place;
  std::vector<std::byte> request;
  std::size_t row_bytes = 0;  // of the rows, as they come
  std::int64_t taken = 0;     // when
  std::atomic<bool> is_settled = false;

  /// The threads and the batch of the task; none where the loader does not want the rows any longer.
  struct Found {
    WeakRowThreads::Lock threads;
    std::shared_ptr<InFlight> batch;
  };
  [[nodiscard]] std::optional<Found> find();
};

/// Null when it is too late.
[[nodiscard]] std::shared_ptr<TaskState> take_task(
    const std::shared_ptr<WeakRowThreads>& row_threads, std::uint64_t max_rows, Deadline deadline);

}  // namespace penstock::loader
