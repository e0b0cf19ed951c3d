// The library penstock_mpi: a program without it starts where there is no MPI.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include <penstock/sync/mpi.hpp>

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

struct Message {
  std::uint32_t peer = 0;
  bool receives = false;
  std::vector<std::byte> copy;  // of what is sent, where it has to outlive its sender
  std::vector<MPI_Request> parts;
};

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return MPI_UINT8_T;
    case DType::i8:
      return MPI_INT8_T;
    case DType::u16:
      return MPI_UINT16_T;
    case DType::i16:
      return MPI_INT16_T;
    case DType::u32:
      return MPI_UINT32_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::u64:
      return MPI_UINT64_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f16:
    case DType::bf16:
      break;
  }
  throw std::logic_error("MPI has no 16-bit floats");
}

// MPI can be initialised once in a process, and must be finalised when it ends. All our messages go
// through one MPI communicator. Channels have different tags, which are never reused: to a reused
// number MPI might deliver what was sent to the earlier owner.
class Session {
 public:
  static Session& get() {
    static Session session;
    return session;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    int finalised = 0;
    if (ours_ && MPI_Finalized(&finalised) == MPI_SUCCESS && finalised == 0) MPI_Finalize();
  }

  /// For a peer that asks for it later: what MPI sends must stay until then.
  void keep(Message message) {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [](Message& each) {
      int done = 0;
      MPI_Testall(static_cast<int>(each.parts.size()), each.parts.data(), &done,
                  MPI_STATUSES_IGNORE);
      return done != 0;
    });
    kept_.push_back(std::move(message));
  }

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_; }
  [[nodiscard]] std::uint64_t next_channel() noexcept { return next_channel_++; }
  [[nodiscard]] int tag(std::uint64_t channel, Lane lane) const noexcept {
    return static_cast<int>(channel % (most_ / sync::kLanes) * sync::kLanes +
                            static_cast<std::uint64_t>(lane));
  }
  /// This process receives from `channel` no more: takes the others' goodbyes, which may come
  /// later, out of MPI's memory.
  void ended(std::uint64_t channel) noexcept {
    constexpr std::size_t kRemembered = 64;
    const std::lock_guard lock(mutex_);
    ended_.push_back(channel);
    for (const std::uint64_t each : ended_)
      for (const Lane lane : {Lane::head, Lane::data, Lane::farewell}) take_all(tag(each, lane));
    if (ended_.size() > kRemembered) ended_.pop_front();
  }

 private:
  Session() {
    int given = MPI_THREAD_SINGLE;
    int initialised = 0;
    int finalised = 0;
    check(MPI_Initialized(&initialised), "MPI_Initialized");
    check(MPI_Finalized(&finalised), "MPI_Finalized");
    if (finalised != 0)
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

  void take_all(int tag) const noexcept {
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    std::vector<std::byte> bytes;
    for (int found = 1;;) {
      if (MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &found, &message, &status) != MPI_SUCCESS ||
          found == 0)
        return;
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      bytes.resize(static_cast<std::size_t>(count));
      MPI_Mrecv(bytes.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
  }

  bool ours_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::uint64_t most_ = 32767;  // what every MPI allows
  std::atomic<std::uint64_t> next_channel_ = 0;
  std::mutex mutex_;
  std::deque<std::uint64_t> ended_;
  std::vector<Message> kept_;  // until MPI_Finalize at the latest
};

class MpiLinks final : public sync::Links {
 public:
  /// MPI's collectives get a communicator of their own, made from `parent`, on which nothing else is called meanwhile; none
  /// without a parent. MPI_Finalize frees it: to free one is a collective call, which broken groups cannot make.
  MpiLinks(std::uint64_t channel, MPI_Comm parent) : channel_(channel), comm_(session_.comm()) {
    if (parent != MPI_COMM_NULL) check(MPI_Comm_dup(parent, &collectives_), "MPI_Comm_dup");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }
  MpiLinks(const MpiLinks&) = delete;
  MpiLinks& operator=(const MpiLinks&) = delete;
  ~MpiLinks() override {
    clear();
    int finalised = 0;
    if (MPI_Finalized(&finalised) == MPI_SUCCESS && finalised == 0) session_.ended(channel_);
  }

  [[nodiscard]] std::uint32_t rank() const noexcept override {
    return static_cast<std::uint32_t>(rank_);
  }
  [[nodiscard]] std::uint32_t size() const noexcept override {
    return static_cast<std::uint32_t>(size_);
  }

  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    Message message{.peer = peer};
    if (lane != Lane::data) {
      message.copy.assign(bytes.begin(), bytes.end());
      bytes = message.copy;
    }
    return start(std::move(message), bytes.size(),
                 [&](std::size_t at, int count, MPI_Request* request) {
                   return MPI_Isend(bytes.data() + at, count, MPI_BYTE, static_cast<int>(peer),
                                    session_.tag(channel_, lane), comm_, request);
                 });
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    return start({.peer = peer, .receives = true}, bytes.size(),
                 [&](std::size_t at, int count, MPI_Request* request) {
                   return MPI_Irecv(bytes.data() + at, count, MPI_BYTE, static_cast<int>(peer),
                                    session_.tag(channel_, lane), comm_, request);
                 });
  }

  [[nodiscard]] std::uint32_t peer_of(Ticket ticket) const override {
    return messages_[ticket].peer;
  }
  void wait(Ticket ticket, Deadline deadline) override {
    for (MPI_Request& part : messages_[ticket].parts) wait(part, messages_[ticket].peer, deadline);
  }
  void all_reduce(const Collective& call, std::byte* data, Deadline deadline) override {
    const std::size_t unit = size_of(call.dtype);
    for (std::size_t at = 0; at < call.count; at += kMost) {
      const auto count = static_cast<int>(std::min<std::size_t>(kMost, call.count - at));
      MPI_Request request = MPI_REQUEST_NULL;  // which, as a send, cannot be called back
      check(
          MPI_Iallreduce(MPI_IN_PLACE, data + at * unit, count, mpi_type(call.dtype),
                         call.op == ReduceOp::product ? MPI_PROD : MPI_SUM, collectives_, &request),
          "MPI_Iallreduce");
      wait(request, static_cast<std::uint32_t>(rank_ + 1) % size(), deadline);
    }
  }

  void clear() noexcept override {
    for (Message& message : messages_) {
      const bool pending = std::ranges::any_of(
          message.parts, [](MPI_Request part) { return part != MPI_REQUEST_NULL; });
      if (pending && !message.copy.empty()) {
        session_.keep(std::move(message));
        continue;
      }
      for (MPI_Request& part : message.parts)
        if (part != MPI_REQUEST_NULL) {
          // A send that was not taken cannot be called back; a receive can.
          if (message.receives) MPI_Cancel(&part);
          MPI_Request_free(&part);
        }
    }
    messages_.clear();
  }

  void interrupt() noexcept override { interrupted_ = true; }

  [[nodiscard]] std::uint64_t next_channel() noexcept override { return session_.next_channel(); }
  [[nodiscard]] std::unique_ptr<Links> duplicate(std::uint64_t channel) override {
    return std::make_unique<MpiLinks>(channel, collectives_);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 30;  // MPI counts in int

  void wait(MPI_Request& request, std::uint32_t peer, Deadline deadline) const {
    const auto begin = SteadyClock::now();
    for (int done = 0, round = 0;; ++round) {
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        throw PeerError(peer, false, "MPI reports an error");
      if (done != 0) return;
      if (round % 64 != 63) continue;
      const auto now = SteadyClock::now();
      if (interrupted_ || now > deadline)
        throw PeerError(peer, !interrupted_,
                        interrupted_ ? "this process has left" : "nothing came");
      // Others may need this core, to begin with those that are waited for.
      if (now - begin > std::chrono::milliseconds(2))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      else
        std::this_thread::yield();
    }
  }

  template <class F>
  Ticket start(Message message, std::size_t bytes, const F& begin) {
    messages_.push_back(std::move(message));
    std::vector<MPI_Request>& parts = messages_.back().parts;
    for (std::size_t at = 0; at < bytes; at += kMost) {
      parts.push_back(MPI_REQUEST_NULL);
      check(begin(at, static_cast<int>(std::min(kMost, bytes - at)), &parts.back()),
            "sending or receiving");
    }
    return messages_.size() - 1;
  }

  Session& session_ = Session::get();
  std::uint64_t channel_;
  MPI_Comm comm_;
  MPI_Comm collectives_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::atomic<bool> interrupted_ = false;
  std::vector<Message> messages_;
};

}  // namespace

std::unique_ptr<Communicator> mpi_communicator(const MpiOptions& options) {
  Session& session = Session::get();
  std::array<int, 2> orders{options.any_order ? 1 : 0, options.any_order ? 0 : 1};
  check(MPI_Allreduce(MPI_IN_PLACE, orders.data(), 2, MPI_INT, MPI_MAX, session.comm()),
        "MPI_Allreduce");
  if (orders == std::array{1, 1})
    throw Error(
        "the processes have different any_order: every process must be connected with the same");
  std::uint64_t channel = session.next_channel();  // process 0's counts
  check(MPI_Bcast(&channel, 1, MPI_UINT64_T, 0, session.comm()), "MPI_Bcast");
  return std::make_unique<sync::ProcessCommunicator>(
      std::make_unique<MpiLinks>(channel, options.any_order ? session.comm() : MPI_COMM_NULL),
      options.timeout_s, options.any_order);
}

}  // namespace penstock
