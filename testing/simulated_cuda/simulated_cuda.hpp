// testing/simulated_cuda: a CUDA runtime without a GPU, for tests. It has the entry points of the runtime that the
// project uses, and is linked in their place (PENSTOCK_SIMULATED_CUDA).
//
// A thread of its own, the executor, runs what streams hold, in any order that streams, events and the default stream's
// rules allow, with delays: a program that forgot to wait sees wrong data, or is told by ThreadSanitizer, for which
// every stream is a fibre. What a driver forgives by luck ends the program here, with a sentence.
//
// PENSTOCK_SIMULATED_GPUS    devices (none; the tests of GPUs set 8)
// PENSTOCK_SIMULATED_SEED    of the delays and orders (1)
// PENSTOCK_SIMULATED_LEAKS   0: no check at exit that streams, events, device memory and registrations are gone
// PENSTOCK_SIMULATED_VERBOSE set: says which call ends a capture
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace penstock::simulated_cuda {

/// Delays and orders from now on.
void set_seed(std::uint64_t seed);
[[nodiscard]] std::uint64_t seed();

/// The n-th call of an entry point from now on ("cudaMalloc"), or the n-th kernel on any device ("kernel"), gives
/// `error`. n counts from 1. A kernel's error is sticky: its device is lost.
void fail_call(const std::string& function, std::uint64_t n, cudaError_t error);
/// Every call of an entry point gives `error`, until this is called with cudaSuccess.
void fail_every_call(const std::string& function, cudaError_t error);
/// The n-th copy from the host to a device from now on, of those that are longer than `offset`, arrives with another byte
/// there than it was sent. n counts from 1.
void corrupt_copy(std::uint64_t n, std::size_t offset);
/// Every later call that concerns the device gives `error`; what its streams hold is dropped.
void lose_device(int device, cudaError_t error);
/// Lost devices work again, with what lived on them gone; faults are forgotten.
void repair();

/// Whether anything made a context on the device.
[[nodiscard]] bool has_context(int device);

/// What exists at the moment.
struct Usage {
  std::size_t device_bytes = 0;
  std::size_t allocations = 0;
  std::size_t streams = 0;
  std::size_t events = 0;
  std::size_t registrations = 0;  // of host memory
};
[[nodiscard]] Usage usage();

/// So far.
struct Manners {
  std::uint64_t first_streams = 0;  // made with the greatest priority
  std::uint64_t spins = 0;  // waits for events that keep a core busy: without cudaEventBlockingSync
};
[[nodiscard]] Manners manners();

/// Operations executed so far.
[[nodiscard]] std::uint64_t operations_done();

// ---- for simulated libraries, which queue work of their own ----

/// Ends the program, with a sentence: what was done is wrong, whatever a driver makes of it.
[[noreturn]] void violation(const std::string& what);

/// The device that memory lies on, -1 for the host's. Ends the program where it is not within one allocation.
[[nodiscard]] int device_of(const void* memory, std::size_t bytes);
/// Whether an error has ended the device's context.
[[nodiscard]] bool is_lost(int device);

/// What a step of such work says: it is over; it has done something; it waits for others.
enum class Polled { over, moved, waits };
/// Queues work that can wait. `step` runs on the executor, which may touch the memory of the stream's device, again and
/// again until it is over; between two steps other streams go on. False: `stream` takes nothing (an error, or a capture,
/// which this cannot be part of).
[[nodiscard]] bool enqueue_polled(cudaStream_t stream, std::string name,
                                  std::function<Polled()> step);
/// Where the stream can take no more (1,024 operations), until it can. Who calls enqueue_polled() does this before, without a
/// lock that others need to end what the stream does.
void wait_for_room(cudaStream_t stream);
/// Until all that the device's streams have at this moment is over, as the driver waits in cudaFree.
void wait_for_device(int device);
/// For a step, before a system call reads or writes device memory. False: it is not there any more.
[[nodiscard]] bool open_memory(const void* memory);

}  // namespace penstock::simulated_cuda
