// The library penstock_gloo: a program without it starts where there is no Gloo.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <penstock/sync/gloo.hpp>

#include "src/core/half.hpp"
#include "src/sync/collectives/element_types.hpp"
#include "src/sync/collectives/process_communicator.hpp"
#include "src/sync/collectives/reduction.hpp"

namespace penstock {

namespace {

using sync::Deadline;
using sync::Lane;
using sync::PeerError;
using sync::SteadyClock;

// Gloo writes to sockets without MSG_NOSIGNAL, and a survivor must not die of SIGPIPE. Keeps it
// from this thread, and from those that are started meanwhile, without touching the process's
// handlers.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigset_t pending;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    const timespec at_once{};
    if (!was_pending_ && sigismember(&before_, SIGPIPE) == 0)
      while (sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

// Gloo's idea of a rendezvous, over ours. All of it ends at one time, whatever Gloo asks for.
class Store final : public gloo::rendezvous::Store {
 public:
  Store(Rendezvous& rendezvous, std::string prefix, Deadline deadline)
      : rendezvous_(rendezvous), prefix_(std::move(prefix)), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    rendezvous_.set(prefix_ + key, {data.data(), data.size()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = wait_for(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) (void)wait_for(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

  [[nodiscard]] std::string wait_for(const std::string& key) {
    const std::chrono::duration<double> left = deadline_ - SteadyClock::now();
    return rendezvous_.get(prefix_ + key, std::max(left.count(), 0.0));
  }

 private:
  Rendezvous& rendezvous_;
  std::string prefix_;
  Deadline deadline_;
};

struct Message {
  std::uint32_t peer = 0;
  bool receives = false;
  std::vector<std::byte> copy;  // of what is sent, where it has to outlive its sender
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool done = false;
};

// What all duplicates have in common.
class Mesh {
 public:
  std::uint32_t number = 0;  // of this rendezvous's
  std::shared_ptr<Rendezvous> rendezvous;
  std::shared_ptr<gloo::rendezvous::Context> context;
  std::atomic<std::uint64_t> next_channel = 1;

  /// Ends what Gloo waits for, on all connections: a wait in vain is what makes it.
  void break_off() noexcept {
    try {
      std::byte nothing{};
      context->createUnboundBuffer(&nothing, 1)->waitRecv(nullptr, std::chrono::milliseconds(1));
    } catch (...) {  // "timed out"
    }
  }
  /// For a peer that asks for it later: Gloo forgets what was sent when its buffer goes.
  void keep(Message message) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(message));
    if (kept_.size() > kMost) kept_.pop_front();
  }

 private:
  static constexpr std::size_t kMost = 4096;

  std::mutex mutex_;
  std::deque<Message> kept_;  // end before the context
};

class GlooLinks final : public sync::Links {
 public:
  explicit GlooLinks(std::shared_ptr<Mesh> mesh, std::uint64_t channel = 0)
      : mesh_(std::move(mesh)),
        channel_(channel),
        sent_(size() * sync::kLanes),
        received_(size() * sync::kLanes),
        // A connection tells of the death of the peer that is waited for, and not of others'.
        failures_(mesh_->rendezvous->on_failure([this] { interrupt("a process is gone"); })) {}

  [[nodiscard]] std::uint32_t rank() const noexcept override { return mesh_->rendezvous->rank(); }
  [[nodiscard]] std::uint32_t size() const noexcept override { return mesh_->rendezvous->world(); }

  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    Message message{.peer = peer};
    if (lane != Lane::data) {
      message.copy.assign(bytes.begin(), bytes.end());
      bytes = message.copy;
    }
    return start(std::move(message), {const_cast<std::byte*>(bytes.data()), bytes.size()},
                 slot(sent_, peer, lane));
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    return start({.peer = peer, .receives = true}, bytes, slot(received_, peer, lane));
  }

  [[nodiscard]] std::uint32_t peer_of(Ticket ticket) const override {
    return messages_[ticket].peer;
  }
  void wait(Ticket ticket, Deadline deadline) override {
    Message& message = messages_[ticket];
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) throw PeerError(message.peer, true, "nothing came");
    {
      const std::lock_guard lock(mutex_);
      if (interrupted_) throw PeerError(message.peer, false, interrupted_);
      waited_for_ = &message;
    }
    const std::shared_ptr<void> over(nullptr, [this](void*) {
      const std::lock_guard lock(mutex_);
      waited_for_ = nullptr;
    });
    try {
      const bool done = message.receives ? message.buffer->waitRecv(nullptr, left)
                                         : message.buffer->waitSend(nullptr, left);
      if (!done) throw PeerError(message.peer, false, interruption());
      message.done = true;
    } catch (const gloo::IoException& error) {
      // Gloo says that it waited for too long by the same exception as that a peer is gone.
      throw PeerError(message.peer, SteadyClock::now() >= deadline, error.what());
    }
  }

  void all_reduce(const Collective& call, std::byte* data, Deadline deadline) override {
    const std::uint32_t next = (rank() + 1) % size();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) throw PeerError(next, true, "nothing came");
    // Of its slots' numbers ours are told apart by their highest bit.
    gloo::AllreduceOptions options(mesh_->context);
    options.setTag(static_cast<std::uint32_t>(channel_ << 16 | (calls_++ & 0xffffU)));
    options.setTimeout(left);
    sync::with_element_type<core::Half, core::Bfloat16>(
        call.dtype, [&]<class T>(T) { options.setOutput(reinterpret_cast<T*>(data), call.count); });
    const ReduceOp op = call.op == ReduceOp::product ? ReduceOp::product : ReduceOp::sum;
    options.setReduceFunction(
        [&](void* sum, const void* one, const void* other, std::size_t count) {
          const std::array inputs{static_cast<const std::byte*>(one),
                                  static_cast<const std::byte*>(other)};
          sync::reduce_elements(inputs, std::array{static_cast<std::byte*>(sum)}, count, call.dtype,
                                op, size());
        });
    {
      const std::lock_guard lock(mutex_);
      if (interrupted_) throw PeerError(next, false, interrupted_);
      reduces_ = true;
    }
    const std::shared_ptr<void> over(nullptr, [this](void*) {
      const std::lock_guard lock(mutex_);
      reduces_ = false;
    });
    try {
      const NoSigpipe quiet;
      gloo::allreduce(options);
    } catch (const gloo::Exception& error) {
      throw PeerError(next, SteadyClock::now() >= deadline, error.what());
    }
  }

