// A disk with faults, for programs that are started with LD_PRELOAD: what is read from or written to files whose path has
// FAULTY_DISK_PATH in it fails, is slow, or does not fit.
//
//   FAULTY_DISK=eio      every read and fsync fails with EIO
//   FAULTY_DISK=once     each file's first read fails with EIO
//   FAULTY_DISK=slow     every read takes 5 ms, and gives at most 4,000 bytes
//   FAULTY_DISK=full     after the first 1,000 bytes every write fails with ENOSPC
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Its path where its faults are asked for; else empty.
std::string faulty_path(int fd) {
  const char* const part = std::getenv("FAULTY_DISK_PATH");
  if (part == nullptr) return {};
  std::array<char, 4096> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  std::string found(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return found.find(part) == std::string::npos ? std::string() : found;
}

std::string_view mode() {
  const char* const value = std::getenv("FAULTY_DISK");
  return value == nullptr ? "" : value;
}

bool is_first(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  return seen.insert(path).second;
}

// Whether the read fails; it may have become shorter.
bool read_fails(int fd, std::size_t& count) {
  const std::string path = faulty_path(fd);
  if (path.empty()) return false;
  if (mode() == "slow") {
    ::usleep(5'000);
    count = count < 4000 ? count : 4000;
  }
  if (mode() != "eio" && !(mode() == "once" && is_first(path))) return false;
  errno = EIO;
  return true;
}

bool write_fails(int fd, std::size_t& count) {
  static std::atomic<std::size_t> written = 0;
  constexpr std::size_t kRoom = 1000;
  if (mode() != "full" || faulty_path(fd).empty()) return false;
  const std::size_t before = written.fetch_add(count);
  if (before < kRoom) {
    count = count < kRoom - before ? count : kRoom - before;
    return false;
  }
  errno = ENOSPC;
  return true;
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* to, std::size_t count) {
  static auto* const real = next<ssize_t(int, void*, std::size_t)>("read");
  return read_fails(fd, count) ? -1 : real(fd, to, count);
}
ssize_t pread(int fd, void* to, std::size_t count, off_t at) {
  static auto* const real = next<ssize_t(int, void*, std::size_t, off_t)>("pread");
  return read_fails(fd, count) ? -1 : real(fd, to, count, at);
}
ssize_t pread64(int fd, void* to, std::size_t count, off_t at) { return pread(fd, to, count, at); }
ssize_t write(int fd, const void* from, std::size_t count) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  return write_fails(fd, count) ? -1 : real(fd, from, count);
}
int fsync(int fd) {
  static auto* const real = next<int(int)>("fsync");
  if (mode() != "eio" || faulty_path(fd).empty()) return real(fd);
  errno = EIO;
  return -1;
}

}  // extern "C"
