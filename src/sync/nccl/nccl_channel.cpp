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

// The lock is held again afterwards, also behind an exception.
template <class Body>
auto without(std::unique_lock<std::mutex>& lock, const Body& body) {
  struct Relock {
    std::unique_lock<std::mutex>& own;
    ~Relock() { own.lock(); }
  };
  lock.unlock();
  const Relock relock{lock};
  return body();
}

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
  key_ = fmt::format("nccl {}/", hash_text(unique_id));
  const device::CurrentDevice current(place_.device);
  begin(nccl.comm_init_rank_config(&comm_, static_cast<int>(place_.size), id,
                                   static_cast<int>(place_.rank), &config),
        "its initialisation");
}

NcclChannel::NcclChannel(Place place, ncclComm_t comm, std::string key)
    : place_(std::move(place)), comm_(comm), key_(std::move(key)) {
  const device::CurrentDevice current(place_.device);
  begin(ncclInProgress, "the split");
}

void NcclChannel::begin(ncclResult_t status, const std::string& what) {
  try {
    finish(status, what);
    if (place_.rendezvous) answers_ = place_.rendezvous->on_inquiry([this] { return waits_for(); });
    watchdog_ = core::start_thread("NCCL", [this](const std::stop_token& stop) { watch(stop); });
  } catch (...) {
    if (comm_ != nullptr) (void)NcclLibrary::get().comm_abort(comm_);
    throw;
  }
}

NcclChannel::~NcclChannel() {
  answers_.reset();
  watchdog_ = {};
  const NcclLibrary& nccl = NcclLibrary::get();
  if (comm_ == nullptr) return;  // it is aborted
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
  const device::CurrentDevice current(place_.device);
  // Another thread writes it, until the parent is ready or aborted.
  ncclComm_t& copy = copies_.emplace_back(nullptr);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::string key = fmt::format("{}{}/", key_, ++splits_);
  const ncclResult_t begun = call([&](ncclComm_t comm) {
    return NcclLibrary::get().comm_split(comm, 0, static_cast<int>(place_.rank), &copy, &config);
  });
  // Success only says that it has begun.
  finish(begun == ncclSuccess ? ncclInProgress : begun, "duplicate()");
  return std::shared_ptr<NcclChannel>(new NcclChannel(place_, copy, std::move(key)));
}

void NcclChannel::enqueue(const std::string& what, cudaStream_t stream, const Start& start) {
  check_health();
  const device::CurrentDevice current(place_.device);
  if (device::is_capturing(stream))
    throw std::logic_error(
        what +
        " on a stream that is being captured: every collective is watched while it runs, which a "
        "graph's are not; call it outside of the capture");
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    sequence = ++sequence_;
  }
  // For the others, in case this rank is the one that they wait for.
  if (place_.rendezvous)
    place_.rendezvous->set(fmt::format("{}{}", key_, place_.rank),
                           fmt::format("{} {}", sequence, what));
  device::CudaEvent begun(place_.device);
  device::CudaEvent done(place_.device);
  // NCCL may queue its work on a thread of its own, where that handle would name another stream.
  const bool is_threads = stream == cudaStreamPerThread;
  if (is_threads && !own_stream_) own_stream_.emplace(place_.device);
  const cudaStream_t on = is_threads ? own_stream_->get() : stream;
  // Each of these waits where the stream can take no more, which may last until abort().
  device::check(cudaEventRecord(begun.get(), stream));
  if (is_threads) device::check(cudaStreamWaitEvent(on, begun.get(), 0));
  finish(call([&](ncclComm_t comm) { return start(comm, on); }), what);
  try {
    device::check(cudaEventRecord(done.get(), on));
    if (is_threads) device::check(cudaStreamWaitEvent(stream, done.get(), 0));
  } catch (const CudaError&) {  // then no thread would see whether the work ends
    abort(std::current_exception());
    throw;
  }
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  work_.push_back({std::move(begun), std::move(done), what, sequence, std::nullopt});
  changed_.notify_all();
}

void NcclChannel::check_health() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

void NcclChannel::abort(const std::exception_ptr& cause) noexcept {
  const std::lock_guard lock(mutex_);
  break_locked(cause);
}

