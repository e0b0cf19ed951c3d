#pragma once

#include <cstdint>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace penstock::test {

/// A port of 127.0.0.1 on which no socket listens. A socket that is bound to it keeps it from other programs until this process
/// ends: neither bind() to any port nor connect() takes it, and who asks for it with SO_REUSEADDR may listen at it.
inline std::uint16_t free_port() {
  const int held = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (held < 0 || ::setsockopt(held, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(held, any, length) != 0 || ::getsockname(held, any, &length) != 0)
    throw std::runtime_error("no free port of 127.0.0.1");
  return ntohs(address.sin_port);
}

}  // namespace penstock::test
