#include "src/storage/local/file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::storage {

namespace {

Fault fault_at(const char* path, std::uint64_t offset, std::string reason) {
  return {.reason = std::move(reason), .file = path, .offset = offset};
}

}  // namespace

void FileDescriptor::adopt(int fd) noexcept {
  const int error = errno;
  close();
  fd_ = fd;
  errno = error;
}

int FileDescriptor::close() noexcept {
  if (fd_ < 0) return 0;
  const int failed = ::close(fd_);
  fd_ = -1;
  return failed == 0 ? 0 : errno;
}

std::string errno_text(int error) { return std::generic_category().message(error); }

bool is_transient(int error) noexcept {
  switch (error) {
    case EIO:
    case ESTALE:
    case EAGAIN:
    case ETIMEDOUT:
    case ENETDOWN:
    case ENETUNREACH:
    case ENETRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case EREMOTEIO:
    case EMFILE:
    case ENFILE:
      return true;
    default:
      return false;
  }
}

Fault fault_of_errno(std::string file, std::uint64_t offset, const char* what, int error) {
  return {.reason = fmt::format("{}: {}", what, errno_text(error)),
          .file = std::move(file),
          .offset = offset,
          .transient = is_transient(error),
          .out_of_memory = error == ENOMEM};
}

int open_for_reading(const char* path) noexcept {
  int fd;
  do {
    fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t most) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);  // waits for a pipe's writer
  } while (fd < 0 && errno == EINTR);
  const FileDescriptor file(fd);
  if (!file.is_open()) return fault_of_errno(path, 0, "cannot open", errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fault_of_errno(path, 0, "cannot stat", errno);
  if (S_ISDIR(info.st_mode)) return fault_at(path.c_str(), 0, "expected a file, found a folder");
  std::string text;
  if (S_ISREG(info.st_mode))
    text.reserve(static_cast<std::size_t>(
        std::min(most, static_cast<std::uint64_t>(std::max<off_t>(info.st_size, 0)))));
  std::array<char, 65536> part;
  for (;;) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fault_of_errno(path, text.size(), "cannot read", errno);
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > most)
      return fault_at(path.c_str(), 0, fmt::format("it holds more than {} bytes", most));
  }
}

Result<std::span<const std::byte>> read_file(const char* path, std::uint64_t max_file_bytes,
                                             const Allocate& allocate, std::uint64_t head) {
  const FileDescriptor file(open_for_reading(path));
  if (!file.is_open()) return fault_of_errno(path, 0, "cannot open", errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return fault_of_errno(path, 0, "cannot stat", errno);
  }
  if (S_ISDIR(info.st_mode)) return fault_at(path, 0, "expected a file, found a folder");
  if (!S_ISREG(info.st_mode)) {
    return fault_at(path, 0, "expected a regular file, found a pipe, socket or device");
  }
  auto size = static_cast<std::uint64_t>(info.st_size);
  if (size == 0) return fault_at(path, 0, "the file is empty (0 bytes)");
  if (size > max_file_bytes) {
    return fault_at(
        path, 0,
        fmt::format("the file has {} bytes, more than max_file_bytes = {}", size, max_file_bytes));
  }

  size = std::min(size, head);
  const Result<std::span<std::byte>> room = allocate(size);
  if (!room) {
    Fault fault = room.fault();
    fault.file = path;
    return fault;
  }
  const std::span<std::byte> bytes = *room;
  std::uint64_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
    } else if (got == 0) {
      return fault_at(path, done,
                      fmt::format("the file shrank while being read: {} of {} bytes", done, size));
    } else if (errno != EINTR) {
      return fault_of_errno(path, done, "cannot read", errno);
    }
  }
  return std::span<const std::byte>(bytes);
}

int write_file(const char* path, std::span<const std::byte> bytes, bool flush) noexcept {
  FileDescriptor file(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return errno;
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  if (flush && ::fsync(file.get()) != 0) return errno;
  return file.close();  // where network file systems report a full disk
}

MappedFile map_file(const std::filesystem::path& path) {
  const FileDescriptor file(open_for_reading(path.c_str()));
  if (!file.is_open()) {
    throw Error(fmt::format("cannot open {}: {}; check the path and its permissions", path.string(),
                            errno_text(errno)));
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    throw Error(fmt::format("cannot stat {}: {}", path.string(), errno_text(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(fmt::format("expected a regular file at {}, found {}; give the file itself",
                            path.string(),
                            S_ISDIR(info.st_mode) ? "a folder" : "a pipe, socket or device"));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return {};  // mmap refuses an empty range
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) {
    throw Error(
        fmt::format("cannot map {} ({} bytes): {}", path.string(), size, errno_text(errno)));
  }
  std::shared_ptr<const void> owner(
      start, [size](const void* at) { ::munmap(const_cast<void*>(at), size); });
  return {{static_cast<const std::byte*>(start), size}, std::move(owner)};
}

}  // namespace penstock::storage