  void interrupt() noexcept override { interrupt("this process has left"); }

  void farewell(const std::string& why, bool broke_off) noexcept override {
    if (channel_ != 0) return;  // a duplicate's end is not the process's
    if (broke_off)
      mesh_->rendezvous->abort(why);
    else
      mesh_->rendezvous->leave(why);
  }
  [[nodiscard]] std::optional<std::string> inquire(const PendingCall& late) override {
    return mesh_->rendezvous->inquire(late);
  }
  void on_inquiry(std::function<std::vector<PendingCall>()> report) override {
    reports_ = report ? mesh_->rendezvous->on_inquiry(std::move(report)) : nullptr;
  }
  [[nodiscard]] std::uint64_t channel() const noexcept override {
    return std::uint64_t{mesh_->number} << 32 | channel_;
  }

  void clear() noexcept override {
    for (Message& message : messages_)
      if (!message.done && !message.copy.empty()) mesh_->keep(std::move(message));
    messages_.clear();
  }

  [[nodiscard]] std::uint64_t next_channel() noexcept override { return mesh_->next_channel++; }
  [[nodiscard]] std::unique_ptr<Links> duplicate(std::uint64_t channel) override {
    return std::make_unique<GlooLinks>(mesh_, channel);
  }

  [[nodiscard]] std::optional<std::string> explanation() override {
    return mesh_->rendezvous->departed(0.5);
  }

