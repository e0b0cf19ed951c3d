// core/parallel_for: a loop on oneTBB's threads.
#pragma once

#include <cstddef>
#include <string_view>

#include <tbb/parallel_for.h>

#include "src/core/start_thread.hpp"

namespace penstock::core {

/// Calls body(0) to body(count - 1), several at a time, and returns when all have returned; `what` is what they do, for
/// messages: "sorting".
///
/// Errors  Error  a thread cannot be started; what `body` throws
template <class Body>
void parallel_for(std::string_view what, std::size_t count, const Body& body) {
  run_on_tbb_threads(what, [&] { tbb::parallel_for(std::size_t{0}, count, body); });
}

}  // namespace penstock::core
