// The library penstock_mpi: a program without it starts where there is no MPI.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include <penstock/sync/communicator.hpp>

#include "src/sync/collectives/process_communicator.hpp"

namespace penstock {

namespace {

using sync::Deadline;
using sync::Lane;
using sync::PeerError;
using sync::SteadyClock;

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(fmt::format("MPI: {} failed: {}", what, text.data()));
}

struct Message : sync::Links::Receipt {
  bool receives = false;
  Lane lane = Lane::data;
  std::vector<std::byte> copy;  // of all but data: MPI sends from here, or receives to here
  std::span<std::byte> target;  // of a head that is received
  std::vector<MPI_Request> parts;

  [[nodiscard]] bool done() noexcept {
    int all = 0;
    return MPI_Testall(static_cast<int>(parts.size()), parts.data(), &all, MPI_STATUSES_IGNORE) !=
               MPI_SUCCESS ||
           all != 0;
  }
  /// Calls a receive back; a send cannot be.
  void cancel() noexcept {
    for (MPI_Request& part : parts)
      if (receives && part != MPI_REQUEST_NULL) MPI_Cancel(&part);
  }
  void forget() noexcept {
    cancel();
    for (MPI_Request& part : parts)
      if (part != MPI_REQUEST_NULL) MPI_Request_free(&part);
  }
};
using Messages = std::list<Message>;

// How long a call that failed waits for MPI to let go of its memory.
constexpr double kTakeBack = 2;

constexpr const char* kLeft = "a process has left this communicator";

bool is_finalised() noexcept {
  int finalised = 0;
  return MPI_Finalized(&finalised) != MPI_SUCCESS || finalised != 0;
}

// MPI can be initialised once in a process, and must be finalised when it ends. All our messages go
// through one MPI communicator. Channels have different tags, which are never reused: to a reused
// number MPI might deliver what was sent to the earlier owner.
class Session {
 public:
  /// Ends when the program does, and after the last communicator.
  static std::shared_ptr<Session> get() {
    static const std::shared_ptr<Session> session(new Session);
    return session;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    // MPI_Finalize waits for all processes, without a timeout.
    if (!ours_ || lost_ || is_finalised()) return;
    for (Message& each : kept_) each.forget();
    MPI_Finalize();
  }

  /// For peers that take, or send, their end of these later: what MPI sends must stay until then.
  void keep(Messages& messages) noexcept {
    const std::lock_guard lock(mutex_);
    kept_.splice(kept_.end(), messages);
    drop_done(kept_);
  }
  static void drop_done(Messages& messages) noexcept {
    std::erase_if(messages, [](Message& each) { return each.done(); });
  }
  /// A process may never come again.
  void lose() noexcept { lost_ = true; }
  void all_are_here() noexcept { lost_ = false; }

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] std::uint64_t next_channel() noexcept { return next_channel_++; }
  [[nodiscard]] std::uint64_t channels() const noexcept { return most_ / sync::kLanes; }
  [[nodiscard]] static int tag(std::uint64_t channel, Lane lane) noexcept {
    return static_cast<int>(channel * sync::kLanes + static_cast<std::uint64_t>(lane));
  }
  /// Takes what others have sent on `channel`, or send within a while, out of MPI's memory: no call asks for it any
  /// more. Not data: a process that has sent them and failed may have freed them.
  void take_all(std::uint64_t channel, Lane lane) noexcept {
    Messages taken;
    try {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      for (int found = 1; MPI_Improbe(MPI_ANY_SOURCE, tag(channel, lane), comm_, &found, &message,
                                      &status) == MPI_SUCCESS &&
                          found != 0;) {
        int count = 0;
        MPI_Get_count(&status, MPI_BYTE, &count);
        Message& place = taken.emplace_back();
        place.copy.resize(static_cast<std::size_t>(count));
        place.parts.push_back(MPI_REQUEST_NULL);
        MPI_Imrecv(place.copy.data(), count, MPI_BYTE, &message, &place.parts[0]);
      }
    } catch (...) {  // memory is out: the rest stays where it is
    }
    keep(taken);
  }
  void ended(std::uint64_t channel) noexcept {
    constexpr std::size_t kRemembered = 64;
    std::vector<std::uint64_t> all;
    try {
      const std::lock_guard lock(mutex_);
      ended_.push_back(channel);
      all.assign(ended_.begin(), ended_.end());
      if (ended_.size() > kRemembered) ended_.pop_front();
    } catch (...) {  // memory is out: theirs stays where it is
    }
    for (const std::uint64_t each : all)
      for (const Lane lane : {Lane::head, Lane::farewell}) take_all(each, lane);
  }

