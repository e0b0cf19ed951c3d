// source/stream/queue_protocol: the protocol between queue clients and servers.
//
// Both begin with a greeting: 8 bytes of magic, then u32 version and u32 length of what follows in
// it. The client's continues with its name and fields, the server's is followed by welcome or
// refused. After that everything is a frame: u32 kind, u32 zero, u64 length of the body. Numbers
// are in the machine's own byte order, since both ends are on one machine. The greeting and the
// frames of kind refused stay as they are in every version, so that versions can tell each other
// what differs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>

#include "src/source/stream/unix_socket.hpp"

namespace penstock::source {

inline constexpr std::array<char, 8> kQueueMagic = {'p', 's', 't', 'k', 'q', 'u', 'e', '\n'};
inline constexpr std::uint32_t kQueueVersion = 1;
/// The most that a greeting, or the text of a frame, may say.
inline constexpr std::uint32_t kMaxTextBytes = 64U << 10;

struct Greeting {
  std::array<char, 8> magic = kQueueMagic;
  std::uint32_t version = kQueueVersion;
  std::uint32_t length = 0;
};

enum class FrameKind : std::uint32_t {
  welcome = 1,       ///< server: u64, the largest record it takes
  refused = 2,       ///< server: a text, why; it hangs up
  record = 3,        ///< client: a packed record
  acknowledged = 4,  ///< server: u64, how many of this client's records the queue has
  finished = 5,      ///< client: all is done; the server acknowledges once more
  failed = 6,        ///< client: a text, why the queue is to be closed; acknowledged as finished is
  closed = 7,        ///< server: a text, why the queue takes no more; it hangs up
};

struct FrameHead {
  FrameKind kind{};
  std::uint32_t zero = 0;
  std::uint64_t length = 0;
};

template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T& plain) noexcept {
  return std::as_bytes(std::span(&plain, 1));
}
[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::string& text) noexcept {
  return std::as_bytes(std::span(text));
}

/// What a client says about itself.
struct ClientHello {
  std::string name;
  std::vector<FieldSpec> fields;
};

[[nodiscard]] std::string write_hello(const ClientHello& hello);
/// None if the bytes are no hello; they may come from any process.
[[nodiscard]] std::optional<ClientHello> read_hello(std::span<const std::byte> bytes);

/// In words, the first difference between the fields of a queue and of its client; empty if there
/// is none.
[[nodiscard]] std::string describe_difference(std::span<const FieldSpec> server,
                                              std::span<const FieldSpec> client);

/// Sends one frame; 0, or the errno.
[[nodiscard]] int send_frame(int fd, FrameKind kind, std::span<const std::byte> body,
                             bool is_blocking = true) noexcept;
/// The same with a text, cut to what a frame may say.
[[nodiscard]] int send_text(int fd, FrameKind kind, std::string text,
                            bool is_blocking = true) noexcept;
/// None at the end of the connection.
[[nodiscard]] std::optional<FrameHead> receive_head(Receiver& in) noexcept;
/// The text of a frame; empty where it is too long or cut off.
[[nodiscard]] std::string receive_text(Receiver& in, std::uint64_t length);
/// Fills a plain value; false where the connection ends before.
template <class T>
[[nodiscard]] bool receive_plain(Receiver& in, T& plain) noexcept {
  return in.receive(std::as_writable_bytes(std::span(&plain, 1))) == sizeof plain;
}

}  // namespace penstock::source
