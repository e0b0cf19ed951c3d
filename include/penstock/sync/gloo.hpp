// sync/gloo: processes on host memory; the others survive the death of one. Link penstock::gloo.
#pragma once

#include <memory>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace penstock {

struct GlooOptions {
  /// How long a collective waits for the others.
  double timeout_s = 300;
  /// Sums and products of more than 64 bytes are made by Gloo's own all_reduce, in an order of its own: floats differ in their
  /// last bits from those of other transports and numbers of processes, and are the same on all ranks. Each process says the
  /// same. Minima, maxima and 16-bit floats stay as they are. A duplicate that leaves in the middle of such a call takes the
  /// connections of all with it.
  bool any_order = false;
};

/// The processes of a rendezvous, over TCP. It keeps the rendezvous, which knows at once who died.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the others cannot be reached
[[nodiscard]] std::unique_ptr<Communicator> gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options = {});

}  // namespace penstock
