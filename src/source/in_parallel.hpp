// source/in_parallel: calls that several threads share.
#pragma once

#include <cstddef>
#include <functional>

namespace penstock::source {

/// Calls work(k) for each k below `count`, the lowest first, on as many as `threads` threads, of which the caller's is one. After
/// an exception no more calls begin; of several it is that of the lowest k that is thrown on.
///
/// Errors  Error  it is wanted no longer (core::Interruption); what `work` throws
void in_parallel(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t)>& work);

}  // namespace penstock::source
