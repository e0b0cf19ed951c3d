#include "src/sync/rendezvous/ticket_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

#include "src/sync/rendezvous/launch_key.hpp"
#include "src/sync/rendezvous/tcp.hpp"

namespace penstock::sync {

namespace {

constexpr std::size_t kLongestTicket = std::size_t{64} << 10;

Error in_the_way(const std::filesystem::path& path) {
  return Error(
      fmt::format("'{}' is a device, a pipe, a link or a folder: expected a file for the "
                  "processes to meet at, or none yet, in a folder that all of them share",
                  path.string()));
}

Error cannot_write(const std::filesystem::path& path) {
  return Error(fmt::format("'{}' cannot be written: {}; give a folder that all processes share",
                           path.string(), std::strerror(errno)));
}

}  // namespace

TicketFile::TicketFile(std::filesystem::path path, const std::string& ticket)
    : path_(std::move(path)) {
  struct stat there {};
  if (::lstat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) throw in_the_way(path_);
  const std::string part = path_.string() + "." + make_nonce();
  const int made = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (made < 0) throw cannot_write(path_);
  const Socket file(made);  // closes it
  const std::string line = ticket + '\n';
  const ssize_t written = ::write(made, line.data(), line.size());
  if (written >= 0 && written < static_cast<ssize_t>(line.size())) errno = ENOSPC;
  if (written != static_cast<ssize_t>(line.size()) || ::fstat(made, &there) != 0 ||
      ::rename(part.c_str(), path_.c_str()) != 0) {
    const Error error = cannot_write(path_);
    (void)::unlink(part.c_str());
    throw error;
  }
  device_ = there.st_dev;
  number_ = there.st_ino;
}

TicketFile::~TicketFile() {
  struct stat there {};
  if (::lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == number_)
    (void)::unlink(path_.c_str());
}

std::string read_ticket_file(const std::filesystem::path& path, std::string& why) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  const Socket file(opened);  // closes it
  // A link, or a socket: the program that made it does not expect it to be a ticket.
  if (opened < 0 && (errno == ELOOP || errno == ENXIO)) throw in_the_way(path);
  struct stat there {};
  if (opened < 0 || ::fstat(opened, &there) != 0) {
    why = fmt::format("'{}': {}", path.string(), std::strerror(errno));
    return {};
  }
  if (!S_ISREG(there.st_mode)) throw in_the_way(path);
  std::string text(kLongestTicket, '\0');
  const ssize_t count = ::read(opened, text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text.substr(0, text.find('\n'));
}

}  // namespace penstock::sync