void NcclChannel::wait_until_ended(cudaStream_t stream) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_) return;
  }
  // In the stream something else may wait for a process that is gone.
  const Deadline deadline = deadline_in(kMostWait);
  try {
    const device::CurrentDevice current(place_.device);
    const auto wait_for = [&](cudaStream_t one) {
      while (cudaStreamQuery(one) == cudaErrorNotReady && SteadyClock::now() < deadline) {
        (void)cudaGetLastError();  // or the next launch would report it as its own
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    wait_for(stream);
    if (own_stream_) wait_for(own_stream_->get());
  } catch (const CudaError&) {
    // The device is lost: nothing runs there any more.
  }
}

void NcclChannel::on_broken(std::function<void(const std::exception_ptr&)> tell) {
  const std::lock_guard lock(tell_mutex_);
  tell_ = std::move(tell);
}

void NcclChannel::tell(const std::exception_ptr& cause) {
  const std::lock_guard lock(tell_mutex_);
  if (tell_) tell_(cause);
}

ncclResult_t NcclChannel::call(const std::function<ncclResult_t(ncclComm_t)>& function) {
  struct Inside {
    explicit Inside(NcclChannel& channel) : own(channel) {
      const std::lock_guard lock(own.mutex_);
      if (own.broken_) std::rethrow_exception(own.broken_);
      own.is_inside_ = true;
      comm = own.comm_;
    }
    ~Inside() {
      const std::lock_guard lock(own.mutex_);
      own.is_inside_ = false;
      if (own.broken_) own.changed_.notify_all();
    }
    NcclChannel& own;
    ncclComm_t comm = nullptr;
  };
  const Inside inside(*this);
  return function(inside.comm);
}

// A call that is not done yet, for those that ask what this process waits for.
struct NcclChannel::InCall {
  InCall(NcclChannel& channel, const std::string& what) : own(channel) {
    const std::lock_guard lock(own.mutex_);
    number = own.sequence_;
    if (own.place_.rendezvous) own.in_call_ = own.pending(what, number);
  }
  ~InCall() {
    const std::lock_guard lock(own.mutex_);
    own.in_call_.reset();
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  NcclChannel& own;
  std::uint64_t number = 0;
};

// Calls of a communicator that does not block return before they are done.
void NcclChannel::finish(ncclResult_t status, const std::string& what) {
  if (status == ncclSuccess) return;
  const auto fail = [&](std::exception_ptr cause) {
    const std::lock_guard lock(mutex_);
    break_locked(std::move(cause));
    std::rethrow_exception(broken_);
  };
  const Deadline deadline = deadline_in(place_.timeout_s);
  const InCall in_call(*this, what);
  while (status == ncclInProgress) {
    if (const auto gone = who_is_gone(deadline))
      fail(std::make_exception_ptr(
          SyncError(fmt::format("replica {}, in {}: {}", place_.rank, what, *gone))));
    if (SteadyClock::now() > deadline)
      fail(std::make_exception_ptr(SyncError(late_text(what, in_call.number))));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    const ncclResult_t asked = NcclLibrary::get().comm_get_async_error(comm_, &status);
    if (asked != ncclSuccess) status = asked;
  }
  if (status == ncclSuccess) return;
  const std::lock_guard lock(mutex_);
  if (!broken_) break_locked(std::make_exception_ptr(error_of(status, what, comm_)));
  std::rethrow_exception(broken_);
}

void NcclChannel::break_locked(std::exception_ptr cause) noexcept {
  if (broken_) return;
  broken_ = std::move(cause);
  changed_.notify_all();
}

void NcclChannel::watch(const std::stop_token& stop) {
  UniqueLock lock(mutex_);
  while (!stop.stop_requested() && !broken_) {
    if (!changed_.wait(lock, stop, [&] { return !work_.empty() || broken_; }) || broken_) break;
    try {
      look_locked(lock);
    } catch (...) {
      break_locked(std::current_exception());
    }
    if (!work_.empty()) changed_.wait_for(lock, stop, kPoll, [&] { return broken_ != nullptr; });
  }
  if (broken_) end_work(lock);
}

// Ends kernels that wait for others, so that streams, and threads that wait for them, continue.
void NcclChannel::end_work(UniqueLock& lock) noexcept {
  constexpr auto kCallsEnd = std::chrono::seconds(1);
  const std::exception_ptr cause = broken_;
  lock.unlock();
  // Before the abort, which may wait for the kernels of another channel of the device: that one is told here.
  try {
    tell(cause);
  } catch (...) {  // no memory for its words: the others have their own timeouts
  }
  lock.lock();
  // A call ends by itself, except where its stream takes no more before the abort.
  changed_.wait_for(lock, kCallsEnd, [&] { return !is_inside_; });
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  const std::deque<Work> work = std::exchange(work_, {});
  lock.unlock();
  const NcclLibrary& nccl = NcclLibrary::get();
  try {
    const device::CurrentDevice current(place_.device);
    (void)nccl.comm_abort(comm);
  } catch (const CudaError&) {
    (void)nccl.comm_abort(comm);  // the device is lost
  }
}

void NcclChannel::look_locked(UniqueLock& lock) {
  const device::CurrentDevice current(place_.device);
  while (!work_.empty() && work_.front().done.is_over()) work_.pop_front();
  if (work_.empty()) return;
  Work& first = work_.front();
  if (!first.deadline && first.begun.is_over()) first.deadline = deadline_in(place_.timeout_s);
  ncclResult_t status = ncclSuccess;
  if (NcclLibrary::get().comm_get_async_error(comm_, &status) == ncclSuccess &&
      status != ncclSuccess && status != ncclInProgress) {
    const NcclError error = error_of(status, first.what, comm_);
    const std::string what = first.what;
    if (!place_.rendezvous) throw error;
    // Which process has died is known a moment later: the thread that is told of it may want the lock before.
    const auto departed = without(lock, [&] { return place_.rendezvous->departed(Seconds(1)); });
    if (departed)
      throw SyncError(fmt::format("replica {}, in {}: {}", place_.rank, what, *departed));
    throw error;
  }
  if (const auto gone = who_is_gone(first.deadline.value_or(deadline_in(place_.timeout_s))))
    throw SyncError(fmt::format("replica {}, in {}: {}", place_.rank, first.what, *gone));
  if (first.deadline && SteadyClock::now() > *first.deadline) {
    const std::string what = first.what;  // which may go meanwhile
    const std::uint64_t number = first.number;
    // Asking takes a while.
    throw SyncError(without(lock, [&] { return late_text(what, number); }));
  }
}

// Says which process's absence will keep a call that has `deadline` from its end. A process that left
// properly may have done its part of it before; only when the rest takes suspiciously long, it has not.
std::optional<std::string> NcclChannel::who_is_gone(Deadline deadline) const {
  constexpr double kPatience = 5;
  if (!place_.rendezvous) return std::nullopt;
  const bool long_ago = deadline < deadline_in(place_.timeout_s - kPatience);
  return long_ago ? place_.rendezvous->departed() : place_.rendezvous->failure();
}

PendingCall NcclChannel::pending(const std::string& what, std::uint64_t number) const {
  return {.communicator = std::stoull(hash_text(key_), nullptr, 16),
          .number = number,
          .phase = 0,
          .peer = (place_.rendezvous->rank() + 1) % place_.rendezvous->world(),
          .call = what};
}

std::vector<PendingCall> NcclChannel::waits_for() {
  const std::lock_guard lock(mutex_);
  if (in_call_) return {*in_call_};
  // Before the stream has come to it, it is something else that this process waits for.
  if (work_.empty() || !work_.front().deadline) return {};
  return {pending(work_.front().what, work_.front().number)};
}

// Says which replicas have made fewer calls than this rank, as far as the rendezvous knows. Where all have made this one, whose part of
// it is missing is found by asking them: a process that is stopped does not answer.
std::string NcclChannel::late_text(const std::string& what, std::uint64_t sequence) {
  std::string slow, why;
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
    // What another communicator's question has found meanwhile; then get() finds nothing.
    if (const auto failure = place_.rendezvous->failure()) {
      why = *failure;
      break;
    }
    if (made < sequence)
      slow += fmt::format("{}replica {} {}", slow.empty() ? "" : ", ", rank, words);
  }
  if (why.empty() && slow.empty() && place_.rendezvous && place_.rendezvous->world() > 1) try {
      why = place_.rendezvous->inquire(pending(what, sequence));
    } catch (const Error& error) {  // process 0 is gone
      why = error.what();
    }
  if (why.empty() && !slow.empty())
    why = slow + "; it is stopped, hangs, or is busy with something else";
  if (why.empty()) why = "another replica did not come, or the network hangs";
  return fmt::format("replica {} waited {} s in its collective {} {}: {}", place_.rank,
                     place_.timeout_s, sequence, what, why);
}

}  // namespace penstock::sync