 private:
  Session() {
    int given = MPI_THREAD_SINGLE;
    int initialised = 0;
    check(MPI_Initialized(&initialised), "MPI_Initialized");
    if (is_finalised())
      throw Error(
          "MPI has been finalised: make communicators before MPI_Finalize, and release them before "
          "it");
    if (initialised == 0) {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given), "MPI_Init_thread");
      ours_ = true;
    } else {
      check(MPI_Query_thread(&given), "MPI_Query_thread");
    }
    if (given < MPI_THREAD_MULTIPLE)
      throw Error(fmt::format(
          "MPI was initialised with thread level {}, expected MPI_THREAD_MULTIPLE ({}): "
          "call MPI_Init_thread with it, or leave the initialisation to penstock",
          given, MPI_THREAD_MULTIPLE));
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int* most = nullptr;
    int known = 0;
    check(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &most, &known), "MPI_Comm_get_attr");
    if (known != 0) most_ = static_cast<std::uint64_t>(*most);
  }

  bool ours_ = false;
  std::atomic<bool> lost_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::uint64_t most_ = 32767;  // what every MPI allows
  std::atomic<std::uint64_t> next_channel_ = 0;
  std::mutex mutex_;
  std::deque<std::uint64_t> ended_;
  Messages kept_;  // until MPI_Finalize at the latest
};

// Why a process makes no more calls, as it is sent.
struct Farewell {
  bool broke_off = false;
  std::array<char, 447> why{};
};

class MpiLinks final : public sync::Links {
 public:
  MpiLinks(std::shared_ptr<Session> session, std::uint64_t channel)
      : session_(std::move(session)), channel_(channel), comm_(session_->comm()) {
    if (channel >= session_->channels())
      throw Error(
          fmt::format("expected fewer than {} communicators in one run, which is what this MPI has "
                      "tags for: use a duplicate again instead of making another",
                      session_->channels()));
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    farewells_.resize(size());
  }
  MpiLinks(const MpiLinks&) = delete;
  MpiLinks& operator=(const MpiLinks&) = delete;
  ~MpiLinks() override {
    if (is_finalised()) return;
    clear();
    session_->keep(posted_);
    session_->keep(incoming_);
    session_->ended(channel_);
  }

  [[nodiscard]] std::uint32_t rank() const noexcept override {
    return static_cast<std::uint32_t>(rank_);
  }
  [[nodiscard]] std::uint32_t size() const noexcept override {
    return static_cast<std::uint32_t>(size_);
  }

  void post(std::uint32_t peer, std::span<const std::byte> head) override {
    post(peer, Lane::head, head);
  }
  Ticket send(std::uint32_t peer, std::span<const std::byte> data) override {
    Message& message = messages_.emplace_back();
    message.peer = peer;
    start(message, {const_cast<std::byte*>(data.data()), data.size()});
    return &message;
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    if (lane == Lane::data) {
      // A process that has broken off may have freed what it sent, and MPI would read that once it is asked for.
      poll_departures();
      if (broken_off_) throw PeerError(peer, false, kLeft);
    }
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
    for (MPI_Request& part : message.parts) wait(part, message.peer, deadline);
    std::ranges::copy(message.copy, message.target.begin());
  }

  void clear() noexcept override {
    if (is_finalised()) return;
    Messages data;
    for (auto at = messages_.begin(); at != messages_.end();) {
      const auto next = std::next(at);
      if (!at->done()) {
        Messages& to = at->lane == Lane::data ? data : posted_;
        to.splice(to.end(), messages_, at);
      }
      at = next;
    }
    messages_.clear();
    if (!data.empty()) take_back(data);
  }

  void interrupt() noexcept override { interrupted_ = true; }

