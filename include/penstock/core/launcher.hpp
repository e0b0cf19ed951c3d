// core/launcher: which of several processes this one is, as the launcher's variables say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace penstock {

/// What torchrun, mpirun (Open MPI; MPICH and Intel MPI by PMI) or srun told this process.
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

}  // namespace penstock
