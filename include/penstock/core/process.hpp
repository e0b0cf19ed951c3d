// core/process: the process around a run: its clock, which one of several it is, its threads, what it agrees on with the
// others, waiting that can be ended, and files that are replaced whole.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- the one clock that every measurement uses ----

/// Seconds, to which each std::chrono duration converts.
using Seconds = std::chrono::duration<double>;

/// Nanoseconds on a monotonic clock.
[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- which of several processes this one is, as the launcher's variables say ----

/// What torchrun, mpirun (Open MPI; MPICH and Intel MPI by PMI) or srun set for this process.
struct Launch {
  std::uint32_t rank = 0;   ///< of this process
  std::uint32_t world = 1;  ///< number of processes
  std::uint32_t local_rank = 0;
  std::uint32_t local_world = 1;  ///< processes on this machine
  std::string launcher;           ///< "torchrun", "mpirun", "srun"; empty where there is none

  /// Slurm's variables count only inside a step (srun), not in a batch script; torchrun inside an
  /// srun step goes before it.
  ///
  /// Errors  Error  two launchers disagree, or a variable is missing or no number; names the
  ///         variables and what to do
  [[nodiscard]] static Launch from_environment();
  /// The same from any set of variables: `get` returns the value of one, null where it is not set.
  [[nodiscard]] static Launch from(const std::function<const char*(const char* name)>& get);
};

// ---- how many threads it computes with ----

/// The threads that a loader, and preparing, take by default: this process's share of the cores that its launcher has, among
/// the launcher's processes on this machine (LOCAL_WORLD_SIZE and its kind; under srun it is known with --ntasks-per-node),
/// and no more than the process may use; likewise its share of the control group's quota. At least 1.
[[nodiscard]] int default_threads();

// ---- what all processes of a run must have in common, checked before the first step ----

/// Gives every process the texts of all, in the order of their ranks: a collective call. exchange_over() makes one of a
/// Communicator; MPI's or torch's all_gather does as well.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;

/// Something that must be the same in all processes: "seed" and "7".
struct Fact {
  std::string name;
  std::string value;

  friend bool operator==(const Fact&, const Fact&) = default;
};

/// Compares the facts of all processes; the names may be in any order. Ranks that differ would train on other data, or wait
/// for each other for ever.
///
/// Errors  Error  in every process: each fact that differs, with its values and the processes that have them
void require_agreement(const Exchange& exchange, const std::vector<Fact>& facts);

// ---- work that ends while it waits for others ----

/// Calls `work` on this thread. Once `stop` is requested, the waits of this library inside `work` end with an Error: for an answer
/// of S3, before another attempt, for a `credential_process`, for shards that are indexed (between two of them), in image_sizes
/// (between two images), in preparing (between two samples), in synthetic_images, and in Loader::batch_at. So does the
/// listing of a folder. The read of a local file goes on. Loader::next() is not affected, nor is a call that is given a stop
/// token of its own.
///
/// Threads  counts for this thread, and for those that the library starts for `work`
/// Errors  what `work` throws
void interruptible(const std::stop_token& stop, const std::function<void()>& work);

// ---- small files that are replaced whole: states, reports, lists ----

/// Afterwards the file holds `text`, or what it held before, also when the machine stops in between.
/// A symbolic link stays one, and the file that it names is replaced; that keeps its owner and its
/// permissions. Devices, pipes and what /dev/stdout is are written to.
///
/// Threads  any
/// Errors   Error  the file cannot be written; says why
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace penstock
