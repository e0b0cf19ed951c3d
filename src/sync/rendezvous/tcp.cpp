#include "src/sync/rendezvous/tcp.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::sync {

namespace {

struct Addresses {
  addrinfo* first = nullptr;
  int error = 0;  // of getaddrinfo
  Addresses(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                          &hints, &first);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  ~Addresses() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return false;
}

std::string to_text(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return host.data();
}

void set_option(int fd, int level, int option) {
  const int on = 1;
  (void)::setsockopt(fd, level, option, &on, sizeof on);
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

}  // namespace

void Socket::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool is_within_machine(const std::string& address) {
  const Addresses asked(address, 0, address == "localhost" ? 0 : AI_NUMERICHOST);
  return !address.empty() && asked.first != nullptr && is_loopback(asked.first->ai_addr);
}

std::optional<Socket> listen_at(const std::string& address, std::uint16_t port) {
  const bool local = is_within_machine(address);
  const Addresses any(local ? address : "", port, AI_PASSIVE);
  std::vector<const addrinfo*> places;
  for (const addrinfo* at = any.first; at != nullptr; at = at->ai_next) places.push_back(at);
  // A socket for IPv6 takes IPv4, too; within the machine each address is its own.
  if (!local)
    std::stable_partition(places.begin(), places.end(),
                          [](const addrinfo* at) { return at->ai_family == AF_INET6; });
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at : places) {
    Socket socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      error = errno;
      continue;
    }
    // A port whose last owner was killed a moment ago is free.
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR);
    if (const int off = 0; !local && at->ai_family == AF_INET6)
      (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 && ::listen(socket.get(), 1024) == 0)
      return socket;
    error = errno;
    if (error == EADDRINUSE) return std::nullopt;
  }
  throw Error(
      fmt::format("cannot listen at port {} for the other processes: {}; choose another port", port,
                  std::strerror(error)));
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  (void)::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::optional<Socket> connect_to(const std::string& address, std::uint16_t port, Deadline deadline,
                                 WhyNot* why) {
  const Addresses found(address, port, 0);
  const auto tell = [&](const std::string& what) {
    if (why != nullptr) *why = {.text = what, .no_address = found.first == nullptr};
  };
  if (found.first == nullptr)
    tell(fmt::format("the name '{}' cannot be resolved: {}", address, ::gai_strerror(found.error)));
  int left = 0;  // addresses, each of which may swallow what is sent to it
  for (const addrinfo* at = found.first; at != nullptr; at = at->ai_next) ++left;
  for (const addrinfo* at = found.first; at != nullptr; at = at->ai_next, --left) {
    const auto now = SteadyClock::now();
    const Deadline share = now + (deadline - now) / left;
    Socket socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      tell(std::strerror(errno));
      continue;
    }
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) {
        tell(std::strerror(errno));
        continue;
      }
      pollfd ready{socket.get(), POLLOUT, 0};
      int error = ETIMEDOUT;
      socklen_t length = sizeof error;
      if (::poll(&ready, 1, milliseconds_until(share)) != 1 ||
          ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
        tell(std::strerror(error));
        continue;
      }
    }
    (void)::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
    return socket;
  }
  return std::nullopt;
}

// A machine that loses its power says nothing: it is asked now and then, and what it does not acknowledge counts, too.
void watch_connection(const Socket& socket, double seconds) {
  constexpr int kQuestions = 3;
  const int between = static_cast<int>(std::clamp(std::ceil(seconds / (kQuestions + 1)), 1.0, 1e4));
  const int longest_ms = static_cast<int>(std::clamp(seconds * 1e3, 1e3, 2e9));
  set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE);
  for (const auto& [option, value] : {std::pair{TCP_KEEPIDLE, between},
                                      {TCP_KEEPINTVL, between},
                                      {TCP_KEEPCNT, kQuestions},
                                      {TCP_USER_TIMEOUT, longest_ms}})
    (void)::setsockopt(socket.get(), IPPROTO_TCP, option, &value, sizeof value);
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  std::string text = to_text(reinterpret_cast<const sockaddr*>(&address), length);
  // An IPv4 peer of an IPv6 socket.
  if (text.starts_with("::ffff:")) text.erase(0, 7);
  return text;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> outer;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) == 0) {
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
    for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0 || is_loopback(at->ifa_addr))
        continue;
      const bool is_six = at->ifa_addr->sa_family == AF_INET6;
      if (!is_six && at->ifa_addr->sa_family != AF_INET) continue;
      std::string text = to_text(at->ifa_addr, is_six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
      // Link-local addresses need an interface, which has another name elsewhere.
      if (!text.empty() && text.find('%') == std::string::npos) outer.push_back(std::move(text));
    }
  }
  outer.emplace_back("127.0.0.1");
  return outer;
}

std::string encode(const Frame& frame) {
  std::string body(1, static_cast<char>(frame.kind));
  const auto number = [](std::string& to, std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(word >> shift & 255U);
  };
  for (const std::string& text : frame.texts) {
    number(body, text.size());
    body += text;
  }
  if (body.size() > kMostFrameBytes)
    throw std::invalid_argument(fmt::format("a key and its value have at most {} bytes, found {}",
                                            kMostFrameBytes, body.size()));
  std::string bytes;
  number(bytes, body.size());
  return bytes + body;
}

FrameReader::Result FrameReader::read(int fd) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (count > 0) bytes_.append(buffer.data(), static_cast<std::size_t>(count));
  if (count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN))) return Result::open;
  const bool unreachable =
      count < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH);
  return unreachable ? Result::unreachable : Result::ended;
}

std::optional<Frame> FrameReader::next(std::size_t most) {
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= std::uint32_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
    return std::size_t{value};
  };
  if (bytes_.size() < 4) return std::nullopt;
  const std::size_t size = number(0);
  if (size < 1 || size > most) throw Error("not a rendezvous of penstock");
  if (bytes_.size() < 4 + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(bytes_[4]), {}};
  for (std::size_t at = 5; at < 4 + size;) {
    if (at + 4 > 4 + size || number(at) > 4 + size - at - 4)
      throw Error("not a rendezvous of penstock");
    frame.texts.push_back(bytes_.substr(at + 4, number(at)));
    at += 4 + frame.texts.back().size();
  }
  bytes_.erase(0, 4 + size);
  return frame;
}

std::string end_of(std::int64_t rank, FrameReader::Result result, double unreachable_s) {
  if (result == FrameReader::Result::unreachable)
    return fmt::format("process {} is unreachable: its machine has answered nothing for {} s", rank,
                       unreachable_s);
  return fmt::format("process {} has died", rank);
}

bool send_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace penstock::sync
