// The library penstock_gloo: a program without it starts where there is no Gloo.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <iterator>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/process_communicator.hpp"

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
    const Seconds left = deadline_ - SteadyClock::now();
    return rendezvous_.get(prefix_ + key, std::max(left, Seconds(0)));
  }

 private:
  Rendezvous& rendezvous_;
  std::string prefix_;
  Deadline deadline_;
};

struct Message : sync::Links::Receipt {
  Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  // Gloo's thread may have been the last to use the buffer: its lock says so to ThreadSanitizer, too, which knows nothing of
  // how Gloo waits for that.
  ~Message() {
    if (buffer) wake();
  }

  bool receives = false;
  Lane lane = Lane::data;
  std::vector<std::byte> copy;  // of a head: Gloo sends from here, or receives to here
  std::span<std::byte> target;  // of a head that is received
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  bool done = false;  // as far as is known: Gloo has to be waited for

  void wake() const {
    if (receives)
      buffer->abortWaitRecv();
    else
      buffer->abortWaitSend();
  }
};
using Messages = std::list<Message>;

// What all duplicates have in common.
class Mesh {
 public:
  std::uint32_t number = 0;  // of this rendezvous's
  std::shared_ptr<Rendezvous> rendezvous;
  std::shared_ptr<gloo::rendezvous::Context> context;
  std::atomic<std::uint64_t> next_channel = 1;

  /// Ends all connections: a wait in vain makes Gloo do it.
  void break_off() noexcept {
    try {
      std::byte nothing{};
      context->createUnboundBuffer(&nothing, 1)->waitRecv(nullptr, std::chrono::milliseconds(1));
    } catch (...) {  // "timed out"
    }
  }
  /// For peers that take, or send, their end of these later: where they find no memory, Gloo holds up all else that is
  /// between the two processes.
  void keep(Messages& messages) noexcept {
    const std::lock_guard lock(mutex_);
    for (const Message& message : messages) kept_bytes_ += message.copy.size();
    kept_.splice(kept_.end(), messages);
    for (; kept_bytes_ > kMostBytes; kept_.pop_front()) kept_bytes_ -= kept_.front().copy.size();
  }

 private:
  // Of thousands of communicators that have ended.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  std::mutex mutex_;
  std::size_t kept_bytes_ = 0;
  Messages kept_;  // end before the context
};

class GlooLinks final : public sync::Links {
 public:
  explicit GlooLinks(std::shared_ptr<Mesh> mesh, std::uint64_t channel = 0)
      : mesh_(std::move(mesh)), channel_(channel), sent_(size() * 2), received_(size() * 2) {
    if (channel_ >> kChannelBits != 0)
      throw Error(fmt::format(
          "expected fewer than {} duplicates of one communicator: use a duplicate again instead of "
          "making another, or connect anew",
          std::uint64_t{1} << kChannelBits));
    news_ = mesh_->rendezvous->on_news([this] {
      has_news_ = true;
      wake();
    });
  }
  GlooLinks(const GlooLinks&) = delete;
  GlooLinks& operator=(const GlooLinks&) = delete;
  ~GlooLinks() override {
    clear();
    mesh_->keep(earlier_);
  }

  [[nodiscard]] std::uint32_t rank() const noexcept override { return mesh_->rendezvous->rank(); }
  [[nodiscard]] std::uint32_t size() const noexcept override { return mesh_->rendezvous->world(); }

  void post(std::uint32_t peer, std::span<const std::byte> head) override {
    Message& message = posted_.emplace_back();
    message.peer = peer;
    message.lane = Lane::head;
    message.copy.assign(head.begin(), head.end());
    start(message, message.copy);
  }
  Ticket send(std::uint32_t peer, std::span<const std::byte> data) override {
    Message& message = messages_.emplace_back();
    message.peer = peer;
    start(message, {const_cast<std::byte*>(data.data()), data.size()});
    return &message;
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    Message& message = messages_.emplace_back();
    message.peer = peer;
    message.receives = true;
    message.lane = lane;
    if (lane != Lane::data) {
      message.target = bytes;
      message.copy.resize(bytes.size());
      bytes = message.copy;
    }
    start(message, bytes);
    return &message;
  }

