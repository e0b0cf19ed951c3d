// loader/finish_rows: what host devices do to rows, in the threads that fill them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <penstock/loader/loader.hpp>

#include "src/loader/in_flight.hpp"

namespace penstock::loader {

/// Does what the device transforms do to rows [first, first + count) of a part on a host device, once their samples and
/// the field valid lie in the slice and the samples' identities are final; each row once. Does nothing for a part on a GPU, nor
/// in a RowMaker, whose rows go to another process. Returns the nanoseconds that it took, which it adds to the batch's.
///
/// Threads  any number, with different rows
std::int64_t finish_rows(InFlight& batch, std::size_t part, std::uint64_t first,
                         std::uint64_t count, StageObserver* observer);

}  // namespace penstock::loader
