// sync/rendezvous/ticket_file: process 0's ticket in a file that all processes see.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace penstock::sync {

/// Process 0's ticket, for this user's eyes, for as long as this lives. It replaces the file of an earlier run, and nothing
/// else: no device, pipe, link or folder.
class TicketFile {
 public:
  /// The file appears whole.
  ///
  /// Errors  Error  what is there is no regular file; it cannot be written
  TicketFile(std::filesystem::path path, const std::string& ticket);
  TicketFile(const TicketFile&) = delete;
  TicketFile& operator=(const TicketFile&) = delete;
  /// Removes it, unless another run has put its own there.
  ~TicketFile();

 private:
  std::filesystem::path path_;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

/// The first line of the file; empty where there is none, or it cannot be read now, and `why` says so. It does not wait for
/// a pipe's writer, and of a long file it reads a part.
///
/// Errors  Error  what is there is no regular file
[[nodiscard]] std::string read_ticket_file(const std::filesystem::path& path, std::string& why);

}  // namespace penstock::sync
