// sync/gloo: processes on host memory; the others survive the death of one. Link penstock::gloo.
#pragma once

#include <memory>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace penstock {

struct GlooOptions {
  /// Seconds that a collective waits for the others.
  double timeout_s = 300;
  /// Fewer messages for sums, means and products in all_reduce of 65 bytes to 1 MiB, by recursive halving and doubling. The last
  /// bits of floats then depend on the number of processes; they are the same on all ranks and in every run. Set the same value
  /// in every process. 16-bit floats, and all other calls, stay as they are.
  bool any_order = false;
};

/// The processes of a rendezvous, over TCP. It keeps the rendezvous, which knows at once who died.
///
/// A duplicate that leaves in the middle of a call, while its data are on their way, ends the connections of all
/// duplicates: Gloo would read and write the caller's memory for as long as they last.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the others cannot be reached
[[nodiscard]] std::unique_ptr<Communicator> gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options = {});

}  // namespace penstock
