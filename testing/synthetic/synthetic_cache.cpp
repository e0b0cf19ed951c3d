#include "testing/synthetic/synthetic_cache.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <penstock/core/error.hpp>

namespace penstock::testing {

namespace {

constexpr std::string_view kTemporary = ".tmp.";

std::filesystem::path lock_path(const std::filesystem::path& cache, std::string_view name) {
  return cache / fmt::format(".{}.lock", name);
}

int open_lock(const std::filesystem::path& path) noexcept {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

// 0, or the errno.
int try_lock(int fd) noexcept { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno; }

void remove_if_dead(const std::filesystem::path& cache, const std::filesystem::path& entry,
                    std::string_view own) {
  const std::string file_name = entry.filename().string();
  const std::size_t at = file_name.find(kTemporary);
  if (at == std::string::npos) return;
  const std::string_view set = std::string_view(file_name).substr(0, at);
  std::error_code ignored;
  if (set == own) {
    std::filesystem::remove_all(entry, ignored);
    return;
  }
  // Only what this code made has a lock file beside it.
  const storage::FileDescriptor lock(::open(lock_path(cache, set).c_str(), O_RDWR | O_CLOEXEC));
  if (!lock.is_open() || try_lock(lock.get()) != 0) return;
  std::filesystem::remove_all(entry, ignored);
  ::flock(lock.get(), LOCK_UN);
}

}  // namespace

void throw_cache_error(std::string_view verb, const std::filesystem::path& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw Error(fmt::format(
      "cannot {} {}: {}; {}set PENSTOCK_CACHE, or SyntheticImagesOptions::cache, to a folder that "
      "can be written and has room",
      verb, path.string(), storage::errno_text(error), full ? "make room there, or " : ""));
}

SetLock::SetLock(const std::filesystem::path& cache, std::string_view name,
                 const std::function<void()>& waiting)
    : file_(open_lock(lock_path(cache, name))) {
  if (!file_.is_open()) throw_cache_error("write", lock_path(cache, name), errno);
  for (;;) {
    const int error = try_lock(file_.get());
    if (error == 0) break;
    if (error == EINTR) continue;
    if (error != EWOULDBLOCK) return;
    waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  exclusive_ = true;
}

// Explicitly, since a forked child may still hold the descriptor.
SetLock::~SetLock() {
  if (exclusive_) ::flock(file_.get(), LOCK_UN);
}

void remove_leftovers(const std::filesystem::path& cache, std::string_view own) noexcept {
  try {
    for (const auto& entry : std::filesystem::directory_iterator(cache)) {
      remove_if_dead(cache, entry.path(), own);
    }
  } catch (const std::exception&) {
    // Leftovers take room and do no harm; the next one to come removes them.
  }
}

TemporaryFolder::TemporaryFolder(const std::filesystem::path& cache, std::string_view name) {
  for (int n = 0;; ++n) {
    path_ = cache / fmt::format("{}{}{}.{}", name, kTemporary, ::getpid(), n);
    std::error_code error;
    if (std::filesystem::create_directory(path_, error)) return;
    if (error) throw_cache_error("create", path_, error.value());
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

bool TemporaryFolder::publish(const std::filesystem::path& target) {
  if (std::rename(path_.c_str(), target.c_str()) == 0) {
    path_.clear();
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  throw_cache_error("create", target, errno);
}

}  // namespace penstock::testing
