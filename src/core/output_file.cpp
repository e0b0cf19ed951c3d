#include "src/core/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/core/error.hpp>
#include <penstock/core/process.hpp>

namespace penstock::core {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr int kMostLinks = 40;  // the kernel's own limit

// What stands for this process's open files, whatever these are.
bool is_of_the_process(const fs::path& path) {
  const std::string name = fs::absolute(path).lexically_normal().string();
  return name.starts_with("/dev/fd/") || name.starts_with("/dev/std") || name.starts_with("/proc/");
}

// The file behind links, which need not exist; 0 or an errno.
int follow_links(fs::path& path) {
  struct stat info {};
  for (int links = 0; !is_of_the_process(path); ++links) {
    if (::lstat(path.c_str(), &info) != 0) return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(info.st_mode)) return 0;
    if (links == kMostLinks) return ELOOP;
    std::error_code error;
    const fs::path next = fs::read_symlink(path, error);
    if (error) return error.value();
    path = path.parent_path() / next;  // an absolute one replaces it
  }
  return 0;
}

// Gives `file` to the owner and the group that the old one had, as far as this user may; the old one's permissions
// then. Another group than it had gets no more than all users get.
mode_t mode_of(int file, const struct stat& old) {
  if (::fchown(file, old.st_uid, old.st_gid) == 0) return old.st_mode & 07777;
  if (::fchown(file, static_cast<uid_t>(-1), old.st_gid) == 0) return old.st_mode & 0777;
  return old.st_mode & (0707 | (old.st_mode & S_IRWXO) << 3);
}

}  // namespace

OutputFile::OutputFile(fs::path path) : path_(std::move(path)), target_(path_) {
  if (path_.empty()) fail("create", ENOENT);
  if (const int error = follow_links(target_); error != 0) fail("create", error);
  struct stat info {};
  const bool is_there = ::stat(target_.c_str(), &info) == 0;
  if (is_there && S_ISDIR(info.st_mode)) fail("create", EISDIR);
  if (is_of_the_process(target_) || (is_there && !S_ISREG(info.st_mode))) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
    if (file_ < 0) fail("open", errno);
  } else {
    make_beside(is_there ? 0600 : 0666);
    if (is_there) (void)::fchmod(file_, mode_of(file_, info));
  }
  buffer_.reserve(kBuffer);
}

void OutputFile::make_beside(unsigned mode) {
  std::random_device draw;
  aside_ = target_;
  aside_ += fmt::format(".tmp.{:08x}{:08x}", draw(), draw());
  file_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file_ >= 0) return;
  aside_.clear();
  fail("create", errno);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  std::error_code ignored;
  if (!aside_.empty()) fs::remove(aside_, ignored);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (file_ < 0) {
    throw std::logic_error(fmt::format("{} is finished; nothing can be added", path_.string()));
  }
  bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer) {
    put(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void OutputFile::finish() {
  write({});
  flush();
  if (!aside_.empty() && ::fsync(file_) != 0) fail("write", errno);
  // Here network file systems report a full disk.
  if (::close(std::exchange(file_, -1)) != 0) fail("write", errno);
  if (aside_.empty()) return;
  if (std::rename(aside_.c_str(), target_.c_str()) != 0) fail("create", errno);
  aside_.clear();
  // The name, too, is to be there after a power failure. Not every file system can be asked.
  const fs::path folder = target_.parent_path();
  const int names =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (names < 0) return;
  (void)::fsync(names);
  ::close(names);
}

void OutputFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void OutputFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      fail("write", errno);
    }
  }
}

void OutputFile::fail(const char* verb, int error) {
  throw Error(fmt::format("cannot {} {}: {}; check its folder, its permissions and the free space",
                          verb, path_.string(), std::generic_category().message(error)));
}

}  // namespace penstock::core

namespace penstock {

void write_file(const std::filesystem::path& file, std::string_view text) {
  core::OutputFile output(file);
  output.write(std::as_bytes(std::span(text)));
  output.finish();
}

}  // namespace penstock
