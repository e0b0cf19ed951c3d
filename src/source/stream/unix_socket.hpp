// source/stream/unix_socket: stream sockets between the processes of one machine.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/storage/local/file.hpp"

namespace penstock::source {

/// A socket that listens at a path, which is its own while it lives.
///
/// The right to the path is an flock on <path>.lock, which the kernel releases when the process
/// dies: a socket file whose lock is free is a dead process's. Both files go with the listener.
class UnixListener {
 public:
  /// Errors  std::invalid_argument  the path is too long
  ///         Error                  another process listens there, a file that is not a socket is
  ///                                in the way, or the socket cannot be made
  explicit UnixListener(const std::filesystem::path& path);
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Waits for a connection: its descriptor, or -1 and errno.
  [[nodiscard]] int accept() noexcept;
  /// Makes this and every later accept() fail at once.
  void shut() noexcept;

 private:
  std::filesystem::path path_;
  storage::FileDescriptor lock_;
  storage::FileDescriptor socket_;
};

/// Connects to the process that listens at `path`: a descriptor, or -1 and errno. The other side's queue of
/// connections may be waited for until `deadline`.
///
/// Errors  std::invalid_argument  the path is too long
[[nodiscard]] int connect_unix(const std::filesystem::path& path,
                               std::chrono::steady_clock::time_point deadline);

/// Sends all of the parts; 0, or the errno of what failed. Never raises SIGPIPE. Where it must not
/// wait, a full socket is EAGAIN, and what was sent is left unfinished.
[[nodiscard]] int send_all(int fd, std::span<const std::span<const std::byte>> parts,
                           bool is_blocking = true) noexcept;

/// Sends as much of `bytes` as there is room for, without waiting: how much, or -errno. Never raises SIGPIPE.
[[nodiscard]] std::ptrdiff_t send_some(int fd, std::span<const std::byte> bytes) noexcept;

/// Receives through a buffer, so that many small messages cost one system call.
///
/// Threads  one at a time.
class Receiver {
 public:
  explicit Receiver(int fd) : fd_(fd), buffer_(kBufferBytes) {}

  /// Nothing is waited for after it; none again for time_point::max().
  void set_deadline(std::chrono::steady_clock::time_point deadline) noexcept {
    deadline_ = deadline;
  }
  /// How much of `bytes` was received: less than all only at the end of the connection, where it
  /// failed, or after the deadline.
  [[nodiscard]] std::size_t receive(std::span<std::byte> bytes) noexcept;
  /// Whether the next receive() has to ask the system.
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

 private:
  static constexpr std::size_t kBufferBytes = 16U << 10;

  int fd_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

/// Whether there is something to receive, the end of the connection included, before `deadline`.
[[nodiscard]] bool wait_readable(int fd, std::chrono::steady_clock::time_point deadline) noexcept;

/// Whether there is something to receive, or room to send where `sends`, before `deadline`.
[[nodiscard]] bool wait_ready(int fd, bool sends,
                              std::chrono::steady_clock::time_point deadline) noexcept;

/// The process at the other end; 0 where the system does not say.
[[nodiscard]] int process_of(int fd) noexcept;

}  // namespace penstock::source
