// jpeg/shared_jpeg_index: what one process has learned of JPEGs, for all processes of a machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include <penstock/jpeg/jpeg_index.hpp>

namespace penstock {

/// Keeps indices in a file that the processes of a machine map at the same time: with a process for each GPU, an image that
/// one of them has decoded is known to all in the next epoch, whoever gets it then. The file stays for the next run.
///
/// A process may be killed at any moment: what it was writing is not found, and takes room. Every index has a checksum, and
/// is checked against the image that it is for. /dev/shm is memory and goes with the machine; a local disk keeps the file
/// longer; over a network file system processes do not see each other's writes.
///
/// Threads  any number, in any number of processes
class SharedJpegIndex final : public JpegIndexStore {
 public:
  /// Opens the file, or makes it. It takes room as it fills, up to `max_bytes`; one that is there keeps its own limit.
  ///
  /// Units   max_bytes: about 400 a photograph; at least 64 KiB
  /// Errors  Error  the file cannot be made or mapped, or is of another kind, or of another version; or is in a bucket; is
  ///                another user's, or others may write to it
  ///         std::invalid_argument  max_bytes is too small
  explicit SharedJpegIndex(const std::filesystem::path& file,
                           std::size_t max_bytes = std::size_t{1} << 30);
  ~SharedJpegIndex() override;
  SharedJpegIndex(const SharedJpegIndex&) = delete;
  SharedJpegIndex& operator=(const SharedJpegIndex&) = delete;

  [[nodiscard]] std::shared_ptr<const JpegIndex> find(const JpegKey& key) const override;
  /// Once the file is full, or its disk is, it takes no more.
  void put(const JpegKey& key, JpegIndex index) override;

  /// Images that have an index, put there by any process.
  [[nodiscard]] std::size_t size() const override;
  /// What the file takes on its disk, with what was replaced or left unfinished.
  [[nodiscard]] std::size_t bytes() const override;

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace penstock
