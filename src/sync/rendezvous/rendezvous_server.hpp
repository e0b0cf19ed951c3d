// sync/rendezvous/rendezvous_server: rank 0's side of a rendezvous.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "src/sync/rendezvous/launch_key.hpp"
#include "src/sync/rendezvous/stall_diagnosis.hpp"
#include "src/sync/rendezvous/tcp.hpp"

namespace penstock::sync {

/// Version of what is said over the sockets.
inline constexpr const char* kRendezvousMagic = "penstock rendezvous 3";
/// What is said where proofs are wrong, on either side.
inline constexpr const char* kAnotherRun =
    "a process of another run, or with another secret, listens there (at an address all processes "
    "need the same port, one launcher's run or the same run_id, and the same PENSTOCK_SECRET)";

/// Keeps the keys, and tells every process which others have left, or hold them up. It listens until all have come; a
/// client that has not proven in time that it is one of us, or says more than that takes, is dropped.
///
/// Threads  one of its own.
class RendezvousServer {
 public:
  RendezvousServer(Socket listener, LaunchKey key, std::uint32_t world,
                   const RendezvousOptions& options);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  /// Sends what is still to be sent, and closes.
  ~RendezvousServer();

 private:
  struct Client {
    Socket socket;
    FrameReader in;
    std::string out;
    std::int64_t rank = -1;       // not one of us yet
    std::uint32_t said_rank = 0;  // what it still has to prove
    std::uint32_t said_world = 0;
    std::string due_proof;
    bool closing = false;  // once `out` is sent
    Deadline patience{};   // for a hello, and for taking what refuses it
    [[nodiscard]] bool is_stranger() const noexcept { return rank < 0; }
  };

  void serve();
  void read(Client& client);
  void accept_all();
  void make_room(bool said_hello, const Client* but);
  template <class Which>
  void drop_first(const Which& which);
  void drop_late_strangers();
  void handle(Client& client, Frame frame);
  void greet(Client& client, const Frame& hello);
  void admit(Client& client, const Frame& proof);
  void begin_diagnosis(std::uint32_t rank, const Frame& late);
  void end_diagnosis_if_answered();
  void end_diagnosis();
  void refuse(Client& client, const std::string& why, bool stale);
  void gone(Client& client, FrameReader::Result result = FrameReader::Result::ended);
  void expire();
  void tell(Client& client, const Frame& frame);
  void tell_all(const Frame& frame);
  static void flush(Client& client);

  Socket listener_;
  LaunchKey key_;
  std::uint32_t world_;
  double timeout_s_;
  double unreachable_s_;
  Deadline deadline_;  // for all to come
  bool complete_ = false;
  std::uint32_t here_ = 0;
  std::vector<char> seen_;
  std::vector<std::string> left_;  // what was said of those that are gone
  std::vector<Client> clients_;
  std::string refused_;  // the last client that said it was a process of this run, and was not
  Deadline accepts_from_{};
  std::size_t stored_ = 0;  // bytes in values_
  std::map<std::string, std::string> values_;
  std::multimap<std::string, std::int64_t> waiting_;  // key, rank
  struct Diagnosis {
    std::uint32_t rank = 0;  // of the process that has the late call
    PendingCall late;
    std::vector<Answer> answers;
    Deadline deadline;
  };
  std::optional<Diagnosis> diagnosis_;
  Socket wake_read_;
  Socket wake_write_;
  std::jthread thread_;
};

}  // namespace penstock::sync
