#include "src/sync/nccl/nccl_channel.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>
#include <penstock/sync/communicator.hpp>

#include "src/core/start_thread.hpp"
#include "src/sync/nccl/nccl_library.hpp"

namespace penstock::sync {

namespace {

constexpr auto kPoll = std::chrono::milliseconds(5);

NcclError error_of(ncclResult_t status, const std::string& what, ncclComm_t comm) {
  const NcclLibrary& nccl = NcclLibrary::get();
  const char* const more = nccl.get_last_error(comm);
  return {status,
          fmt::format("NCCL: {} in {}{}{}", nccl.get_error_string(status), what,
                      more != nullptr && *more != 0 ? ": " : "", more == nullptr ? "" : more)};
}

}  // namespace

NcclChannel::NcclChannel(Place place, const std::string& unique_id) : place_(std::move(place)) {
  const NcclLibrary& nccl = NcclLibrary::get();
  ncclUniqueId id{};
  if (unique_id.size() != sizeof id)
    throw std::invalid_argument(
        fmt::format("NCCL's id has {} bytes, found {}", sizeof id, unique_id.size()));
  std::memcpy(&id, unique_id.data(), sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const device::CurrentDevice current(place_.device);
  UniqueLock lock(mutex_);
  key_ = fmt::format("nccl {}/", hash_text(unique_id));
  finish_locked(lock,
                nccl.comm_init_rank_config(&comm_, static_cast<int>(place_.size), id,
                                           static_cast<int>(place_.rank), &config),
                "its initialisation");
  begin();
}

NcclChannel::NcclChannel(Place place, ncclComm_t comm, std::string key)
    : place_(std::move(place)), comm_(comm), key_(std::move(key)) {
  const device::CurrentDevice current(place_.device);
  UniqueLock lock(mutex_);
  finish_locked(lock, ncclInProgress, "the split");
  begin();
}

void NcclChannel::begin() {
  watchdog_ = core::start_thread("NCCL", [this](const std::stop_token& stop) { watch(stop); });
}

NcclChannel::~NcclChannel() {
  watchdog_ = {};
  const NcclLibrary& nccl = NcclLibrary::get();
  if (comm_ == nullptr || broken_) return;  // a broken one has been aborted
  try {
    const device::CurrentDevice current(place_.device);
    // Waits for the others for as long as for any collective.
    const Deadline deadline = deadline_in(std::min(place_.timeout_s, 10.0));
    ncclResult_t status = nccl.comm_finalize(comm_);
    while (status == ncclInProgress && SteadyClock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      (void)nccl.comm_get_async_error(comm_, &status);
    }
    if (status == ncclSuccess)
      (void)nccl.comm_destroy(comm_);
    else
      (void)nccl.comm_abort(comm_);
  } catch (const CudaError&) {
    (void)nccl.comm_abort(comm_);  // the device is lost
  }
}

std::shared_ptr<NcclChannel> NcclChannel::split() {
  ncclComm_t copy = nullptr;
  std::string key;
  {
    UniqueLock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    const device::CurrentDevice current(place_.device);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    key = fmt::format("{}{}/", key_, ++splits_);
    const ncclResult_t begun =
        NcclLibrary::get().comm_split(comm_, 0, static_cast<int>(place_.rank), &copy, &config);
    // Success only says that it has begun: another thread writes `copy` until the parent is ready again.
    finish_locked(lock, begun == ncclSuccess ? ncclInProgress : begun, "duplicate()");
  }
  return std::shared_ptr<NcclChannel>(new NcclChannel(place_, copy, std::move(key)));
}

void NcclChannel::enqueue(const std::string& what, cudaStream_t stream,
                          const std::function<ncclResult_t(ncclComm_t)>& start) {
  UniqueLock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  const device::CurrentDevice current(place_.device);
  if (device::is_capturing(stream))
    throw std::logic_error(
        what +
        " on a stream that is being captured: every collective is watched while it runs, which a "
        "graph's are not; call it outside of the capture");
  ++sequence_;
  // For the others, in case this rank is the one that they wait for.
  if (place_.rendezvous)
    place_.rendezvous->set(fmt::format("{}{}", key_, place_.rank),
                           fmt::format("{} {}", sequence_, what));
  device::CudaEvent begun(place_.device);
  device::CudaEvent done(place_.device);
  device::check(cudaEventRecord(begun.get(), stream));
  finish_locked(lock, start(comm_), what);
  device::check(cudaEventRecord(done.get(), stream));
  work_.push_back({std::move(begun), std::move(done), what, std::nullopt});
  changed_.notify_all();
}

void NcclChannel::check_health() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

void NcclChannel::abort(const std::exception_ptr& cause) noexcept {
  {
    const std::lock_guard lock(abort_mutex_);
    if (!abort_cause_) abort_cause_ = cause;
  }
  aborts_ = true;  // ends a call that has the lock
  const std::lock_guard lock(mutex_);
  break_locked(cause);
}

void NcclChannel::on_broken(std::function<void(const std::exception_ptr&)> tell) {
  const std::lock_guard lock(tell_mutex_);
  tell_ = std::move(tell);
}

void NcclChannel::tell(const std::exception_ptr& cause) {
  const std::lock_guard lock(tell_mutex_);
  if (tell_) tell_(cause);
}

// Calls of a communicator that does not block return before they are done.
void NcclChannel::finish_locked(UniqueLock& lock, ncclResult_t status, const std::string& what) {
  const Deadline deadline = deadline_in(place_.timeout_s);
  while (status == ncclInProgress) {
    if (aborts_) {
      const std::lock_guard why(abort_mutex_);
      fail_locked(abort_cause_);
    }
    if (const auto gone = who_is_gone(deadline))
      fail_locked(std::make_exception_ptr(
          SyncError(fmt::format("replica {}, in {}: {}", place_.rank, what, *gone))));
    if (SteadyClock::now() > deadline)
      fail_locked(std::make_exception_ptr(SyncError(late_text(lock, what))));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const ncclResult_t asked = NcclLibrary::get().comm_get_async_error(comm_, &status);
    if (asked != ncclSuccess) status = asked;
  }
  if (status != ncclSuccess) fail_locked(std::make_exception_ptr(error_of(status, what, comm_)));
}

void NcclChannel::fail_locked(std::exception_ptr cause) {
  break_locked(cause);
  std::rethrow_exception(cause);
}

void NcclChannel::break_locked(std::exception_ptr cause) noexcept {
  if (broken_) return;
  broken_ = std::move(cause);
  changed_.notify_all();
  // Ends kernels that wait for others, so that streams, and threads that wait for them, continue.
  if (comm_ != nullptr) (void)NcclLibrary::get().comm_abort(comm_);
  comm_ = nullptr;
  work_.clear();
}

void NcclChannel::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait(lock, stop, [&] { return !work_.empty() || (broken_ && !told_); });
    if (stop.stop_requested()) return;
    try {
      look_locked(lock);
    } catch (...) {
      break_locked(std::current_exception());
    }
    if (broken_ && !told_) {
      told_ = true;
      const std::exception_ptr cause = broken_;
      lock.unlock();
      try {
        tell(cause);
      } catch (...) {  // no memory for its words: the others have their own timeouts
      }
      lock.lock();
    }
    if (!work_.empty()) changed_.wait_for(lock, stop, kPoll, [] { return false; });
  }
}

