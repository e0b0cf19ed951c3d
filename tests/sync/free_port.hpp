#pragma once

#include <cstdint>

#include "src/sync/rendezvous/tcp.hpp"

namespace penstock::test {

/// A port of 127.0.0.1 on which no socket listens.
inline std::uint16_t free_port() { return sync::port_of(*sync::listen_at("127.0.0.1", 0)); }

}  // namespace penstock::test
