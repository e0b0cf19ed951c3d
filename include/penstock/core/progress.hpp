// core/progress: how far long work is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {

/// What a long piece of work has done so far.
struct Progress {
  std::string what;         ///< what is done: "listing /data/train"
  std::string unit;         ///< of what is counted: "files"
  std::uint64_t done = 0;   ///< so many
  std::uint64_t total = 0;  ///< of so many; 0: that is not known yet
  bool has_ended = false;   ///< true once, at its end, also after an error
};
using ProgressCallback = std::function<void(const Progress&)>;

/// Calls `work` on this thread. What takes long in it tells `callback` up to five times a second how far it is: listings of
/// folders and objects, indexes of shards and tables, and what reads each sample or row before a loader runs. What `callback`
/// throws ends the work.
///
/// Threads  counts for this thread; `callback` is called by one thread at a time of those that the library starts for `work`
/// Errors  what `work` throws
void with_progress(const ProgressCallback& callback, const std::function<void()>& work);

/// A callback that writes one line to the terminal, once a piece of work has taken two seconds, and erases it at its end. None
/// where the standard error is no terminal, so that logs stay free of it.
[[nodiscard]] ProgressCallback progress_line();

}  // namespace penstock