  void say_farewell(const std::string& why, bool broke_off) noexcept override {
    try {
      Farewell farewell{.broke_off = broke_off};
      std::ranges::copy(std::string_view(why).substr(0, farewell.why.size() - 1),
                        farewell.why.begin());
      for (std::uint32_t peer = 0; peer < size(); ++peer)
        if (peer != rank()) post(peer, Lane::farewell, std::as_bytes(std::span(&farewell, 1)));
    } catch (...) {
    }
  }
  [[nodiscard]] std::optional<std::string> farewell_of(std::uint32_t peer,
                                                       Deadline deadline) override {
    while (!farewells_[peer] && SteadyClock::now() < deadline) {
      poll_departures();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (!farewells_[peer]) return std::nullopt;
    return farewells_[peer]->why.data();
  }
  [[nodiscard]] std::optional<std::string> explanation() override {
    for (std::uint32_t peer = 0; peer < size(); ++peer)
      if (farewells_[peer] && farewells_[peer]->broke_off)
        return fmt::format("process {} has left: {}", peer, farewells_[peer]->why.data());
    return std::nullopt;
  }

  [[nodiscard]] std::uint64_t next_channel() noexcept override { return session_->next_channel(); }
  [[nodiscard]] std::unique_ptr<Links> duplicate(std::uint64_t channel) override {
    return std::make_unique<MpiLinks>(session_, channel);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 30;  // MPI counts in int
  void post(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) {
    Session::drop_done(posted_);
    Message& message = posted_.emplace_back();
    message.peer = peer;
    message.lane = lane;
    message.copy.assign(bytes.begin(), bytes.end());
    start(message, message.copy);
  }

  void wait(MPI_Request& request, std::uint32_t peer, Deadline deadline) {
    const auto begin = SteadyClock::now();
    for (int done = 0, round = 0;; ++round) {
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        throw PeerError(peer, false, "MPI reports an error");
      if (done != 0) return;
      if (round % 64 != 63) continue;
      if (interrupted_) throw PeerError(peer, false, "this process has left");
      poll_departures();
      if (broken_off_) throw PeerError(peer, false, kLeft);
      const auto now = SteadyClock::now();
      if (now > deadline) {
        session_->lose();
        throw PeerError(peer, true, "nothing came");
      }
      // Others may need this core, to begin with those that are waited for.
      if (now - begin > std::chrono::milliseconds(2))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      else
        std::this_thread::yield();
    }
  }

  // Those that have come.
  void poll_departures() {
    for (;;) {
      if (incoming_.empty()) {
        int found = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        check(MPI_Improbe(MPI_ANY_SOURCE, Session::tag(channel_, Lane::farewell), comm_, &found,
                          &message, &status),
              "MPI_Improbe");
        if (found == 0) return;
        Messages one(1);
        one.front().peer = static_cast<std::uint32_t>(status.MPI_SOURCE);
        one.front().receives = true;
        one.front().lane = Lane::farewell;
        one.front().copy.resize(sizeof(Farewell));
        one.front().parts.push_back(MPI_REQUEST_NULL);
        check(MPI_Imrecv(one.front().copy.data(), sizeof(Farewell), MPI_BYTE, &message,
                         one.front().parts.data()),
              "MPI_Imrecv");
        incoming_.swap(one);
      }
      Message& one = incoming_.front();
      if (!one.done()) return;
      Farewell& heard = farewells_[one.peer].emplace();
      std::memcpy(&heard, one.copy.data(), sizeof heard);
      broken_off_ = broken_off_ || heard.broke_off;
      incoming_.clear();
    }
  }

  // What MPI still reads from, or writes to, the caller's memory. A receive can be called back; a send that has begun ends
  // soon, and one that was not asked for is not read.
  void take_back(Messages& data) noexcept {
    for (Message& message : data) message.cancel();
    const Deadline deadline = sync::deadline_in(kTakeBack);
    for (;;) {
      Session::drop_done(data);
      if (data.empty()) return;
      if (SteadyClock::now() > deadline) break;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    session_->keep(data);
  }

  void start(Message& message, std::span<std::byte> bytes) {
    if (is_finalised()) throw Error("MPI has been finalised: release communicators before it");
    const int peer = static_cast<int>(message.peer);
    const int tag = Session::tag(channel_, message.lane);
    for (std::size_t at = 0; at < bytes.size(); at += kMost) {
      const auto count = static_cast<int>(std::min(kMost, bytes.size() - at));
      MPI_Request& part = message.parts.emplace_back(MPI_REQUEST_NULL);
      check(message.receives
                ? MPI_Irecv(bytes.data() + at, count, MPI_BYTE, peer, tag, comm_, &part)
                : MPI_Isend(bytes.data() + at, count, MPI_BYTE, peer, tag, comm_, &part),
            "sending or receiving");
    }
  }

  std::shared_ptr<Session> session_;
  std::uint64_t channel_;
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  std::atomic<bool> interrupted_ = false;
  Messages messages_;                               // of the call
  Messages posted_;                                 // heads and farewells that may be on their way
  std::vector<std::optional<Farewell>> farewells_;  // of the others
  Messages incoming_;                               // one of these at most
  bool broken_off_ = false;
};

}  // namespace

std::unique_ptr<Communicator> mpi_communicator(const MpiOptions& options) {
  const std::shared_ptr<Session> session = Session::get();
  std::uint64_t channel = session->next_channel();  // process 0's counts
  check(MPI_Bcast(&channel, 1, MPI_UINT64_T, 0, session->comm()), "MPI_Bcast");
  check(MPI_Barrier(session->comm()), "MPI_Barrier");
  session->all_are_here();
  return std::make_unique<sync::ProcessCommunicator>(std::make_unique<MpiLinks>(session, channel),
                                                     options.timeout.count(), options.any_order);
}

}  // namespace penstock
