// storage/local/file: opening, reading and mapping whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace storage {

/// An open file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { close(); }

  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Closes what it had and takes `fd` over. Leaves errno as it is.
  void adopt(int fd) noexcept;
  /// Gives the descriptor away.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes and returns 0 or the errno of close().
  int close() noexcept;

 private:
  int fd_;
};

/// The text of an errno, as strerror, from any thread.
[[nodiscard]] std::string errno_text(int error);

/// Whether the same call may succeed later: what a disk, a network file system or too many open
/// files say.
[[nodiscard]] bool is_transient(int error) noexcept;

/// "cannot read: …" with an errno, transient or out_of_memory where that is.
[[nodiscard]] Fault fault_of_errno(std::string file, std::uint64_t offset, const char* what,
                                   int error);

/// open() for reading, again after a signal; never waits for the other end of a FIFO.
[[nodiscard]] int open_for_reading(const char* path) noexcept;

/// What a file or a pipe holds, up to `most` bytes; more is a Fault, as is what cannot be read.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::uint64_t most);

/// Where the bytes of a file are to go, once their number is known.
using Allocate = std::function<Result<std::span<std::byte>>(std::size_t bytes)>;

/// Reads a whole regular file, or no more than its first `head` bytes.
[[nodiscard]] Result<std::span<const std::byte>> read_file(const char* path,
                                                           std::uint64_t max_file_bytes,
                                                           const Allocate& allocate,
                                                           std::uint64_t head = UINT64_MAX);

/// Writes a new file, which must not be there yet. 0, or the errno of what failed; a file that
/// could not be written in full may be left behind. With `flush` it has reached the storage.
[[nodiscard]] int write_file(const char* path, std::span<const std::byte> bytes,
                             bool flush = false) noexcept;

/// A read-only mapping of a whole file.
///
/// Owns  the mapping, shared by all holders of `owner`.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Errors  Error  the file cannot be opened or mapped, or is not a regular file
[[nodiscard]] MappedFile map_file(const std::filesystem::path& path);

}  // namespace storage
}  // namespace penstock
