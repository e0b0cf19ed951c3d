// sync/mpi: processes started by mpirun or srun, on host memory. Link penstock::mpi.
#pragma once

#include <memory>

#include <penstock/sync/communicator.hpp>

namespace penstock {

struct MpiOptions {
  /// Seconds that a collective waits for the others. MPI itself notices a dead process, and its
  /// launcher then ends the whole job; this is for those that are late.
  double timeout_s = 300;
  /// As GlooOptions::any_order.
  bool any_order = false;
};

/// All processes of MPI_COMM_WORLD, by messages on a communicator of our own. MPI is initialised,
/// with MPI_THREAD_MULTIPLE, unless the program has done so, and is then finalised when it ends.
///
/// Where a call has taken too long, and no communicator was made since, the process ends without MPI_Finalize, which would
/// wait for the one that is stuck; the launcher then ends the whole job. If the stuck process continues
/// before that, MPI may still read or write the memory of the call that failed: it cannot take back a message.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the program has initialised MPI without MPI_THREAD_MULTIPLE, or finalised it
[[nodiscard]] std::unique_ptr<Communicator> mpi_communicator(const MpiOptions& options = {});

}  // namespace penstock
