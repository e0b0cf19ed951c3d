// What the processes of a test have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <penstock/sync/communicator.hpp>

namespace penstock::test {

/// "mpi", "gloo" or "nccl".
extern std::string transport;  // NOLINT
/// Started as "gloo-any-order", or "mpi-any-order".
extern bool any_order;  // NOLINT

/// A communicator between the processes, over the transport that the worker was started for.
[[nodiscard]] std::shared_ptr<Communicator> connect(double timeout_s = 300);
/// This process's rank, as its launcher says.
[[nodiscard]] std::uint32_t launch_rank();
/// What a SyncError of `body` says; "(nothing)" without one.
[[nodiscard]] std::string said_by(const std::function<void()>& body);

}  // namespace penstock::test