 private:
  void interrupt(const char* why) noexcept {
    const std::lock_guard lock(mutex_);
    if (interrupted_ == nullptr) interrupted_ = why;
    if (reduces_) mesh_->break_off();
    if (waited_for_ == nullptr) return;
    if (waited_for_->receives)
      waited_for_->buffer->abortWaitRecv();
    else
      waited_for_->buffer->abortWaitSend();
  }
  [[nodiscard]] const char* interruption() {
    const std::lock_guard lock(mutex_);
    return interrupted_ == nullptr ? "the wait was ended" : interrupted_;
  }

  // The number of a message between two peers, the same on both sides.
  std::uint64_t slot(std::vector<std::uint64_t>& counts, std::uint32_t peer, Lane lane) {
    const auto which = static_cast<std::uint64_t>(lane);
    return std::uint64_t{1} << 63 | channel_ << 48 | which << 46 |
           counts[sync::kLanes * peer + which]++;
  }
  Ticket start(Message message, std::span<std::byte> bytes, std::uint64_t slot) {
    const NoSigpipe quiet;
    message.buffer = mesh_->context->createUnboundBuffer(bytes.data(), bytes.size());
    messages_.push_back(std::move(message));
    const Message& started = messages_.back();
    try {
      if (started.receives)
        started.buffer->recv(static_cast<int>(started.peer), slot);
      else
        started.buffer->send(static_cast<int>(started.peer), slot);
    } catch (const gloo::IoException& error) {
      throw PeerError(started.peer, false, error.what());
    }
    return messages_.size() - 1;
  }

  std::shared_ptr<Mesh> mesh_;
  std::uint64_t channel_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
  std::deque<Message> messages_;
  std::uint64_t calls_ = 0;  // of Gloo's own all_reduce
  std::mutex mutex_;
  const char* interrupted_ = nullptr;  // why
  bool reduces_ = false;               // Gloo does
  Message* waited_for_ = nullptr;
  std::shared_ptr<void> failures_;  // end first: they use what is above
  std::shared_ptr<void> reports_;
};

}  // namespace

std::unique_ptr<Communicator> gloo_communicator(std::shared_ptr<Rendezvous> rendezvous,
                                                const GlooOptions& options) {
  auto mesh = std::make_shared<Mesh>();
  mesh->rendezvous = std::move(rendezvous);
  Rendezvous& meeting = *mesh->rendezvous;
  const auto timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::min(options.timeout_s, 1e9) * 1e3));
  if (meeting.world() > 1) {
    const NoSigpipe quiet;
    try {
      gloo::transport::tcp::attr address;
      address.hostname = meeting.own_address();
      auto device = gloo::transport::tcp::CreateDevice(address);
      mesh->context = std::make_shared<gloo::rendezvous::Context>(
          static_cast<int>(meeting.rank()), static_cast<int>(meeting.world()));
      // Gloo waits five times as long for a connection.
      mesh->context->setTimeout(std::max(timeout / 5, std::chrono::milliseconds(1)));
      mesh->number = meeting.next_number();
      const std::string prefix = fmt::format("gloo {}/", mesh->number);
      Store store(meeting, prefix, sync::deadline_in(options.timeout_s));
      mesh->context->connectFullMesh(store, device);
      mesh->context->setTimeout(timeout);
      // The rendezvous must stay until all are connected.
      const auto connected = [](std::uint32_t rank) { return fmt::format("connected {}", rank); };
      store.set(connected(meeting.rank()), {});
      for (std::uint32_t rank = 0; rank < meeting.world(); ++rank)
        (void)store.wait_for(connected(rank));
    } catch (const gloo::Exception& error) {
      const std::string why =
          fmt::format("process {} of {} cannot connect to the others over Gloo: {}", meeting.rank(),
                      meeting.world(), error.what());
      const std::optional<std::string> known = meeting.departed();
      meeting.abort(why);
      throw Error(known ? fmt::format("{}; {}", why, *known) : why);
    }
  }
  return std::make_unique<sync::ProcessCommunicator>(std::make_unique<GlooLinks>(mesh),
                                                     options.timeout_s, options.any_order);
}

}  // namespace penstock