void NcclChannel::look_locked(UniqueLock& lock) {
  while (!work_.empty() && work_.front().done.is_over()) work_.pop_front();
  if (work_.empty()) return;
  Work& first = work_.front();
  if (!first.deadline && first.begun.is_over()) first.deadline = deadline_in(place_.timeout_s);
  ncclResult_t status = ncclSuccess;
  if (NcclLibrary::get().comm_get_async_error(comm_, &status) == ncclSuccess &&
      status != ncclSuccess && status != ncclInProgress) {
    // Which process has died is known a moment later.
    if (place_.rendezvous)
      if (const auto departed = place_.rendezvous->departed(Seconds(1)))
        throw SyncError(fmt::format("replica {}, in {}: {}", place_.rank, first.what, *departed));
    throw error_of(status, first.what, comm_);
  }
  if (const auto gone = who_is_gone(first.deadline.value_or(deadline_in(place_.timeout_s))))
    throw SyncError(fmt::format("replica {}, in {}: {}", place_.rank, first.what, *gone));
  if (first.deadline && SteadyClock::now() > *first.deadline)
    throw SyncError(late_text(lock, first.what));
}

// Says which process's absence will keep a call that has `deadline` from its end. A process that left
// properly may have done its part of it before; only when the rest takes suspiciously long, it has not.
std::optional<std::string> NcclChannel::who_is_gone(Deadline deadline) const {
  constexpr double kPatience = 5;
  if (!place_.rendezvous) return std::nullopt;
  const bool long_ago = deadline < deadline_in(place_.timeout_s - kPatience);
  return long_ago ? place_.rendezvous->departed() : place_.rendezvous->failure();
}

// Says which replicas have made fewer calls than this rank, as far as the rendezvous knows.
std::string NcclChannel::late_text(UniqueLock& lock, const std::string& what) {
  const std::uint64_t sequence = sequence_;
  const std::string called = what;  // the work that it belongs to may go meanwhile
  lock.unlock();                    // asking takes a while
  std::string behind;
  for (std::uint32_t rank = 0; place_.rendezvous && rank < place_.size; ++rank) {
    if (rank == place_.rank) continue;
    std::string words = "has made none";
    std::uint64_t made = 0;
    try {
      const std::string told =
          place_.rendezvous->get(fmt::format("{}{}", key_, rank), Seconds(0.2));
      std::from_chars(told.data(), told.data() + told.size(), made);
      words = fmt::format("is at its collective {}", told);
    } catch (const Error&) {  // it has not told anything yet
    }
    if (made < sequence)
      behind += fmt::format("{}replica {} {}", behind.empty() ? "" : ", ", rank, words);
  }
  lock.lock();
  return fmt::format("replica {} waited {} s in its collective {} {}: {}", place_.rank,
                     place_.timeout_s, sequence, called,
                     behind.empty()
                         ? "another replica did not come, or the network hangs"
                         : behind + "; it is stopped, hangs, or is busy with something else");
}

}  // namespace penstock::sync
