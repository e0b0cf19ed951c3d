#include "loader_handle.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <penstock/core/error.hpp>

#include "bindings.hpp"
#include "waiting.hpp"

namespace penstock::python {

namespace {

using std::chrono::nanoseconds;

// Guarded by the GIL, or by its mutex where there is none.
struct RunningLoaders {
  std::mutex mutex;
  std::vector<std::pair<int, std::weak_ptr<RunningLoader>>> loaders;  // by fork_generation()
};
// Never destroyed: the last loaders may go with the interpreter's last objects.
RunningLoaders& running_loaders() {
  static auto* const all = new RunningLoaders;
  return *all;
}

// Threads on which loaders end, by fork_generation(); until stop_all_loaders() waits for them. Never destroyed either.
struct EndingLoaders {
  std::mutex mutex;
  std::vector<std::pair<int, std::thread>> threads;
};
EndingLoaders& ending_loaders() {
  static auto* const all = new EndingLoaders;
  return *all;
}

// A loader that a function drops which one of its own threads calls, itself or by Python's collector, would wait there for
// that thread's end.
void end_elsewhere(std::shared_ptr<RunningLoader> loader) noexcept {
  auto* const last = new std::shared_ptr<RunningLoader>(std::move(loader));
  try {
    EndingLoaders& all = ending_loaders();
    const std::lock_guard lock(all.mutex);
    all.threads.emplace_back(fork_generation(), std::thread([last] { delete last; }));
  } catch (const std::exception&) {
    // There is no thread for it: the loader is kept.
  }
}

// Those of this process: a fork copies no threads.
std::vector<std::thread> take_ending_loaders() {
  EndingLoaders& all = ending_loaders();
  const std::lock_guard lock(all.mutex);
  std::vector<std::thread> threads;
  for (auto& [generation, thread] : all.threads)
    if (generation == fork_generation()) threads.push_back(std::move(thread));
  std::erase_if(all.threads, [](const auto& one) { return !one.second.joinable(); });
  return threads;
}

using Turn = std::unique_lock<std::timed_mutex>;

Turn take_turn(std::timed_mutex& mutex) {
  Turn turn(mutex, std::try_to_lock);
  if (!turn) wait_in_slices([&](nanoseconds slice) { return turn.try_lock_for(slice); });
  return turn;
}

}  // namespace

std::optional<Step> RunningLoader::next() {
  const Turn turn = take_turn(turn_);
  std::optional<Step> step;
  wait_in_slices([&](nanoseconds slice) {
    if (!loader_.wait_for(slice)) return false;
    step = loader_.next();
    return true;
  });
  return step;
}

std::optional<std::uint32_t> RunningLoader::next_epoch() {
  const Turn turn = take_turn(turn_);
  std::optional<std::uint32_t> epoch;
  wait_in_slices([&](nanoseconds slice) {
    if (!loader_.wait_for_epoch(slice)) return false;
    epoch = loader_.next_epoch();
    return true;
  });
  return epoch;
}

bool RunningLoader::wait_for(std::optional<double> timeout_s) {
  return wait_in_slices(timeout_s, [&](nanoseconds slice) {
    const auto end = std::chrono::steady_clock::now() + slice;
    const Turn turn(turn_, slice);
    return turn && loader_.wait_for(end - std::chrono::steady_clock::now());
  });
}

void RunningLoader::restore(const LoaderState& state, const RestoreOptions& options) {
  std::vector<Notice> before;
  std::vector<Notice> notices;
  {
    const Turn turn = take_turn(turn_);
    without_gil([&] {
      before = loader_.notices();
      loader_.restore(state, options);
      notices = loader_.notices();
    });
  }
  std::erase_if(notices, [&](const Notice& notice) {
    return std::ranges::find(before, notice.text, &Notice::text) != before.end();
  });
  warn_of(notices);
}

void RunningLoader::rewind() {
  const Turn turn = take_turn(turn_);
  without_gil([&] { loader_.rewind(); });
}

Stats RunningLoader::recent(double window) {
  if (!(window > 0))
    throw std::invalid_argument("progress: window is a time above 0 seconds, found " +
                                std::to_string(window));
  const Stats now = without_gil([&] { return loader_.stats(); });
  if (now.seconds - next_before_.seconds >= window) before_ = std::exchange(next_before_, now);
  if (before_.seconds == 0 || now.seconds <= before_.seconds) return now;
  Stats since = now;
  since.samples -= before_.samples;
  since.seconds -= before_.seconds;
  since.consume_s -= before_.consume_s;
  for (std::size_t stage = 0; stage < since.stages.size(); ++stage) {
    since.stages[stage].wait_s -= before_.stages[stage].wait_s;
    since.stages[stage].busy_s -= before_.stages[stage].busy_s;
  }
  since.stall_fraction = since.wait_s() / since.seconds;
  return since;
}

void RunningLoader::set_weights(std::uint64_t step, std::vector<double> weights) {
  const Turn turn = take_turn(turn_);
  without_gil([&] { loader_.set_weights(step, std::move(weights)); });
}

void RunningLoader::stop() noexcept { loader_.stop(); }

LoaderHandle::LoaderHandle(Loader loader)
    : loader_(std::make_shared<RunningLoader>(std::move(loader))) {
  if (closing()) throw Error("a loader cannot be made while the interpreter ends");
  RunningLoaders& all = running_loaders();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.loaders, [](const auto& other) { return other.second.expired(); });
  all.loaders.emplace_back(generation_, loader_);
}

LoaderHandle::~LoaderHandle() {
  if (!loader_) return;
  if (generation_ != fork_generation()) {
    (void)new std::shared_ptr<RunningLoader>(std::move(loader_));
    return;
  }
  if (CallOfPython::is_on_this_thread()) {
    wanted_.reset();
    end_elsewhere(std::move(loader_));
    return;
  }
  const ReleasedGil released;  // this may turn out to be the last one
  wanted_.reset();
  loader_.reset();
}

RunningLoader& LoaderHandle::get() const {
  if (generation_ != fork_generation())
    throw Error(
        "this loader was made before a fork, which copies no threads, so it cannot run in the "
        "child: make the loader in the child, or start processes by spawn "
        "(multiprocessing.get_context('spawn'))");
  return *loader_;
}

void stop_all_loaders() {
  begin_closing();
  std::vector<std::shared_ptr<RunningLoader>> running;
  {
    RunningLoaders& all = running_loaders();
    const std::lock_guard lock(all.mutex);
    for (const auto& [generation, loader] : all.loaders)
      if (generation == fork_generation())
        if (auto alive = loader.lock()) running.push_back(std::move(alive));
    all.loaders.clear();
  }
  without_gil([&] {
    for (const auto& loader : running) loader->stop();
    running.clear();
    // Without the lock: what these threads wait for may drop another loader.
    for (std::thread& thread : take_ending_loaders()) thread.join();
    return 0;
  });
  release_kept();
}

}  // namespace penstock::python
