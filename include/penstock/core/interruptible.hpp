// core/interruptible: work that ends while it waits for others.
#pragma once

#include <functional>
#include <stop_token>

namespace penstock {

/// Calls `work` on this thread. Soon after `stop` is requested, what it waits for ends with an Error: a server's answer, the time
/// before the next attempt, a program that gives credentials, the shards that are being indexed, the step of Loader::batch_at.
///
/// Errors  what `work` throws
void interruptible(const std::stop_token& stop, const std::function<void()>& work);

}  // namespace penstock
