// What the processes of a test have in common.
#pragma once

#include <memory>
#include <string>

#include <penstock/sync/communicator.hpp>

namespace penstock::test {

/// "mpi", "gloo" or "nccl".
extern std::string transport;  // NOLINT

/// A communicator between the processes, over the transport that the worker was started for.
[[nodiscard]] std::shared_ptr<Communicator> connect(double timeout_s = 60);

}  // namespace penstock::test
