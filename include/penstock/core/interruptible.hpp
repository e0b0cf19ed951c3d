// core/interruptible: work that ends while it waits for others.
#pragma once

#include <functional>
#include <stop_token>

namespace penstock {

/// Calls `work` on this thread. Once `stop` is requested, the waits of this library inside `work` end with an Error: for an answer
/// of S3, before another attempt, for a `credential_process`, for shards that are indexed (between two of them), in image_sizes
/// (between two images), in preparing (between two samples), in synthetic_images, and in Loader::batch_at. The listing of a
/// local folder and the read of a local file go on. Loader::next() is not affected, nor is a call that is given a stop token of
/// its own.
///
/// Threads  counts for this thread, and for those that the library starts for `work`
/// Errors  what `work` throws
void interruptible(const std::stop_token& stop, const std::function<void()>& work);

}  // namespace penstock
