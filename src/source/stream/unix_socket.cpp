#include "src/source/stream/unix_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

namespace {

using Clock = std::chrono::steady_clock;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.empty() || name.size() >= sizeof(address.sun_path))
    throw std::invalid_argument(
        fmt::format("'{}': expected the path of a socket, of 1 to {} bytes, found {}: give a "
                    "shorter one, below /tmp or $XDG_RUNTIME_DIR for instance",
                    name, sizeof(address.sun_path) - 1, name.size()));
  std::memcpy(address.sun_path, name.data(), name.size());
  return address;
}

const sockaddr* plain(const sockaddr_un& address) noexcept {
  return reinterpret_cast<const sockaddr*>(&address);
}

[[noreturn]] void throw_in_use(const std::filesystem::path& path) {
  throw Error(fmt::format(
      "{}: expected a path of this server's own, found that another server listens there: give "
      "each server its own path, or end the other one",
      path.string()));
}

[[noreturn]] void throw_cannot(std::string_view verb, const std::filesystem::path& path,
                               int error) {
  throw Error(fmt::format("cannot {} {}: {}; give a path in a folder that can be written", verb,
                          path.string(), storage::errno_text(error)));
}

// Takes the lock of a path, or says that it is taken. The file that was locked has to be the one
// that is still there: its previous owner removed it before releasing the lock.
void lock_path(const std::filesystem::path& path, storage::FileDescriptor& file) {
  const std::string lock = path.string() + ".lock";
  for (;;) {
    file.adopt(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) throw_cannot("make", lock, errno);
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) throw_in_use(path);
      if (errno != EINTR) return;  // a file system without locks: bind() has to decide
    }
    struct stat held {};
    struct stat there {};
    if (::fstat(file.get(), &held) == 0 && ::stat(lock.c_str(), &there) == 0 &&
        held.st_ino == there.st_ino && held.st_dev == there.st_dev)
      return;
  }
}

// A socket file without a listener is removed; anything else in the way is an error.
void remove_stale(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  if (!S_ISSOCK(info.st_mode))
    throw Error(
        fmt::format("{}: expected a free path or a dead server's socket, found a file of another "
                    "kind: give another path, or remove it",
                    path.string()));
  const storage::FileDescriptor probe(connect_unix(path, Clock::now()));
  if (probe.is_open() || errno == EAGAIN) throw_in_use(path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_cannot("replace", path, errno);
}

timeval until(Clock::time_point deadline) noexcept {
  const auto left =
      std::max<Clock::duration>(deadline - Clock::now(), std::chrono::milliseconds(1));
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  return {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
}

}  // namespace

UnixListener::UnixListener(const std::filesystem::path& path) : path_(path) {
  const sockaddr_un address = address_of(path);
  lock_path(path, lock_);
  try {
    remove_stale(path);
    socket_.adopt(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_.is_open()) throw_cannot("make a socket at", path, errno);
    // Before bind, so that there is no moment at which others may connect.
    if (::fchmod(socket_.get(), 0600) != 0) throw_cannot("make a socket at", path, errno);
    if (::bind(socket_.get(), plain(address), sizeof address) != 0)
      throw_cannot("make a socket at", path, errno);
    if (::listen(socket_.get(), SOMAXCONN) != 0) {
      const int error = errno;
      ::unlink(path.c_str());
      throw_cannot("listen at", path, error);
    }
  } catch (...) {
    ::unlink((path.string() + ".lock").c_str());
    throw;
  }
}

UnixListener::~UnixListener() {
  ::unlink(path_.c_str());
  ::unlink((path_.string() + ".lock").c_str());
  // Explicitly, since a forked child may still hold the descriptor.
  ::flock(lock_.get(), LOCK_UN);
}

int UnixListener::accept() noexcept {
  int fd;
  do {
    fd = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  return fd;
}

void UnixListener::shut() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

int connect_unix(const std::filesystem::path& path, Clock::time_point deadline) {
  const sockaddr_un address = address_of(path);
  storage::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return -1;
  const timeval timeout = until(deadline);
  constexpr timeval kForEver{};
  int error = 0;
  do {
    error =
        ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0 ||
                ::connect(socket.get(), plain(address), sizeof address) != 0 ||
                ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kForEver, sizeof kForEver) != 0
            ? errno
            : 0;
  } while (error == EINTR);
  if (error != 0) {
    socket.close();
    errno = error;
    return -1;
  }
  return socket.release();
}

int send_all(int fd, std::span<const std::span<const std::byte>> parts, bool is_blocking) noexcept {
  constexpr std::size_t kAtOnce = 16;
  const int flags = MSG_NOSIGNAL | (is_blocking ? 0 : MSG_DONTWAIT);
  std::size_t part = 0;
  std::size_t sent = 0;  // of that part
  for (;;) {
    std::array<iovec, kAtOnce> vectors{};
    std::size_t count = 0;
    for (std::size_t k = part; k < parts.size() && count < kAtOnce; ++k) {
      const auto rest = parts[k].subspan(k == part ? sent : 0);
      if (!rest.empty()) vectors[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    if (count == 0) return 0;
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    const ssize_t put = ::sendmsg(fd, &message, flags);
    if (put < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    sent += static_cast<std::size_t>(put);
    while (part < parts.size() && sent >= parts[part].size()) sent -= parts[part++].size();
  }
}

std::ptrdiff_t send_some(int fd, std::span<const std::byte> bytes) noexcept {
  std::ptrdiff_t sent = 0;
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) return -errno;
    sent += put;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return sent;
}

std::size_t Receiver::receive(std::span<std::byte> bytes) noexcept {
  std::size_t done = 0;
  for (;;) {
    const std::size_t buffered = std::min(bytes.size() - done, end_ - begin_);
    if (buffered != 0) std::memcpy(bytes.data() + done, buffer_.data() + begin_, buffered);
    begin_ += buffered;
    done += buffered;
    if (done == bytes.size()) return done;
    // What would fill the buffer goes straight to where it belongs.
    const bool direct = bytes.size() - done >= buffer_.size();
    const std::span<std::byte> into = direct ? bytes.subspan(done) : std::span(buffer_);
    if (deadline_ != Clock::time_point::max() && !wait_readable(fd_, deadline_)) return done;
    ssize_t got;
    do {
      got = ::recv(fd_, into.data(), into.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return done;
    begin_ = 0;
    end_ = direct ? 0 : static_cast<std::size_t>(got);
    if (direct) done += static_cast<std::size_t>(got);
  }
}

bool wait_readable(int fd, Clock::time_point deadline) noexcept {
  return wait_ready(fd, false, deadline);
}

bool wait_ready(int fd, bool sends, Clock::time_point deadline) noexcept {
  const auto events = static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll{.fd = fd, .events = events, .revents = 0};
    const int ready =
        ::poll(&poll, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

int process_of(int fd) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace penstock::source
