// sync/rendezvous/tcp: sockets between machines, and the frames that the rendezvous sends over them.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "src/sync/collectives/links.hpp"

namespace penstock::sync {

/// Owns a socket's descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Socket() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

/// Listens on all of this machine's addresses, IPv6 and IPv4, or only within it where `address` is
/// "localhost" or a number of the loopback. (A name that is 127.0.1.1 in a machine's own /etc/hosts
/// is another number elsewhere.) Port 0: any. None where the port is taken.
///
/// Errors  Error
[[nodiscard]] std::optional<Socket> listen_at(const std::string& address, std::uint16_t port);
/// Whether listen_at() lets only this machine's processes in.
[[nodiscard]] bool is_within_machine(const std::string& address);
[[nodiscard]] std::uint16_t port_of(const Socket& socket);
/// Why there was no connection.
struct WhyNot {
  std::string text;
  bool no_address = false;  ///< the name cannot be resolved, or not yet
};
/// None if there was no answer before `deadline`; where `why` is given, it says why not. A name with several addresses
/// gives each of them its share of the time. Resolving a name takes as long as the system's resolver waits.
[[nodiscard]] std::optional<Socket> connect_to(const std::string& address, std::uint16_t port,
                                               Deadline deadline, WhyNot* why = nullptr);
/// From now on a machine that has answered nothing for `seconds` counts as unreachable.
void watch_connection(const Socket& socket, double seconds);
/// The other end's address, in numbers.
[[nodiscard]] std::string peer_address(const Socket& socket);
/// Where other machines may reach this one, loopback last.
[[nodiscard]] std::vector<std::string> own_addresses();

/// `failed` and `gone` are what all others are told of a process: that it died or broke off, or that
/// it left.
enum class FrameKind : std::uint8_t {
  hello,
  welcome,
  refused,
  set,
  get,
  value,
  left,
  broke_off,
  failed,
  gone,
  heard,      ///< a proof was good; the welcome comes when all are there
  challenge,  ///< process 0's proof, and what it wants proven
  proof,
  late,      ///< a call took too long
  inquiry,   ///< what do your calls wait for?
  pending,   ///< this; nothing: there is no call
  farewell,  ///< one process makes no more calls on one communicator
};

inline constexpr std::size_t kMostFrameBytes = 16U << 20;

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::vector<std::string> texts;
};

[[nodiscard]] std::string encode(const Frame& frame);
/// Errors  Error  the text is no such number
template <std::unsigned_integral Number>
[[nodiscard]] Number number_from(const std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) throw Error("not a rendezvous of penstock");
  return number;
}

/// Bytes that have come, until they make frames.
class FrameReader {
 public:
  enum class Result : std::uint8_t { open, ended, unreachable };
  /// Reads what there is.
  [[nodiscard]] Result read(int fd);
  /// The next whole frame, if it is there.
  ///
  /// Errors  Error  these are no frames, or one has more than `most` bytes
  [[nodiscard]] std::optional<Frame> next(std::size_t most = kMostFrameBytes);

 private:
  std::string bytes_;
};

/// How process `rank` ended, for the others: what reading its connection gave, where a machine may be
/// silent for `unreachable_s` seconds.
[[nodiscard]] std::string end_of(std::int64_t rank, FrameReader::Result result,
                                 double unreachable_s);
/// Sends all of it; false where the connection has ended.
[[nodiscard]] bool send_all(int fd, std::string_view bytes) noexcept;

}  // namespace penstock::sync
