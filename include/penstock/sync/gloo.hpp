// sync/gloo: processes on host memory; the others survive the death of one. Link penstock::gloo.
#pragma once

#include <memory>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/rendezvous.hpp>

namespace penstock {

struct GlooOptions {
  /// How long a collective waits for the others.
  double timeout_s = 300;
};

/// The processes of a rendezvous, over TCP. It keeps the rendezvous, which knows at once who died.
///
/// A collective call: all processes make it.
///
/// Errors  Error  the others cannot be reached
[[nodiscard]] std::unique_ptr<Communicator> gloo_communicator(
    std::shared_ptr<Rendezvous> rendezvous, const GlooOptions& options = {});

}  // namespace penstock
