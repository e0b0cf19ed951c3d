// testing/simulated_nccl: NCCL between simulated devices, for tests. A shared library with the functions that
// src/sync/nccl/nccl_library.cpp looks up, found through PENSTOCK_NCCL_LIBRARY.
//
// Ranks are threads of one process, processes of one machine, or both. A call queues an operation on its stream, which
// reads and writes when it is executed, in parts, and ends when the other ranks have come, as a kernel of NCCL's does.
// The operations of a communicator are executed in the order of the calls; a stream whose operation waits for a rank
// that does not come goes no further until ncclCommAbort(), which leaves garbage in the outputs. So two communicators
// that are used in one stream, in another order on another rank, wait for each other for ever, as they do in reality.
//
// What NCCL takes, and hangs or computes nonsense with, ends the program here, with a sentence: ranks whose calls differ,
// streams and memory of another device, communicators used after their end or left at the end of the process.
//
// Not here: a collective on a capturing stream is ncclInvalidUsage; at most 64 ranks; no operations of the caller's own.
//
// PENSTOCK_SIMULATED_NCCL_FAULTS   what the functions below do, for other processes: "absent 1 5, stopped 0 3,
//                                  error 0 4 6, slow 1 2000, deaths": rank, then the other arguments
// PENSTOCK_SIMULATED_SEED          of what may go either way: whether a call of a communicator that does not block is
//                                  in progress when it returns, whether a send ends before it is received
// PENSTOCK_SIMULATED_LEAKS         0: no check at exit that communicators are destroyed
// NCCL_HOSTID                      as in NCCL: processes with different ones are on different machines
#pragma once

#include <cstddef>
#include <cstdint>

#include <nccl.h>

namespace penstock::simulated_nccl {

// Of the rank `rank` of any communicator of this process; its n-th collective, send or receive from now on, n from 1.

/// It never comes: its stream waits, and the other ranks do.
void be_absent(int rank, std::uint64_t n);
/// It stops in the middle of its data, until the communicator is aborted.
void stop_in_the_middle(int rank, std::uint64_t n);
/// It never comes, and the communicator has this asynchronous error.
void fail(int rank, std::uint64_t n, ncclResult_t error);
/// All its operations begin so much later.
void slow_down(int rank, std::int64_t us);
/// When a process dies, the communicators that it was in have the asynchronous error ncclRemoteError, as over a network.
/// Otherwise they wait, as between GPUs of one machine.
void tell_deaths(bool tell);
/// Forgets all of these.
void repair();

/// Communicators of this process that are not destroyed or aborted.
[[nodiscard]] std::size_t communicators();

}  // namespace penstock::simulated_nccl
