// loader/remote_rows: rows of a loader's steps that are made elsewhere: by another process, on another machine.
//
//   // where the training runs
//   Loader loader = plan.loader();
//   const std::string settings = loader.row_settings();   // to the others, once, with plan.to_json()
//   while (auto task = loader.take_task(64, 100ms))       // on threads of its own
//     task->finish(call(task->request()));                // however bytes travel
//
//   // elsewhere
//   RowMaker maker(Dataset::from_json(text), settings);
//   RowBytes rows = maker.make(request);
//
// Which rows are made where changes nothing but the time: they have the same bytes, and come in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

class Dataset;
class Loader;
namespace loader {
class RowMakerState;
struct TaskState;
}  // namespace loader

/// Carries what a user's function threw (Fault::cause) to the process that delivers the fault. Without them the text travels.
struct ExceptionCodec {
  std::function<std::string(const std::exception_ptr&)> encode{};
  std::function<std::exception_ptr(const std::string&)> decode{};
};

/// Some rows of one replica's slice of a step, claimed from a loader's threads. Destroying an unfinished task returns its rows
/// to the loader, and others make them.
///
/// Threads  any number of threads.
class RowTask {
 public:
  RowTask(RowTask&&) noexcept = default;
  RowTask& operator=(RowTask&& other) noexcept;
  ~RowTask();

  [[nodiscard]] std::uint64_t step() const noexcept;
  [[nodiscard]] std::uint32_t replica() const noexcept;
  /// Of the global batch; with LoaderOptions::locality it counts rows in the order of the replicas that get them.
  [[nodiscard]] std::uint64_t first_row() const noexcept;
  [[nodiscard]] std::uint64_t rows() const noexcept;
  /// About what RowMaker::make will return.
  [[nodiscard]] std::size_t response_bytes() const noexcept;
  /// What RowMaker::make takes: which samples, 24 bytes each. Valid as long as the task.
  [[nodiscard]] std::span<const std::byte> request() const noexcept;
  /// Whether the loader still waits for the rows: it does not once they are finished, and after stop(), restore(),
  /// set_weights() and rewind().
  [[nodiscard]] bool is_pending() const noexcept;

  /// Takes the rows: copies them to their place in the slot, on this thread, and publishes the batch where they were its last
  /// ones. Returns false where the loader no longer waited for them; two workers may make the same task, and the first one counts.
  ///
  /// Errors  Error  `made` is no answer to this request; says what differs. The task is as it was.
  bool finish(std::span<const std::byte> made, const ExceptionCodec& causes = {});
  /// The loader delivers the step as this error.
  void fail(std::exception_ptr error);
  /// Returns the rows to the loader, as if the task were destroyed: others make them.
  void cancel() noexcept;

 private:
  friend class Loader;
  explicit RowTask(std::shared_ptr<loader::TaskState> state);

  std::shared_ptr<loader::TaskState> state_;
};

/// Rows, and what was found with them: for RowTask::finish.
struct RowBytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data.get(), size}; }
};

/// For RowMaker. They change nothing but the speed.
struct RowMakerOptions {
  int threads = 0;                  ///< that decode; 0: as many as a loader has
  std::optional<int> io_threads{};  ///< as LoaderOptions::io_threads
  ExceptionCodec causes{};
};

/// Makes rows for a Loader of the same plan in another process, on threads of its own. A request lists the samples to make. If
/// both plans have a JPEG index (Dataset::jpeg_index), new entries are returned with the rows, and added to the loader's.
///
/// Threads  make() from any number of threads; requests share the threads, and are served in the order of their steps.
class RowMaker {
 public:
  /// `settings` are those of Loader::row_settings.
  ///
  /// Errors  Error                  the plan, its data or the version of the library differ from the loader's: says what;
  ///                                or these are no settings
  ///         std::invalid_argument  the plan reads a stream; options that do not fit it
  RowMaker(const Dataset& plan, const std::string& settings, const RowMakerOptions& options = {});
  RowMaker(RowMaker&&) noexcept;
  RowMaker& operator=(RowMaker&&) noexcept;
  /// Threads that wait in make() must have returned.
  ~RowMaker();

  /// Makes the rows that a request lists. What is wrong with a sample is found here, and is an error where the loader delivers
  /// it.
  ///
  /// Errors  Error  this is no request, or one for another plan; what keeps all rows from being made, such as memory
  [[nodiscard]] RowBytes make(std::span<const std::byte> request);

 private:
  std::unique_ptr<loader::RowMakerState> state_;
};

}  // namespace penstock
