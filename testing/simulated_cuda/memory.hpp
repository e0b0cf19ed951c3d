// testing/simulated_cuda/memory: device memory, which only the executor may touch while it runs an operation.
#pragma once

#include <string>

#include "machine.hpp"

namespace penstock::simulated_cuda {

/// Opens an allocation for the executor, or closes it for all.
void set_open(Allocation& allocation, bool open);
/// From now on an access to closed device memory opens it for the executor, or ends the program with a sentence. False:
/// the program has a handler of its own for SIGSEGV. It may put that back at any time, and then nothing opens memory.
[[nodiscard]] bool catch_bad_accesses();
/// What the executor runs, for that sentence.
void set_current(const std::string& operation, int device, std::uint64_t stream);

}  // namespace penstock::simulated_cuda
