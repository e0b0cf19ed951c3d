// Waiting as Python code expects it: without the GIL, and Ctrl-C ends it.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>
#include <penstock/core/progress.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// How long Ctrl-C may go unnoticed, and how often a waiting thread wakes up.
inline constexpr std::chrono::milliseconds kSlice{50};

/// Calls wait(how long at most), without the GIL, until it is true or `timeout_s` have passed; says
/// which. Signal handlers run in between.
///
/// Errors  what a signal handler raises, KeyboardInterrupt; what `wait` throws
template <class Wait>
bool wait_in_slices(std::optional<double> timeout_s, Wait&& wait) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::nanoseconds;
  const Clock::time_point begin = Clock::now();
  while (true) {
    nanoseconds slice = kSlice;
    if (timeout_s) {
      const auto left = std::chrono::duration<double>(*timeout_s) - (Clock::now() - begin);
      if (left < kSlice)
        slice = std::max(std::chrono::duration_cast<nanoseconds>(left), nanoseconds(0));
    }
    bool done = false;
    {
      const ReleasedGil released;
      done = wait(slice);
    }
    if (done) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (timeout_s && slice < kSlice) return false;
  }
}

/// The same without a limit.
template <class Wait>
void wait_in_slices(Wait&& wait) {
  (void)wait_in_slices(std::nullopt, std::forward<Wait>(wait));
}

/// What `work()` returns, which is called in another thread, without the GIL. This one calls `meanwhile`, with the GIL, ten times a second
/// and at the end; when that or a signal handler raises something, it calls `give_up`, without the GIL, and throws it when `work` has ended.
///
/// Errors  these; what `work` throws; Error: this process may have no more threads
template <class Work, class Meanwhile, class GiveUp>
auto call_elsewhere(Work work, const Meanwhile& meanwhile, const GiveUp& give_up) {
  constexpr double kEveryS = 0.1;
  const auto start = [&] {
    try {
      return std::async(std::launch::async, std::move(work));
    } catch (const std::system_error& error) {
      throw Error(std::string("cannot start the thread that lets Ctrl-C end this call: ") +
                  error.what() +
                  "; raise the limit of threads (ulimit -u, or the container's pids.max) or of "
                  "memory (ulimit -v)");
    }
  };
  auto result = start();
  try {
    while (!wait_in_slices(kEveryS, [&](std::chrono::nanoseconds slice) {
      return result.wait_for(slice) == std::future_status::ready;
    }))
      meanwhile();
    meanwhile();
  } catch (...) {
    const ReleasedGil released;
    give_up();
    result.wait();
    throw;
  }
  {
    const ReleasedGil released;  // its thread may take the GIL to end
    result.wait();
  }
  return result.get();
}

/// call_elsewhere() of `work(stop token)`, whose stop is requested to give up.
template <class Work, class Meanwhile>
auto stoppably(Work work, const Meanwhile& meanwhile) {
  std::stop_source stop;
  return call_elsewhere([&] { return work(stop.get_token()); }, meanwhile,
                        [&] { stop.request_stop(); });
}

/// What is told of work in another thread, handed on by the one that waits for it.
class PythonProgress {
 public:
  /// For with_progress().
  [[nodiscard]] ProgressCallback callback() {
    return [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      if (!untold_.empty() && !untold_.back().has_ended) untold_.pop_back();
      untold_.push_back(progress);
    };
  }
  /// With the GIL: calls what set_progress() was given, or writes to the terminal.
  ///
  /// Errors  what that raises
  void tell() {
    std::vector<Progress> told;
    {
      const std::lock_guard lock(mutex_);
      told.swap(untold_);
    }
    for (std::size_t k = 0; k < told.size(); ++k) try {
        const Progress& progress = told[k];
        const nb::object own = nb::module_::import_("penstock._progress")
                                   .attr("tell")(text(progress.what), text(progress.unit),
                                                 progress.done, progress.total, progress.has_ended);
        if (!nb::cast<bool>(own) && line_) line_(progress);
      } catch (...) {  // the ends among the rest are told behind the error
        const std::lock_guard lock(mutex_);
        untold_.insert(untold_.begin(), told.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                       told.end());
        throw;
      }
  }
  /// The same behind an error: that the work has ended. What that raises is dropped.
  void tell_end() noexcept {
    try {
      {
        const std::lock_guard lock(mutex_);
        std::erase_if(untold_, [](const Progress& progress) { return !progress.has_ended; });
      }
      tell();
    } catch (const std::exception&) {
      // The error before it is told.
    }
  }

 private:
  static nb::object text(const std::string& bytes) {
    return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                                          "surrogateescape"));
  }

  std::mutex mutex_;
  std::vector<Progress> untold_;
  ProgressCallback line_ = progress_line();
};

/// The same of a call that waits for others: Ctrl-C ends what it waits for, as interruptible() does, and it says how far it is.
template <class Call>
auto interruptibly(Call call) {
  PythonProgress progress;
  try {
    return stoppably(
        [&](const std::stop_token& stop) {
          std::optional<decltype(call())> result;
          with_progress(progress.callback(),
                        [&] { interruptible(stop, [&] { result.emplace(call()); }); });
          return std::move(*result);
        },
        [&] { progress.tell(); });
  } catch (...) {
    progress.tell_end();
    throw;
  }
}

}  // namespace penstock::python
