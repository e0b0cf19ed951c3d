// testing/simulated_nccl/launch: what one call, or one group of calls, queues for one communicator: the simulation of a
// kernel of NCCL's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/communicator.hpp"
#include "testing/simulated_nccl/faults.hpp"

namespace penstock::simulated_nccl {

/// One call's part of it.
struct Task {
  enum class Role : std::uint8_t { collective, send, receive };
  Role role = Role::collective;
  Call call;
  int peer = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;

  std::uint64_t number =
      0;                    // among the communicator's collectives, or the messages between the two
  bool alone = false;       // ends without those whose data it does not need
  std::uint64_t given = 0;  // bytes
  std::uint64_t taken = 0;
  bool posted = false;
  bool met = false;
  bool over = false;

  [[nodiscard]] std::string name() const;
};

/// After start() the executor's.
struct Launch {
  std::shared_ptr<Communicator> communicator;
  std::vector<Task> tasks;
  std::vector<cudaStream_t>
      streams;  // the first runs it when the others have come, and they wait for it
  Fault fault;
  std::int64_t delay_ns = 0;

  std::uint64_t ticket = 0;
  std::size_t streams_there = 0;
  std::int64_t begins_ns = 0;
  unsigned rounds = 0;
  bool over = false;

  simulated_cuda::Polled step();
  simulated_cuda::Polled step_of_other_stream(bool& came);

 private:
  void end();
  void ask_for_garbage();
  [[nodiscard]] bool go_on(Task& task);
  [[nodiscard]] bool collect(Task& task);
  [[nodiscard]] bool send(Task& task);
  [[nodiscard]] bool receive(Task& task);
  [[nodiscard]] bool give(Task& task, Queue& queue, unsigned queue_number,
                          std::uint64_t passed_by_all, std::uint64_t& forgotten);
  void put_together(const Task& task, std::uint64_t at, std::size_t bytes) const;
  void compare(const Task& task) const;
  void require_unchanged(const Task& task, Slot slot) const;
  void require_there(bool there, const Task& task) const;
  [[nodiscard]] bool stops(const Task& task) const;
};

/// Queues it; the communicator fails where its stream takes nothing. With the library's lock held.
void start(const std::shared_ptr<Launch>& launch);

}  // namespace penstock::simulated_nccl