  void wait(Ticket ticket, Deadline deadline) override {
    auto& message = static_cast<Message&>(*ticket);
    {
      const std::lock_guard lock(mutex_);
      waited_for_ = &message;
    }
    const std::shared_ptr<void> over(nullptr, [this](void*) {
      const std::lock_guard lock(mutex_);
      waited_for_ = nullptr;
    });
    Deadline until = deadline;
    try {
      while (!message.done) {
        if (interrupted_) throw PeerError(message.peer, false, "this process has left");
        if (has_news_) until = std::min(until, read_news(message.peer));
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now());
        if (left.count() <= 0) throw PeerError(message.peer, until == deadline, "nothing came");
        // False: it was woken.
        message.done = message.receives ? message.buffer->waitRecv(nullptr, left)
                                        : message.buffer->waitSend(nullptr, left);
      }
    } catch (const gloo::IoException& error) {
      // Gloo says that it waited for too long by the same exception as that a peer is gone.
      throw PeerError(message.peer, SteadyClock::now() >= deadline, error.what());
    }
    std::ranges::copy(message.copy, message.target.begin());
  }

  void interrupt() noexcept override {
    interrupted_ = true;
    wake();
  }

  void say_farewell(const std::string& why, bool broke_off) noexcept override {
    mesh_->rendezvous->say_farewell(channel(), broke_off, why);
  }
  [[nodiscard]] std::optional<std::string> farewell_of(std::uint32_t peer,
                                                       Deadline deadline) override {
    const Seconds left = deadline - SteadyClock::now();
    return mesh_->rendezvous->farewell_of(peer, channel(), left);
  }
  void leave_process(const std::string& why, bool broke_off) noexcept override {
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
    bool breaks_off = false;
    for (auto at = messages_.begin(); at != messages_.end();) {
      const auto message = at++;
      if (message->done) continue;
      if (message->lane == Lane::data)
        breaks_off = true;  // the caller's memory, which Gloo uses for as long as it is connected
      else
        earlier_.splice(earlier_.end(), messages_, message);
    }
    earlier_.splice(earlier_.end(), posted_);
    if (breaks_off) mesh_->break_off();
    messages_.clear();
  }
  void all_came() noexcept override { earlier_.clear(); }

  [[nodiscard]] std::uint64_t next_channel() noexcept override { return mesh_->next_channel++; }
  [[nodiscard]] std::unique_ptr<Links> duplicate(std::uint64_t channel) override {
    return std::make_unique<GlooLinks>(mesh_, channel);
  }

  // A process that breaks off one communicator says its own reason a moment later.
  [[nodiscard]] std::optional<std::string> explanation() override {
    return mesh_->rendezvous->why_broken_off(channel(), kExplanation);
  }

 private:
  static constexpr Seconds kExplanation{1};
  // What one has sent that has left in order is on its way for so long at most.
  static constexpr double kOnItsWay = 5;
  // Of a message's number; the rest counts.
  static constexpr unsigned kChannelBits = 24;
  static constexpr unsigned kCountBits = 64 - kChannelBits - 1;

  void wake() noexcept {
    const std::lock_guard lock(mutex_);
    if (waited_for_ != nullptr) waited_for_->wake();
  }
  // Until when it is worth while to wait for `peer`.
  [[nodiscard]] Deadline read_news(std::uint32_t peer) const {
    const Rendezvous& rendezvous = *mesh_->rendezvous;
    if (rendezvous.failure()) throw PeerError(peer, false, "a process is gone");
    if (rendezvous.is_broken_off(channel()))
      throw PeerError(peer, false, "a process has left this communicator");
    return rendezvous.has_left(peer) ? sync::deadline_in(kOnItsWay) : Deadline::max();
  }

  void start(Message& message, std::span<std::byte> bytes) {
    const NoSigpipe quiet;
    message.buffer = mesh_->context->createUnboundBuffer(bytes.data(), bytes.size());
    const int peer = static_cast<int>(message.peer);
    // The number of a message between two peers, the same on both sides.
    const std::uint64_t lane = message.lane == Lane::data ? 1 : 0;
    std::uint64_t& count = (message.receives ? received_ : sent_)[2 * message.peer + lane];
    const std::uint64_t slot = channel_ << (kCountBits + 1) | lane << kCountBits | count++;
    try {
      if (message.receives)
        message.buffer->recv(peer, slot);
      else
        message.buffer->send(peer, slot);
    } catch (const gloo::IoException& error) {
      throw PeerError(message.peer, false, error.what());
    }
  }

  std::shared_ptr<Mesh> mesh_;
  std::uint64_t channel_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> received_;
  Messages messages_;  // of the call
  Messages posted_;    // heads, of the call
  Messages earlier_;   // of earlier ones, which may still be on their way
  std::mutex mutex_;
  const Message* waited_for_ = nullptr;
  std::atomic<bool> interrupted_ = false;
  std::atomic<bool> has_news_ = false;
  std::shared_ptr<void> news_;  // end first: they use what is above
  std::shared_ptr<void> reports_;
};

}  // namespace

std::unique_ptr<Communicator> gloo_communicator(std::shared_ptr<Rendezvous> rendezvous,
                                                const GlooOptions& options) {
  auto mesh = std::make_shared<Mesh>();
  mesh->rendezvous = std::move(rendezvous);
  Rendezvous& meeting = *mesh->rendezvous;
  const auto timeout = std::chrono::milliseconds(
      static_cast<std::int64_t>(std::min(options.timeout.count(), 1e9) * 1e3));
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
      Store store(meeting, prefix, sync::deadline_in(options.timeout.count()));
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
                                                     options.timeout.count(), options.any_order);
}

}  // namespace penstock
