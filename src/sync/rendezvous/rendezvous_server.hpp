// sync/rendezvous/rendezvous_server: rank 0's side of a rendezvous.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "src/sync/rendezvous/tcp.hpp"

namespace penstock::sync {

/// Version of what is said over the sockets.
inline constexpr const char* kRendezvousMagic = "penstock rendezvous 1";

/// Keeps the keys, and tells every process which others have left. It listens until all have come; who has not said in time
/// who it is, or says more than a hello has, is dropped.
///
/// Threads  one of its own.
class RendezvousServer {
 public:
  /// `token` is what a process of this run says when it comes.
  RendezvousServer(Socket listener, std::string token, std::uint32_t world, double timeout_s);
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;
  /// Sends what is still to be sent, and closes.
  ~RendezvousServer();

 private:
  struct Client {
    Socket socket;
    FrameReader in;
    std::string out;
    std::int64_t rank = -1;  // not one of us yet
    bool closing = false;    // once `out` is sent
    Deadline patience{};     // for a hello, and for taking what refuses it
    [[nodiscard]] bool is_stranger() const noexcept { return rank < 0; }
  };

  void serve();
  void read(Client& client);
  void accept_all();
  void make_room();
  void drop_late_strangers();
  void handle(Client& client, Frame frame);
  void greet(Client& client, const Frame& hello);
  void refuse(Client& client, const std::string& why, bool stale);
  void gone(Client& client);
  void expire();
  void tell(Client& client, const Frame& frame);
  void tell_all(const Frame& frame);
  static void flush(Client& client);

  Socket listener_;
  std::string token_;
  std::uint32_t world_;
  double timeout_s_;
  Deadline deadline_;  // for all to come
  bool complete_ = false;
  std::uint32_t here_ = 0;
  std::vector<char> seen_;
  std::vector<Client> clients_;
  std::string refused_;  // the last one who said it was a process of this run, and was not
  Deadline accepts_from_{};
  std::size_t stored_ = 0;  // bytes in values_
  std::map<std::string, std::string> values_;
  std::multimap<std::string, std::int64_t> waiting_;  // key, rank
  Socket wake_read_;
  Socket wake_write_;
  std::jthread thread_;
};

}  // namespace penstock::sync
